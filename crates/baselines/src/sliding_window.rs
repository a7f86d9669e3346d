//! The last messages and nothing else: what OpenManus does.
//!
//! OpenManus cuts wherever the hundredth message happens to be. Here the cut never separates a call
//! from its results, and the requests stay valid: if the window would not begin with a user's message,
//! the last one before it is put at the front.

use crate::Counters;
use crate::log::Log;
use crate::policy::{self, Rule};
use foldback_core::{ContextManager, Message, Role, TodoId};

/// A policy that keeps the last messages, and the instructions before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// The maximum number of messages that are kept. A unit that the cut would split leaves whole,
    /// unless it is the newest: that stays whole.
    pub keep_messages: usize,
}

impl Default for SlidingWindow {
    /// Returns the default: the last 100 messages.
    fn default() -> Self {
        Self { keep_messages: 100 }
    }
}

impl SlidingWindow {
    /// Returns an empty context.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        policy::start(Window { config: self, question: None }, todo, tokens)
    }
}

struct Window {
    config: SlidingWindow,
    /// The last user's message that left.
    question: Option<Message>,
}

impl Rule for Window {
    fn again(&self) -> Self {
        Self { config: self.config, question: None }
    }

    fn apply(&mut self, log: &mut Log) {
        let len = log.history().len();
        if len <= self.config.keep_messages {
            return;
        }
        let next = log.cut_at_or_behind(len - self.config.keep_messages);
        let cut = if next < len { next } else { log.cut_at_or_before(len - 1) };
        let gone = log.drop_front(cut);
        let asked = gone.iter().rfind(|entry| *entry.recorded().role() == Role::User);
        if let Some(asked) = asked {
            // A pinned message is shown anyway.
            self.question = (!asked.is_pinned()).then(|| asked.recorded().clone());
        }
        let first = log.history().front().map(|entry| entry.recorded().role());
        let lacks_question = first.is_some_and(|role| *role != Role::User);
        if asked.is_some() || lacks_question != log.lead().is_some() {
            log.set_question(self.question.clone().filter(|_| lacks_question));
        }
    }
}
