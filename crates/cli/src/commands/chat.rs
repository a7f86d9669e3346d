//! `foldback chat`.

use crate::chat;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::run::{Limits, RunSettings};
use clap::Args;
use foldback_core::TodoId;
use foldback_kv::Engine;

/// Talk with the agent, turn by turn
///
/// Each text that is typed is a turn of one conversation: a run of its own, with the flags of `foldback run`; limits
/// and --yes apply to each turn. What has left the model's view can be found and loaded in any later turn. The
/// conversation stays in the store: `chat --todo ID` and `run --todo ID` continue it, and `search`, `view` and `export`
/// read it.
///
/// At a terminal, lines can be edited and earlier ones recalled; a line that ends in a backslash continues on the next,
/// and so does pasted text. Ctrl-C ends the turn but not the conversation; Ctrl-D leaves. /help lists the commands that
/// begin with a slash: /recall WORDS, /load REF, /blocks, /view, /list, /cost, /policy [NAME], /quit. From a pipe, each
/// line is a turn; the exit code is 1 if a turn had no answer.
///
/// JSON: for each turn the lines of `foldback run --json`, and for each command the document of `foldback
/// search`, `load`, `blocks` or `view`; /cost prints {"todo", "turns", "calls", "input_tokens",
/// "output_tokens", "cached_tokens", "cost"}, /policy {"policy", "about", "auto"}, /list the
/// todo list.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// Continue this conversation: a run's, or any todo of the store; a new name begins one
    #[arg(long, value_name = "ID")]
    todo: Option<TodoId>,

    #[command(flatten)]
    settings: RunSettings,

    #[command(flatten)]
    limits: Limits,
}

const EXAMPLES: &str = "\
Examples:
  foldback chat --model gpt-5.6-mini
  foldback chat --todo harbour
  printf 'Which gate?\\nAnd when?\\n' | foldback chat --todo trip --yes";

impl Chat {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if globals.engine() == Engine::Memory {
            let what = "the memory engine keeps nothing, but a conversation has to be kept; use sqlite or redb";
            return Err(CliError::Usage(what.to_owned()));
        }
        let Self { todo, settings, limits } = self;
        chat::talk(todo, settings, limits, globals, out)
    }
}
