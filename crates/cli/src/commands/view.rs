//! `foldback view`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, prompt};
use crate::run::{Runs, last_sent};
use crate::store;
use clap::Args;
use foldback::AuditEvent;
use foldback_core::Budget;

/// Print the prompt as the model would get it now
///
/// This is what the memory shows under the fold policy that the todo was last recorded under, with the memory's own
/// tools. Hints to earlier blocks are found by words alone, since no embedder is loaded. With --sent it is the last
/// request that a run made in this todo, message for message: with the agent's instructions and all tools, in the form
/// that OpenAI receives. Anthropic receives the same in the form of its own API, and a local server in the form that its
/// chat template supports.
///
/// JSON: {"messages": [chat-completions messages], "tools": [...], "tokens", "block": id or null,
/// "loose", "pinned", "unfit": [sentences on what --budget left out or had no room for], "fold_policy"}; `tokens` is the
/// running system's estimate. With --sent there are no `block` and no `fold_policy`, and `loose` and `pinned` are 0.
#[derive(Args)]
pub(crate) struct View {
    #[command(flatten)]
    todo: TodoArg,

    /// Fit the prompt into this many tokens, and report what does not fit; if it is larger nevertheless, the exit code
    /// is 1
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,

    /// Print the last request that `foldback run` sent in this todo
    #[arg(long, conflicts_with = "budget")]
    sent: bool,
}

impl View {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        let todo = self.todo.todo;
        // A todo that is missing is an error before the audit log notes anything.
        memory.find(&todo)?;
        memory.audit().note(&AuditEvent {
            todo: Some(&todo),
            what: "view",
            ..AuditEvent::default()
        })?;
        if self.sent {
            prompt::print(out, &todo, &last_sent(&Runs::of(globals)?, &todo)?, None)?;
            return Ok(Outcome::Done);
        }
        let session = memory.session(&todo)?;
        let policy = session.view_config().fold_policy();
        let shown = session.prompt(&Budget { tokens: self.budget });
        prompt::print(out, &todo, &shown, Some(policy))?;
        Ok(Outcome::clean_if(self.budget.is_none_or(|budget| shown.tokens <= budget)))
    }
}
