//! `foldback record`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use foldback_core::{BlockId, Recorded, SeqNo, TodoId, thousands};
use foldback_transcript::{Limits, MessageLines};
use serde::Serialize;

/// Record messages as they arrive: JSON Lines on standard input
///
/// Each line is one message in chat-completions format. It is durable before the next line is read. At the end of the
/// input the conversation stays open: recording can continue at any time. A line that is not a message ends the
/// recording with exit code 2; everything before it stays. With --lenient it is reported and skipped. When nobody reads
/// the answers any more, recording ends with exit code 1.
///
/// JSON, a line for each message, sent once it is durable: {"todo_id", "seq", "closed": [block
/// ids]}; for a line that was skipped: {"todo_id", "line", "skipped": why}
#[derive(Args)]
#[command(after_long_help = "Example:
  echo '{\"role\": \"user\", \"content\": \"Which port is it?\"}' | foldback record --todo ports")]
pub(crate) struct Record {
    #[command(flatten)]
    todo: TodoArg,

    /// Report lines that are not messages, and continue after them
    #[arg(long)]
    lenient: bool,
}

#[derive(Serialize)]
struct RecordJson<'a> {
    todo_id: &'a TodoId,
    seq: SeqNo,
    closed: &'a [BlockId],
}

#[derive(Serialize)]
struct SkippedJson<'a> {
    todo_id: &'a TodoId,
    line: u64,
    skipped: String,
}

impl Record {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let todo = self.todo.todo;
        let mut lines =
            MessageLines::from_reader("standard input", std::io::stdin(), Limits::default())?;
        if self.lenient {
            lines = lines.lenient();
        }
        let (mut count, mut skipped) = (0, 0);
        let unread = |error: CliError, count| match error.is_broken_pipe() {
            true => CliError::Unread(text::count(count, "message")),
            false => error,
        };
        let stopped = |error: CliError, line, recorded| match error {
            CliError::Unread(_) | CliError::Output(_) => error,
            error => CliError::Stopped { error: Box::new(error), line, recorded },
        };
        // The next message; lines that are not messages are answered in their turn.
        let mut next = |count| {
            while let Some(message) = lines.next() {
                match message {
                    Err(error) if self.lenient && error.is_damage() => {
                        skipped += 1;
                        skip(out, &todo, lines.line(), &error).map_err(|e| unread(e, count))?;
                    }
                    message => return Ok::<_, CliError>(Some((lines.line(), message?))),
                }
            }
            Ok(None)
        };
        // An input without messages creates neither a store nor a todo.
        let Some(first) = next(count)? else {
            out.note(format_args!("the input holds no message, so nothing is recorded in {todo}"));
            return Ok(Outcome::Done);
        };
        let memory = store::open_for_writing(globals, out)?;
        let mut session = memory.session(&todo)?;
        let mut message = Some(first);
        while let Some((line, one)) = message {
            let recorded =
                session.record(one).map_err(|error| stopped(error.into(), Some(line), count))?;
            count += 1;
            answer(out, &todo, &recorded).map_err(|error| unread(error, count))?;
            message = next(count).map_err(|error| stopped(error, None, count))?;
        }
        if !out.is_json() {
            let skipped = match skipped {
                0 => String::new(),
                skipped => format!(", {} skipped", text::count(skipped, "line")),
            };
            out.line(format!(
                "{}: {} recorded, {} in all{skipped}",
                style::paint(style::NAME, &todo),
                text::count(count, "message"),
                thousands(session.len()),
            ))?;
        }
        Ok(Outcome::Done)
    }
}

/// Reports that a line was skipped, and why.
fn skip(
    out: &Output,
    todo: &TodoId,
    line: u64,
    error: &foldback_transcript::Error,
) -> Result<(), CliError> {
    out.note(format_args!("skipped: {error}"));
    match out.is_json() {
        true => out.json(&SkippedJson { todo_id: todo, line, skipped: error.to_string() }),
        false => Ok(()),
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
