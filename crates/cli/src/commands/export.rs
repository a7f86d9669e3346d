//! `foldback export`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{self, Output};
use crate::store;
use clap::Args;
use foldback::{AuditEvent, Memory};
use foldback_gateway::Branches;

/// Print a todo's conversation as one line of foldback JSON Lines
///
/// Every message is exactly as it was recorded: the form of its numbers, its escapes, the order of
/// its keys, and keys that foldback does not know.
///
/// A damaged message is an error that names it. With --lenient the line holds every intact message and, after its other
/// keys, "missing": [the numbers of the other messages], counted from 0; stderr says what is wrong with each, and the
/// exit code is 1.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback export --todo coding-session > session.jsonl
  foldback export --todo coding-session --reveal > as-it-came.jsonl
  foldback export --todo coding-session --lenient > what-is-whole.jsonl
  foldback export --todo claude-cli-3f2a91c4d07b --branches")]
pub(crate) struct Export {
    #[command(flatten)]
    todo: TodoArg,

    /// Print what a client sent through the gateway, each branch of its conversation as one line: {"todo_id", "branch",
    /// "messages"}, every message exactly as the client sent it, in the order in which the branches began
    #[arg(long)]
    branches: bool,

    /// Put redacted and sealed text back in its place, byte for byte, with the key in FOLDBACK_REDACTION_KEY or in the
    /// file of memory.redaction_key_file. Messages that the key does not open keep their marks; stderr names them, and
    /// the exit code is 1
    #[arg(long, conflicts_with = "branches")]
    reveal: bool,

    /// Print every intact message although others are damaged, and report the missing ones
    #[arg(long, conflicts_with_all = ["branches", "reveal"])]
    lenient: bool,
}

impl Export {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let todo = &self.todo.todo;
        let memory = match self.reveal {
            true => store::open_to_reveal(globals)?,
            false => store::open_for_reading(globals)?,
        };
        let what = if self.reveal { "export --reveal" } else { "export" };
        memory.audit().note(&AuditEvent { todo: Some(todo), what, ..AuditEvent::default() })?;
        if self.branches {
            return self.print_branches(&memory, out);
        }
        if self.lenient {
            return self.print_salvage(&memory, out);
        }
        let (conversation, sealed) = match self.reveal {
            true => memory.conversations().export_revealed_in_part(todo)?,
            false => (memory.conversations().export(todo)?, Vec::new()),
        };
        let mut line = conversation.to_json_line();
        line.push('\n');
        out.json_bytes(line.as_bytes())?;
        for error in &sealed {
            output::error(format_args!("the marks stay: {}", error.sentence()));
        }
        Ok(Outcome::clean_if(sealed.is_empty()))
    }

    /// Prints the intact messages of a damaged conversation.
    fn print_salvage(&self, memory: &Memory, out: &Output) -> Result<Outcome, CliError> {
        let salvage = memory.conversations().salvage(&self.todo.todo)?;
        let mut line = salvage.conversation.to_json_line();
        if !salvage.missing.is_empty() {
            let numbers = salvage.missing.iter().map(|(seq, _)| seq.0.to_string());
            let numbers = numbers.collect::<Vec<_>>().join(",");
            // The line is an object that has keys already.
            line.truncate(line.len() - "}".len());
            line.push_str(&format!(",\"missing\":[{numbers}]}}"));
        }
        line.push('\n');
        out.json_bytes(line.as_bytes())?;
        let is_whole = salvage.is_whole();
        for (seq, error) in salvage.missing {
            let why = CliError::from(error).sentence();
            output::error(format_args!("message {seq} is missing: {why}"));
        }
        for error in salvage.beside {
            output::error(CliError::from(error).sentence());
        }
        Ok(Outcome::clean_if(is_whole))
    }

    fn print_branches(&self, memory: &Memory, out: &Output) -> Result<Outcome, CliError> {
        let todo = &self.todo.todo;
        let sent = memory.sent(todo, 0, usize::MAX)?;
        let branches = Branches::of(&sent);
        for (n, tip) in (1..).zip(branches.tips()) {
            let own = branches.branch(tip).into_iter().filter_map(|n| sent.get(n as usize));
            let messages: Vec<_> = own.map(|one| one.json.as_str()).collect();
            // The output is one line: breaks can only occur between values.
            let messages = messages.join(",").replace(['\n', '\r'], " ");
            // A todo's id needs no escapes.
            let line =
                format!("{{\"todo_id\":\"{todo}\",\"branch\":{n},\"messages\":[{messages}]}}\n");
            out.json_bytes(line.as_bytes())?;
        }
        if sent.is_empty() {
            out.note(format_args!("no client has sent anything in {todo} through the gateway"));
        }
        Ok(Outcome::clean_if(!sent.is_empty()))
    }
}
