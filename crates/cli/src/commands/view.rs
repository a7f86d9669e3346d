//! `foldback view`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, prompt};
use crate::store;
use clap::Args;
use foldback_core::Budget;

/// Print the prompt as the model would get it now
///
/// JSON: {"messages": [chat-completions messages], "tools": [...], "tokens", "block": id or null,
/// "loose", "pinned"}; `tokens` is the running system's estimate.
#[derive(Args)]
pub(crate) struct View {
    #[command(flatten)]
    todo: TodoArg,

    /// Fit the prompt into this many tokens, and say what does not fit
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
}

impl View {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        let todo = self.todo.todo;
        // A session of a todo that is not there would make it.
        memory.find(&todo)?;
        let session = memory.session(&todo)?;
        prompt::print(out, &todo, &session.prompt(&Budget { tokens: self.budget }))?;
        Ok(Outcome::Done)
    }
}
