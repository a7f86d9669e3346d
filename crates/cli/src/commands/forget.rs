//! `foldback forget`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::run::Runs;
use crate::store;
use clap::Args;
use foldback::release_reserve;
use foldback_core::TodoId;
use serde::Serialize;

/// Delete a todo for good: its messages, blocks, payloads, vectors and indexes, and the runs that worked in it
///
/// From then on, no search finds anything of it. `compact` removes its bytes from the files. What was typed in
/// `foldback chat` stays in the store's `chat_history`, which is shared by all conversations. The command works on a
/// full disk, too: the store keeps 1 MiB in reserve for that.
///
/// JSON: {"todo_id", "messages", "runs"}
#[derive(Args)]
pub(crate) struct Forget {
    #[command(flatten)]
    todo: TodoArg,
}

#[derive(Serialize)]
struct ForgetJson {
    todo_id: TodoId,
    messages: u64,
    runs: u64,
}

impl Forget {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = match store::open_existing(globals) {
            // A disk may be too full to open the store at all.
            Err(error) if error.is_full() && release_reserve(&store::folder(globals)?)? => {
                store::open_existing(globals)?
            }
            opened => opened?,
        };
        let todo_id = self.todo.todo;
        memory.find(&todo_id)?;
        // A damaged todo must be forgettable, too.
        let messages = memory.len(&todo_id).unwrap_or(0);
        // Runs come first: without the todo they could no longer be named here.
        let runs = Runs::of(globals)?.forget(&todo_id)?;
        memory.maintenance().forget(&todo_id)?;
        if out.is_json() {
            out.json(&ForgetJson { todo_id, messages, runs })?;
        } else {
            let todo = style::paint(style::NAME, todo_id);
            let messages = text::count(messages, "message");
            let runs = match runs {
                0 => String::new(),
                runs => format!(", {}", text::count(runs, "run")),
            };
            out.line(format!("forgotten: {todo}, {messages}{runs}"))?;
        }
        Ok(Outcome::Done)
    }
}
