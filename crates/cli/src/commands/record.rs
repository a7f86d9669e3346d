use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use foldback_core::{BlockId, SeqNo, TodoId};
use foldback_transcript::{Limits, MessageLines};
use serde::Serialize;

/// Record messages as they arrive: JSON Lines on standard input
///
/// Each line is one message in the shape of chat-completions. It is durable before the next line
/// is read. At the end of the input the conversation stays open: recording may go on at any time.
/// A line that is no message ends the recording with exit code 2; everything before it stays.
///
/// JSON, a line for each message, sent off once it is durable: {"todo_id", "seq", "closed":
/// [block ids]}
#[derive(Args)]
#[command(after_long_help = "Example:
  echo '{\"role\": \"user\", \"content\": \"Which port is it?\"}' | foldback record --todo ports")]
pub(crate) struct Record {
    #[command(flatten)]
    todo: TodoArg,
}

#[derive(Serialize)]
struct RecordJson<'a> {
    todo_id: &'a TodoId,
    seq: SeqNo,
    closed: &'a [BlockId],
}

impl Record {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let todo = self.todo.todo;
        let memory = store::open_for_writing(globals, out)?;
        let lines =
            MessageLines::from_reader("standard input", std::io::stdin(), Limits::default())?;
        let mut session = memory.session(&todo)?;
        let mut count = 0;
        for message in lines {
            let recorded = session.record(message?)?;
            count += 1;
            let closed = &recorded.closed;
            if out.is_json() {
                out.json(&RecordJson { todo_id: &todo, seq: recorded.seq, closed })?;
                continue;
            }
            for block in closed {
                out.line(format!("{} closed", style::paint(style::NAME, block)))?;
            }
        }
        if !out.is_json() {
            out.line(format!(
                "{}: {} recorded, {} in all",
                style::paint(style::NAME, &todo),
                text::count(count, "message"),
                text::number(session.len()),
            ))?;
        }
        Ok(Outcome::Done)
    }
}
