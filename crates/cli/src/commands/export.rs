//! `foldback export`.

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::Args;
use foldback::Memory;
use foldback_gateway::Branches;

/// Print a todo's conversation as one line of foldback JSON Lines
///
/// Every message is exactly what was recorded: its number forms, its escapes, the order of its
/// keys, and keys that foldback does not know.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback export --todo coding-session > session.jsonl
  foldback export --todo claude-cli-3f2a91c4d07b --branches")]
pub(crate) struct Export {
    #[command(flatten)]
    todo: TodoArg,

    /// Print what a client sent through the gateway, each branch of its conversation as one line: {"todo_id", "branch",
    /// "messages"}, every message exactly as the client sent it; the branch that was begun first comes first
    #[arg(long)]
    branches: bool,
}

impl Export {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        if self.branches {
            return self.print_branches(&memory, out);
        }
        let conversation = memory.conversations().export(&self.todo.todo)?;
        let mut line = conversation.to_json_line();
        line.push('\n');
        out.json_bytes(line.as_bytes())?;
        Ok(Outcome::Done)
    }

    fn print_branches(&self, memory: &Memory, out: &Output) -> Result<Outcome, CliError> {
        let todo = &self.todo.todo;
        let sent = memory.sent(todo, 0, usize::MAX)?;
        let branches = Branches::of(&sent);
        for (n, tip) in (1..).zip(branches.tips()) {
            let own = branches.branch(tip).into_iter().filter_map(|n| sent.get(n as usize));
            let messages: Vec<_> = own.map(|one| one.json.as_str()).collect();
            // A line is one line: breaks can only stand between values.
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
