//! A summary and the last messages: what LangChain's summarization does.
//!
//! When the messages (the instructions in front do not count) reach a number of tokens and the model is to speak next, everything but the
//! last messages is replaced by one user message that sums it up, and is gone for good. The next
//! summary is made of the one before and of what leaves then. The cut never parts a call from its
//! results: it moves back to the message that calls.

use crate::Counters;
use crate::extractive::SUMMARY_TOKENS;
use crate::log::Log;
use crate::policy::{self, Rule};
use crate::summarizer::Summarizer;
use foldback_core::{ContextManager, Message, SideCall, TodoId};

/// When a summary is made, and of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryTopN {
    /// From so many tokens on the history is summed up.
    pub trigger_tokens: usize,
    /// So many messages at the end stay as they are; a unit that the cut would part stays whole.
    pub keep_messages: usize,
    /// The greatest number of tokens of a summary.
    pub summary_tokens: usize,
}

impl Default for SummaryTopN {
    /// 40,000 tokens (a choice of this crate: LangChain has no trigger of its own), the last 20
    /// messages, a summary of at most 2,000 tokens.
    fn default() -> Self {
        Self { trigger_tokens: 40_000, keep_messages: 20, summary_tokens: SUMMARY_TOKENS }
    }
}

impl SummaryTopN {
    /// A context that holds nothing yet.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        let summarizer = Summarizer::new(self.summary_tokens);
        policy::start(Summing { config: self, summarizer }, todo, tokens)
    }
}

struct Summing {
    config: SummaryTopN,
    summarizer: Summarizer,
}

impl Rule for Summing {
    fn again(&self) -> Self {
        Self { config: self.config, summarizer: Summarizer::new(self.config.summary_tokens) }
    }

    fn apply(&mut self, log: &mut Log) {
        let size = log.tokens() - log.head_tokens();
        if !log.is_model_next() || size < self.config.trigger_tokens {
            return;
        }
        let newest = log.history().len().saturating_sub(self.config.keep_messages);
        let gone = log.drop_front(log.cut_at_or_before(newest));
        if let Some(summary) = self.summarizer.sum_up(&gone, log) {
            log.set_lead(Some(Message::user(&summary)));
        }
    }

    fn side_calls(&mut self) -> Vec<SideCall> {
        self.summarizer.side_calls()
    }
}
