//! Clearing old tool results once the request is large: Anthropic's context editing
//! (`clear_tool_uses_20250919`).
//!
//! The original edits each request on the server, while the client keeps the whole conversation; so
//! the size that decides is the whole one, and once it is reached every request is edited. The
//! defaults are the original's: what is called stays, no tool is excepted, and no least number of
//! tokens is asked for (`clear_at_least`). A result that the model has not seen yet is not cleared.

use crate::Counters;
use crate::log::Log;
use crate::masks::Masks;
use crate::policy::{self, Rule};
use foldback_core::{ContextManager, TodoId};

/// What stands in the place of a cleared result.
const PLACEHOLDER: &str = "[result cleared]";

/// Over a size, all tool results but the last few are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClearToolResults {
    /// Results are cleared when the whole conversation is over so many tokens.
    pub trigger_tokens: usize,
    /// So many of the newest results stay.
    pub keep_results: usize,
}

impl Default for ClearToolResults {
    /// Over 100,000 tokens, all but the last 3.
    fn default() -> Self {
        Self { trigger_tokens: 100_000, keep_results: 3 }
    }
}

impl ClearToolResults {
    /// A context that holds nothing yet.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        policy::start(Clearing { config: self, masks: Masks::default() }, todo, tokens)
    }
}

struct Clearing {
    config: ClearToolResults,
    masks: Masks,
}

impl Rule for Clearing {
    fn again(&self) -> Self {
        Self { config: self.config, masks: Masks::default() }
    }

    fn apply(&mut self, log: &mut Log) {
        self.masks.see(log);
        if log.kept_tokens() > self.config.trigger_tokens {
            self.masks.apply(log, self.config.keep_results, |_| PLACEHOLDER.to_owned());
        }
    }
}
