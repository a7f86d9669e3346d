//! Clearing old tool results once the request is large: Anthropic's context editing
//! (`clear_tool_uses_20250919`).
//!
//! The original edits each request on the server, while the client keeps the whole conversation. So the
//! size of the whole conversation decides, and once it is reached, every request is edited. The
//! defaults are the original's: calls are kept, no tool is exempt, and no minimum number of tokens is
//! required (`clear_at_least`). A result that the model has not seen yet is not cleared.

use crate::Counters;
use crate::log::Log;
use crate::masks::Masks;
use crate::policy::{self, Rule};
use foldback_core::{ContextManager, TodoId};

/// The text in place of a cleared result.
const PLACEHOLDER: &str = "[result cleared]";

/// A policy that, above a size, clears all tool results but the last few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClearToolResults {
    /// The number of tokens in the whole conversation above which results are cleared.
    pub trigger_tokens: usize,
    /// The number of the newest results that are kept.
    pub keep_results: usize,
}

impl Default for ClearToolResults {
    /// Above 100,000 tokens, all but the last 3.
    fn default() -> Self {
        Self { trigger_tokens: 100_000, keep_results: 3 }
    }
}

impl ClearToolResults {
    /// Returns an empty context.
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
