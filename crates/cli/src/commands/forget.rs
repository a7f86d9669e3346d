//! `foldback forget`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use foldback_core::TodoId;
use serde::Serialize;

/// Delete a todo for good: messages, blocks, payloads, vectors and indexes
///
/// No search finds anything of it from then on. `compact` takes its bytes out of the files.
///
/// JSON: {"todo_id", "messages"}
#[derive(Args)]
pub(crate) struct Forget {
    #[command(flatten)]
    todo: TodoArg,
}

#[derive(Serialize)]
struct ForgetJson {
    todo_id: TodoId,
    messages: u64,
}

impl Forget {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_existing(globals)?;
        let todo_id = self.todo.todo;
        memory.find(&todo_id)?;
        // A damaged todo has to be forgettable too.
        let messages = memory.len(&todo_id).unwrap_or(0);
        memory.maintenance().forget(&todo_id)?;
        if out.is_json() {
            out.json(&ForgetJson { todo_id, messages })?;
        } else {
            let todo = style::paint(style::NAME, todo_id);
            out.line(format!("forgotten: {todo}, {}", text::count(messages, "message")))?;
        }
        Ok(Outcome::Done)
    }
}
