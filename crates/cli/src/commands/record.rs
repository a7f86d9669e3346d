//! `foldback record`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use foldback_core::{BlockId, Recorded, SeqNo, TodoId};
use foldback_transcript::{Limits, MessageLines};
use serde::Serialize;

/// Record messages as they arrive: JSON Lines on standard input
///
/// Each line is one message in the shape of chat-completions. It is durable before the next line
/// is read. At the end of the input the conversation stays open: recording may go on at any time.
/// A line that is no message ends the recording with exit code 2; everything before it stays. When
/// nobody reads the answers any more, recording ends with exit code 1.
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
        let mut lines =
            MessageLines::from_reader("standard input", std::io::stdin(), Limits::default())?;
        // Neither a store nor a todo is made for an input that holds no message.
        let Some(first) = lines.next().transpose()? else {
            out.note(format_args!("the input holds no message, so nothing is recorded in {todo}"));
            return Ok(Outcome::Done);
        };
        let memory = store::open_for_writing(globals, out)?;
        let mut session = memory.session(&todo)?;
        let mut count = 0;
        for message in std::iter::once(Ok(first)).chain(lines) {
            let recorded = session.record(message?)?;
            count += 1;
            answer(out, &todo, &recorded).map_err(|error| match error.is_broken_pipe() {
                true => CliError::Unread(text::count(count, "message")),
                false => error,
            })?;
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

fn answer(out: &Output, todo: &TodoId, recorded: &Recorded) -> Result<(), CliError> {
    let closed = &recorded.closed;
    if out.is_json() {
        return out.json(&RecordJson { todo_id: todo, seq: recorded.seq, closed });
    }
    for block in closed {
        out.line(format!("{} closed", style::paint(style::NAME, block)))?;
    }
    Ok(())
}
