//! The events that a chunker receives.

use foldback_core::{Message, Role, Timestamp, ToolCall, ToolCallId};
use std::borrow::Cow;

/// An event in a conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A message arrived.
    Message(Input<'a>),
    /// This many items of the todo list are open. This affects the task's complexity, and cuts
    /// nothing.
    OpenItems(u32),
    /// Whether the todo list says that the task is being wrapped up: blocks are finer for as long
    /// as it does.
    Closing(bool),
    /// The work goes to another todo, or to another branch of the conversation. What is open closes; if a call still
    /// waits for its result, it closes as soon as the result arrives.
    Switch,
    /// The conversation is over. What is open closes.
    End,
}

/// The parts of a message that the chunker examines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Input<'a> {
    /// The speaker.
    pub role: &'a Role,
    /// The text. Only the first 3,000 characters count.
    pub text: Cow<'a, str>,
    /// The tools that are called.
    pub calls: &'a [ToolCall],
    /// The call that is answered.
    pub answers: Option<&'a ToolCallId>,
    /// The speaker's name, if several people share a role; never a tool's name.
    pub speaker: Option<&'a str>,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// A vector of the text, of length 1 or all zeros; all vectors of a conversation have the same dimension.
    pub vector: Option<&'a [f32]>,
}

impl<'a> Input<'a> {
    /// Takes the parts of `message` that matter here.
    #[must_use]
    pub fn of(message: &'a Message) -> Self {
        let role = message.role();
        Self {
            role,
            text: message.text(),
            calls: message.tool_calls(),
            answers: message.tool_call_id(),
            speaker: if *role == Role::Tool { None } else { message.name() },
            at: message.timestamp(),
            vector: None,
        }
    }

    /// Returns the same input with a vector.
    #[must_use]
    pub fn with_vector(self, vector: &'a [f32]) -> Self {
        Self { vector: Some(vector), ..self }
    }

    /// Returns the same input without its text: answers of memory tools repeat old texts, which
    /// must not affect where the conversation is cut.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self { text: Cow::Borrowed(""), vector: None, ..self }
    }
}
