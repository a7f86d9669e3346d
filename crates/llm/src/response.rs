//! What a model answers.

use crate::ModelError;
use foldback_core::Message;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatResponse {
    /// The assistant's message, with its tool calls.
    pub message: Message,
    /// The tokens it took.
    pub usage: Usage,
    /// Why the answer ended.
    pub stop: StopReason,
    /// The model that answered, as the provider names it.
    pub model: String,
}

impl ChatResponse {
    /// Returns the answer as a stream of the fewest pieces: its text, each call, and the whole.
    #[must_use]
    pub fn into_chunks(self) -> Vec<ChatChunk> {
        let text = self.message.text().into_owned();
        let text = (!text.is_empty()).then_some(ChatChunk::Text(text));
        let calls = self.message.tool_calls().iter().enumerate();
        let calls = calls.map(|(index, call)| ChatChunk::ToolCall {
            index,
            id: Some(call.id.as_str().to_owned()),
            name: Some(call.name.clone()),
            arguments: call.arguments.clone(),
        });
        let pieces: Vec<_> = text.into_iter().chain(calls).collect();
        pieces.into_iter().chain([ChatChunk::Done(Box::new(self))]).collect()
    }
}

/// The tokens of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the request, including those of the cache.
    pub input: u64,
    /// The tokens of the answer.
    pub output: u64,
    /// Of the input, what was read from the cache.
    pub cached_read: u64,
    /// Of the input, what was written into the cache.
    pub cached_write: u64,
}

/// Adds up; a sum that overflows stays at the maximum, since providers may report anything.
impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached_read = self.cached_read.saturating_add(other.cached_read);
        self.cached_write = self.cached_write.saturating_add(other.cached_write);
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had finished.
    End,
    /// It called tools.
    ToolCalls,
    /// It reached the limit of tokens: the end is missing.
    Length,
    /// The provider withheld something.
    Filtered,
    /// A reason that is not known here.
    Other(String),
}

impl StopReason {
    /// Returns why the answer is not whole; `None` if it is, or for a reason that is not known here.
    #[must_use]
    pub fn incomplete(&self) -> Option<&'static str> {
        match self {
            Self::End | Self::ToolCalls | Self::Other(_) => None,
            Self::Length => Some("the answer reached the limit of its tokens"),
            Self::Filtered => Some("the provider withheld the answer, or a part of it"),
        }
    }
}

/// A piece of an answer that is being written.
#[derive(Clone, Debug, PartialEq)]
pub enum ChatChunk {
    /// More text.
    Text(String),
    /// More of a tool call. Its first piece has the id and the name; a call that never gets a name
    /// appears only in [`Done`](Self::Done).
    ToolCall {
        /// Which call, from 0 on.
        index: usize,
        /// Its id.
        id: Option<String>,
        /// Its tool.
        name: Option<String>,
        /// More of its arguments.
        arguments: String,
    },
    /// The answer broke off, and is requested again: its pieces so far are void, and it begins anew.
    Again,
    /// All of it, at the end.
    Done(Box<ChatResponse>),
}

/// An answer as it is being written.
pub type ChatStream<'a> = BoxStream<'a, Result<ChatChunk, ModelError>>;
