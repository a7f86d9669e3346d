//! `foldback export`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::Args;

/// Print a todo's conversation as one line of foldback JSON Lines
///
/// Every message is exactly what was recorded: its number forms, its escapes, the order of its
/// keys, and keys that foldback does not know.
#[derive(Args)]
#[command(after_long_help = "Example:\n  foldback export --todo coding-session > session.jsonl")]
pub(crate) struct Export {
    #[command(flatten)]
    todo: TodoArg,
}

impl Export {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        let conversation = memory.conversations().export(&self.todo.todo)?;
        let mut line = conversation.to_json_line();
        line.push('\n');
        out.bytes(line.as_bytes())?;
        Ok(Outcome::Done)
    }
}
