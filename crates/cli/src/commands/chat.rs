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
/// Each text that is typed is a turn of one conversation: a run of its own, with the flags of `foldback run`;
/// limits and --yes hold for each turn. What left the model's view is found and loaded in any later turn.
/// The conversation stays in the store: `chat --todo ID` and `run --todo ID` go on with it, `search`, `view`
/// and `export` look into it.
///
/// At a terminal lines can be edited and earlier ones brought back; a line that ends in a backslash goes on
/// with the next, and so does a text that is pasted. Ctrl-C ends the turn and not the conversation, Ctrl-D
/// leaves. /help lists what begins with a slash: /recall WORDS, /load REF, /blocks, /view, /list, /cost,
/// /policy [NAME], /quit. From a pipe each line is a turn; the exit code is 1 where one came to no answer.
///
/// JSON: for each turn the lines of `foldback run --json`, and for each command the document of `foldback
/// search`, `load`, `blocks` or `view`; /cost tells {"todo", "turns", "calls", "input_tokens",
/// "output_tokens", "cached_tokens", "cost"}, /policy {"policy", "about", "auto"}, /list the
/// todo list.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// Go on with this conversation: a run's, or any todo of the store; of a new name, begin one
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
            let what =
                "the memory engine keeps nothing, and a conversation is kept; use sqlite or redb";
            return Err(CliError::Usage(what.to_owned()));
        }
        let Self { todo, settings, limits } = self;
        chat::talk(todo, settings, limits, globals, out)
    }
}
