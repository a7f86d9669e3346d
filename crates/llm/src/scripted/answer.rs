//! What a scripted model answers, and how long it takes.

use crate::{ChatChunk, ChatResponse, ModelError, StopReason, Usage};
use foldback_core::{Estimate, Message, ToolCall, message_tokens};
use std::time::Duration;

/// One answer of a [`ScriptedModel`](crate::ScriptedModel): a text, tool calls, or an error, at
/// once or after a delay.
///
/// ```
/// use foldback_core::ToolCall;
/// use foldback_llm::Answer;
/// use std::time::Duration;
///
/// let _: Answer = "done".into();
/// let _: Answer = ToolCall::new("c1", "weather", r#"{"city": "杭州"}"#).into();
/// let _ = Answer::text("a long plan").after(Duration::from_secs(1)).paced(4, Duration::from_millis(20));
/// ```
#[derive(Debug)]
pub struct Answer {
    message: Message,
    delay: Duration,
    pieces: Vec<Piece>,
    usage: Option<Usage>,
    stop: StopReason,
    model: Option<String>,
    error: Option<ModelError>,
}

/// A piece of a streamed answer, and its delay after the piece before.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) wait: Duration,
    pub(super) chunk: ChatChunk,
}

impl Answer {
    /// Creates an answer that is a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Message::assistant(text).into()
    }

    /// Creates an answer of tool calls, in order; `text` may be empty.
    #[must_use]
    pub fn calls(text: &str, calls: Vec<ToolCall>) -> Self {
        Message::calls(text, calls).into()
    }

    /// Creates a text that is streamed in these pieces, each with its delay after the one before.
    #[must_use]
    pub fn pieces<'t>(pieces: impl IntoIterator<Item = (Duration, &'t str)>) -> Self {
        let mut whole = String::new();
        let mut chunks = Vec::new();
        for (wait, text) in pieces {
            whole.push_str(text);
            chunks.push(Piece { wait, chunk: ChatChunk::Text(text.to_owned()) });
        }
        Self { pieces: chunks, ..Self::text(&whole) }
    }

    /// Delays the answer by this long after the request.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Cuts the text and the arguments of the calls into pieces of this many characters, each with
    /// this delay after the one before. A caller of `complete` waits for all of them.
    #[must_use]
    pub fn paced(mut self, characters: usize, each: Duration) -> Self {
        let piece = |chunk| Piece { wait: each, chunk };
        let text = self.message.text().into_owned();
        self.pieces = cut(&text, characters).map(|t| piece(ChatChunk::Text(t))).collect();
        for (index, call) in self.message.tool_calls().iter().enumerate() {
            let mut head = (Some(call.id.as_str().to_owned()), Some(call.name.clone()));
            // A call without arguments still has one piece.
            let empty = call.arguments.is_empty().then(String::new);
            for arguments in cut(&call.arguments, characters).chain(empty) {
                let (id, name) = std::mem::take(&mut head);
                self.pieces.push(piece(ChatChunk::ToolCall { index, id, name, arguments }));
            }
        }
        self
    }

    /// Ends the answer with an error: a stream gives its pieces first.
    #[must_use]
    pub fn failing(self, error: ModelError) -> Self {
        Self { error: Some(error), ..self }
    }

    /// Sets the reason why the answer ended.
    #[must_use]
    pub fn stopped(self, stop: StopReason) -> Self {
        Self { stop, ..self }
    }

    /// Sets the usage, which is counted otherwise.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// Returns the delay before the first piece.
    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns the pieces of a stream, and its last item. `usage` has the tokens of the request.
    pub(super) fn play(
        self,
        name: &str,
        usage: Usage,
    ) -> (Vec<Piece>, Result<ChatResponse, ModelError>) {
        let mut pieces = self.pieces;
        if pieces.is_empty() && self.error.is_none() {
            // In one piece each.
            let whole = Self { pieces: Vec::new(), ..Self::from(self.message.clone()) };
            pieces = whole.paced(usize::MAX, Duration::ZERO).pieces;
        }
        if let Some(error) = self.error {
            return (pieces, Err(error));
        }
        let output = message_tokens(&Estimate, &self.message) as u64;
        let usage = self.usage.unwrap_or(Usage { output, ..usage });
        let model = self.model.unwrap_or_else(|| name.to_owned());
        (pieces, Ok(ChatResponse { message: self.message, usage, stop: self.stop, model }))
    }
}

impl From<Message> for Answer {
    fn from(message: Message) -> Self {
        let stop = match message.tool_calls() {
            [] => StopReason::End,
            _ => StopReason::ToolCalls,
        };
        Self {
            message,
            delay: Duration::ZERO,
            pieces: Vec::new(),
            usage: None,
            stop,
            model: None,
            error: None,
        }
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::text(&text)
    }
}

impl From<ToolCall> for Answer {
    fn from(call: ToolCall) -> Self {
        Self::calls("", vec![call])
    }
}

impl From<Vec<ToolCall>> for Answer {
    fn from(calls: Vec<ToolCall>) -> Self {
        Self::calls("", calls)
    }
}

impl From<ModelError> for Answer {
    fn from(error: ModelError) -> Self {
        Self::text("").failing(error)
    }
}

impl From<ChatResponse> for Answer {
    fn from(response: ChatResponse) -> Self {
        let ChatResponse { message, usage, stop, model } = response;
        Self { usage: Some(usage), stop, model: Some(model), ..Self::from(message) }
    }
}

/// Cuts a text into pieces of this many characters.
fn cut(text: &str, characters: usize) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(characters.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then(|| piece.to_owned())
    })
}
