//! Where in a recorded conversation the model was asked.

use foldback_core::{Message, Role};

/// Where in a recorded conversation the model was asked: in front of each assistant message but a
/// first one; in a conversation without any, behind each user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    talks: bool,
}

impl Calls {
    /// The calls of a conversation.
    #[must_use]
    pub fn of(messages: &[Message]) -> Self {
        Self { talks: messages.iter().any(|message| *message.role() == Role::Assistant) }
    }

    /// Whether an assistant speaks in the conversation.
    #[must_use]
    pub fn has_assistant(self) -> bool {
        self.talks
    }

    /// Whether the model was asked in front of `message`, which is the one at the index `at`.
    #[must_use]
    pub fn is_before(self, at: usize, message: &Message) -> bool {
        self.talks && at > 0 && *message.role() == Role::Assistant
    }

    /// Whether the model was asked behind `message`.
    #[must_use]
    pub fn is_behind(self, message: &Message) -> bool {
        !self.talks && *message.role() == Role::User
    }
}
