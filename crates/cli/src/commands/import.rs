//! `foldback import`.

mod recording;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::sources::{Holders, Sourced, Sources, Survey};
use crate::store;
use crate::watch::{Batch, Watch};
use clap::Args;
use foldback::ErrorKind;
use foldback_core::{Recorded, TodoId, thousands};
use recording::{Recording, Taken};
use serde::Serialize;
use std::path::PathBuf;

/// Write recorded conversations into the store
///
/// Each conversation goes into the todo of its own id; an id that is not valid for a todo is mapped to a readable one
/// and kept. A conversation without an id goes into the todo of its file's name, which is mapped and kept in the same way;
/// for further ones, the name also has their line number. Among conversations with the same id, one that is the
/// beginning of another is skipped; of the others the one that the store has, or else the first, keeps the id, and the
/// rest go into todos named by that id and their file's name. All inputs are read before anything is written. A conversation that an earlier import left half-way, or
/// that has grown since, continues where it stopped. A log that went back to an earlier point, or was rewritten after
/// the same beginning, continues in its todo after everything there. A conversation whose todo holds something else is
/// reported and not imported, and the exit code is 1. Messages are compared by what they say, not by how their JSON is
/// written. A response that is still being written is left for the next import.
///
/// Formats are detected from the content: foldback JSON Lines; chat-completions arrays and bodies; Anthropic Messages
/// bodies and lists of messages; either body inside a line of a log or batch; session logs of Claude Code and Codex;
/// sessions of OpenCode, in its database (opencode.db) or as `opencode export` prints them; messages of LangChain and
/// LangGraph. Anything that has no place in a message is kept under "source", and an export returns it.
///
/// In a folder, folders named tool-results and files named *.meta.json, which belong to session logs, are skipped. So
/// are, with a note, files that hold no conversation, and compressed files beside the plain ones.
///
/// With --watch, existing messages are recorded, and then what other programs write, until Ctrl-C: each message once,
/// whatever happens to the files. A line counts once it is ended, and a response once the log says that it is complete.
/// A conversation that went back to an earlier point, or was rewritten after the same beginning, continues in its todo
/// after everything there. One that begins differently from its todo goes into a todo named after it, with a number added. What
/// cannot be read is reported and skipped. Blocks close as they do while an agent works; `foldback import` closes the
/// last one. If nobody reads its output any more, the command ends with an error and exit code 1.
///
/// JSON, a line for each conversation: {"id", "todo_id", "messages", "recorded", "held", "blocks"};
/// `recorded` counts the messages written now, `held` those that were there before, `blocks` the
/// blocks closed now. With --watch, there is a line each time messages are written.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback import examples/coding-session.jsonl
  foldback import --todo release-7 chat.json
  foldback import --watch ~/.claude/projects ~/.codex/sessions
  zcat old.jsonl.gz | foldback import -")]
pub(crate) struct Import {
    /// Files of conversations or session logs, plain or .zst, folders of such files, or - for
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The todo for the only conversation, in place of that of its own id
    #[arg(long, value_name = "ID")]
    todo: Option<TodoId>,

    /// Report damaged lines, files that hold no conversation, and unreadable files in a folder, and
    /// continue after them; a conversation whose todo holds something else is then not an error
    #[arg(long)]
    lenient: bool,

    /// Keep recording what is written to the files, and to new ones in the folders, until Ctrl-C
    #[arg(long, conflicts_with_all = ["todo", "lenient"])]
    watch: bool,
}

#[derive(Serialize)]
struct ImportJson<'a> {
    id: Option<&'a str>,
    todo_id: &'a TodoId,
    messages: u64,
    recorded: u64,
    held: u64,
    blocks: u64,
}

impl Import {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if self.watch {
            return watch(self.files, globals, out);
        }
        let out = &out.finishing();
        let sources = Sources::new(&self.files)?.lenient(self.lenient);
        let mut survey = sources.read_once(out)?;
        survey.check_named(self.todo.as_ref())?;
        if survey.conversations == 0 {
            tell_skipped(out, &survey)?;
            return Ok(Outcome::Done);
        }
        let memory = store::open_for_writing(globals, out)?;
        let holders = Holders::new(&memory);
        survey.name_as_in(&holders);
        survey.tell_names();
        let mut recording = Recording::new(&holders, out, self.lenient, survey.messages);
        let mut conversations = survey.conversations();
        while recording.step(&mut conversations, self.todo.as_ref())? {}
        let refused = recording.end();
        tell_skipped(out, &survey)?;
        if refused > 0 {
            let what = if self.lenient { "skipped" } else { "not imported" };
            say(out, format!("{} {what}", text::count(refused, "conversation")))?;
        }
        Ok(Outcome::clean_if(self.lenient || refused == 0))
    }
}

/// Records what is written to the files, until Ctrl-C.
fn watch(files: Vec<PathBuf>, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
    for file in &files {
        let is_named = file.as_os_str() != "-";
        let found = is_named.then(|| std::fs::metadata(file)).transpose().map_err(|source| {
            CliError::Io { what: format!("{} could not be read", file.display()), source }
        })?;
        if !found.is_some_and(|found| found.is_file() || found.is_dir()) {
            return Err(CliError::Usage(format!(
                "{} can be read only once; --watch expects files and folders",
                file.display()
            )));
        }
    }
    let memory = store::open_for_writing(globals, out)?;
    let watch = Watch::new(files, &memory, out);
    let watched = watch.run(&|batch| print(out, &ImportJson::of_batch(batch)));
    // Its user expects that what comes later is recorded, too.
    watched.map_err(|error| if error.is_broken_pipe() { CliError::Unfollowed } else { error })?;
    Ok(Outcome::Done)
}

/// Whether a replay skips a conversation that its todo does not accept. It is no error if a log was
/// still being written when it was recorded.
pub(crate) fn is_passed(error: &foldback::Error, lenient: bool) -> bool {
    match error.kind() {
        ErrorKind::SourceChanged => true,
        ErrorKind::AlreadyExists => lenient,
        _ => false,
    }
}

impl<'a> ImportJson<'a> {
    fn of(taken: &'a Taken, recorded: &'a [Recorded]) -> Self {
        let Taken { todo, sourced, ready, .. } = taken;
        let id = sourced.conversation.id.as_deref();
        Self::of_batch(&Batch { id, todo, messages: *ready as u64, recorded })
    }

    fn of_batch(batch: &Batch<'a>) -> Self {
        let Batch { id, todo, messages, recorded } = *batch;
        Self {
            id,
            todo_id: todo,
            messages,
            recorded: recorded.len() as u64,
            // Another process recorded the others, before or meanwhile.
            held: messages.saturating_sub(recorded.len() as u64),
            blocks: recorded.iter().map(|recorded| recorded.closed.len() as u64).sum(),
        }
    }
}

/// Reports what a user might not expect.
pub(crate) fn tell(out: &Output, sourced: &Sourced, todo: &TodoId) {
    let conversation = &sourced.conversation;
    match &conversation.id {
        Some(id) if id != todo.as_str() => {
            out.note(format_args!("{id:?} goes into the todo {todo}"));
        }
        None => out.note(format_args!(
            "the conversation in {} has no id and goes into the todo {todo}",
            sourced.file
        )),
        Some(_) => {}
    }
    tell_odd(out, sourced);
}

/// Reports how much was skipped.
pub(crate) fn tell_skipped(out: &Output, survey: &Survey<'_>) -> Result<(), CliError> {
    survey.skipped().map_or(Ok(()), |skipped| say(out, skipped))
}

/// Prints a line for a person, or a note if results are JSON.
fn say(out: &Output, line: String) -> Result<(), CliError> {
    match out.is_json() {
        true => out.note(line),
        false => out.line(line)?,
    }
    Ok(())
}

/// Reports what is odd about a conversation.
pub(crate) fn tell_odd(out: &Output, sourced: &Sourced) {
    if out.is_quiet() {
        return;
    }
    for finding in sourced.findings() {
        out.note(format_args!("{}: {finding}", sourced.id()));
    }
}

fn print(out: &Output, imported: &ImportJson<'_>) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(imported);
    }
    let held = match imported.held {
        0 => String::new(),
        held => format!(" after {} already there", thousands(held)),
    };
    out.line(format!(
        "{}: {}{held}, {} closed",
        style::paint(style::NAME, imported.todo_id),
        text::count(imported.recorded, "message"),
        text::count(imported.blocks, "block"),
    ))
}
