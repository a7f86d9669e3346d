//! The places in a recorded conversation at which the model was asked.

use foldback_core::{Message, Role};

/// The places in a recorded conversation at which the model was asked: before each assistant message
/// except a first one; in a conversation without assistant messages, after each user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    talks: bool,
}

impl Calls {
    /// Returns the calls of a conversation.
    #[must_use]
    pub fn of(messages: &[Message]) -> Self {
        Self { talks: messages.iter().any(|message| *message.role() == Role::Assistant) }
    }

    /// Returns whether an assistant speaks in the conversation.
    #[must_use]
    pub fn has_assistant(self) -> bool {
        self.talks
    }

    /// Returns whether the model was asked before `message`, which has the index `at`.
    #[must_use]
    pub fn is_before(self, at: usize, message: &Message) -> bool {
        self.talks && at > 0 && *message.role() == Role::Assistant
    }

    /// Returns whether the model was asked after `message`.
    #[must_use]
    pub fn is_behind(self, message: &Message) -> bool {
        !self.talks && *message.role() == Role::User
    }
}
