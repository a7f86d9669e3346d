//! The formats, one file each, and how they are distinguished.

pub mod anthropic;
pub(crate) mod anthropic_blocks;
mod anthropic_body;
pub mod chat;
mod claude_code;
mod codex;
mod foldback_line;
mod foreign;
mod langchain;
pub(crate) mod lines;
mod opencode;
mod pairs;
pub mod responses;
mod wrapper;

pub(crate) use foreign::{describe_bytes, holds_messages};

use self::lines::Lines;
use self::wrapper::Wrapped;
use crate::conversion::Conversion;
use crate::object::Object;
use crate::record::{ROOM, Record};
use crate::scan::{check_depth, json_error};
use crate::{Conversation, Envelope, Error, Limits, Place};
use foldback_core::Message;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// A format from which conversations are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// `{"id", "messages": [...]}`, one conversation a line, with any other keys.
    FoldbackJsonLines,
    /// A bare array of messages.
    ChatCompletionsArray,
    /// A request body: `{"model", "messages": [...], "tools"}` or any other object with messages
    /// and without an id.
    ChatCompletionsBody,
    /// A request body of Anthropic Messages, a list of its messages, or either in a log line.
    AnthropicBody,
    /// A session log of Claude Code.
    ClaudeCodeLog,
    /// A session log of Codex.
    CodexLog,
    /// Messages as LangChain and LangGraph write them.
    LangChain,
    /// Items of OpenAI's Responses API.
    ResponsesBody,
    /// A session of OpenCode.
    #[serde(rename = "opencode_session")]
    OpenCodeSession,
}

impl Format {
    /// Returns the name by which messages and conversations of this format say where they came from.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FoldbackJsonLines => "foldback_json_lines",
            Self::ChatCompletionsArray => "chat_completions_array",
            Self::ChatCompletionsBody => "chat_completions_body",
            Self::AnthropicBody => "anthropic_body",
            Self::ClaudeCodeLog => "claude_code_log",
            Self::CodexLog => "codex_log",
            Self::LangChain => "lang_chain",
            Self::ResponsesBody => "responses_body",
            Self::OpenCodeSession => "opencode_session",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FoldbackJsonLines => "foldback JSON Lines",
            Self::ChatCompletionsArray => "a chat-completions array",
            Self::ChatCompletionsBody => "a chat-completions body",
            Self::AnthropicBody => "an Anthropic Messages body",
            Self::ClaudeCodeLog => "a session log of Claude Code",
            Self::CodexLog => "a session log of Codex",
            Self::LangChain => "a list of LangChain messages",
            Self::ResponsesBody => "items of the Responses API",
            Self::OpenCodeSession => "a session of OpenCode",
        })
    }
}

/// The formats that are tried, for the error when none fits.
pub(crate) const TRIED: &str = "Formats tried: foldback JSON Lines ({\"id\": ..., \"messages\": [...]} \
    on each line), a bare chat-completions array ([{\"role\": ..., \"content\": ...}, ...]), a \
    chat-completions body ({\"model\": ..., \"messages\": [...]}), an Anthropic Messages body, \
    session logs of Claude Code and Codex, sessions of OpenCode, and LangChain messages";

/// A format whose lines belong together.
pub(crate) struct Log {
    /// What one object says about its file; the flag says that it is the first in the file.
    pub(crate) fit: fn(&Object<'_>, bool) -> Fit,
    /// Reads all the records of an input.
    pub(crate) read: ReadLog,
    /// Whether a record says something that applies to those after it, up to the next such record.
    pub(crate) holds_on: fn(&Record) -> bool,
}

/// Reads all records of an input into conversations whose messages are still to be built. Those
/// that cannot be read are added to the last argument, and left out.
type ReadLog = fn(&[Record], Context<'_>, &mut Vec<Error>) -> Result<Vec<Conversion>, Error>;

/// What one object says about the file that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The file is certainly of this format.
    Yes,
    /// Such an object occurs in files of this format, besides messages.
    Maybe,
    /// The object shows nothing.
    No,
}

/// The formats whose lines belong together, in the order in which they are tried.
pub(crate) const LOGS: &[Log] = &[
    Log { fit: codex::fit, read: codex::read, holds_on: codex::holds_on },
    Log { fit: claude_code::fit, read: claude_code::read, holds_on: |_| false },
    Log { fit: langchain::fit, read: langchain::read, holds_on: |_| false },
];

/// Where a text comes from, and the limits on it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) place: &'a Place,
    pub(crate) limits: &'a Limits,
    /// The metadata from the file beside an agent's log: a JSON object.
    pub(crate) meta: Option<&'a str>,
}

impl Context<'_> {
    pub(crate) fn unknown(&self, found: impl Into<String>) -> Error {
        Error::Unknown { place: self.place.clone(), found: found.into() }
    }

    /// Returns a line of the same file.
    pub(crate) fn at(&self, line: u64) -> Place {
        Place { file: self.place.file.clone(), line }
    }

    /// Returns the error for a record of another shape: what was found, and what was expected.
    pub(crate) fn shape(&self, line: u64, what: impl Into<String>) -> Error {
        Error::Shape { place: self.at(line), what: what.into() }
    }

    /// Returns the error for a file of a known format that holds no message: what it holds, by kind.
    pub(crate) fn no_messages(&self, format: Format, seen: &BTreeMap<String, u64>) -> Error {
        let seen: Vec<_> = seen.iter().map(|(kind, count)| format!("{kind:?} ({count})")).collect();
        let seen = if seen.is_empty() { "nothing".to_owned() } else { seen.join(", ") };
        Error::NoMessages { place: self.place.clone(), format, seen }
    }
}

/// The shape of a JSON text that is one conversation.
enum Shape<'a> {
    FoldbackLine(Object<'a>),
    ChatBody(Object<'a>),
    ChatArray(Vec<&'a RawValue>),
    AnthropicBody(Wrapped<'a>),
    AnthropicArray(Vec<&'a RawValue>),
    OpenCodeSession(Object<'a>),
    LangChainBody(Object<'a>),
    LangChainArray(Vec<&'a RawValue>),
    /// A chat-completions body inside something else.
    WrappedChat(Wrapped<'a>),
    /// Known but not read, or unknown: a sentence without its full stop.
    Foreign(String),
}

impl<'a> Shape<'a> {
    fn of(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(match text.as_bytes().first() {
            Some(b'{') => Self::of_object(serde_json::from_str(text)?),
            Some(b'[') => Self::of_array(serde_json::from_str(text)?),
            _ => Self::Foreign(foreign::describe_text(text)),
        })
    }

    /// Returns whether its messages are converted.
    fn is_converted(&self) -> bool {
        !matches!(
            self,
            Self::FoldbackLine(_) | Self::ChatBody(_) | Self::ChatArray(_) | Self::Foreign(_)
        )
    }

    fn of_object(object: Object<'a>) -> Self {
        if foldback_line::is_converted(&object) {
            Self::FoldbackLine(object)
        } else if opencode::fits(&object) {
            Self::OpenCodeSession(object)
        } else if langchain::fits_body(&object) {
            Self::LangChainBody(object)
        } else if let Some(wrapped) = Wrapped::of(&object) {
            match wrapped.is_anthropic() {
                true => Self::AnthropicBody(wrapped),
                false => Self::WrappedChat(wrapped),
            }
        } else if let Some(found) = foreign::recognise_object(&object) {
            Self::Foreign(found.to_owned())
        } else if anthropic_body::fits(&object) {
            Self::AnthropicBody(Wrapped::bare(object))
        } else if foldback_line::fits(&object) {
            Self::FoldbackLine(object)
        } else if chat::fits(&object) {
            Self::ChatBody(object)
        } else {
            Self::Foreign(foreign::describe(&object))
        }
    }

    fn of_array(items: Vec<&'a RawValue>) -> Self {
        if langchain::fits_array(&items) {
            Self::LangChainArray(items)
        } else if let Some(found) = foreign::recognise_array(&items) {
            Self::Foreign(found)
        } else if anthropic_body::fits_array(&items) {
            Self::AnthropicArray(items)
        } else {
            Self::ChatArray(items)
        }
    }
}

/// Returns whether a JSON text has the shape of one conversation.
pub(crate) fn knows(text: &str) -> bool {
    !matches!(Shape::of(text), Ok(Shape::Foreign(_)) | Err(_))
}

/// Reads one JSON text as a conversation, whatever its format.
pub(crate) fn read(text: &str, context: Context<'_>) -> Result<Conversation, Error> {
    let shape = Shape::of(text).map_err(|error| json_error(&error, text, context.place))?;
    if shape.is_converted() {
        check_depth(text, context.place, &context.limits.without_depth(ROOM))?;
    }
    match shape {
        Shape::FoldbackLine(object) => foldback_line::read(text, &object, context),
        Shape::ChatBody(object) => chat::read_body(text, &object, context),
        Shape::ChatArray(items) => chat::read_array(text, &items, context),
        Shape::AnthropicBody(body) => anthropic_body::read_body(text, &body, context),
        Shape::AnthropicArray(items) => anthropic_body::read_array(text, &items, context),
        Shape::OpenCodeSession(session) => opencode::read(text, &session, context),
        Shape::LangChainBody(body) => langchain::read_body(text, &body, context),
        Shape::LangChainArray(items) => langchain::read_array(text, &items, context),
        Shape::WrappedChat(body) => wrapper::read_chat(text, &body, context),
        Shape::Foreign(found) => Err(context.unknown(found)),
    }
}

/// Returns the conversation in `text` whose messages are the values of `array`.
fn conversation(
    format: Format,
    id: Option<String>,
    text: &str,
    array: &str,
    values: &[&RawValue],
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let mut messages = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let place = || context.at(Lines::new(text, context.place.line).of(value.get()));
        let bytes = value.get().len() as u64;
        let limit = context.limits.message_bytes;
        if bytes > limit {
            let place = place();
            return Err(Error::LargeMessage { place, conversation: id, index, bytes, limit });
        }
        messages.push(Message::from_json(value.get()).map_err(|source| {
            let (place, conversation) = (place(), id.clone());
            Error::Message { place, conversation, index, source }
        })?);
    }
    let slices: Vec<&str> = values.iter().map(|value| value.get()).collect();
    let envelope = Envelope::around(format, text, array, &slices);
    Ok(Conversation { id, messages, envelope })
}

/// Returns the messages of an object, as values.
fn messages_of<'a>(
    object: &Object<'a>,
    context: Context<'_>,
) -> Result<(&'a str, Vec<&'a RawValue>), Error> {
    let mut all = object.0.iter().filter(|(key, _)| key == "messages").map(|(_, value)| *value);
    let value = all.next().ok_or_else(|| context.unknown(foreign::describe(object)))?;
    if all.next().is_some() {
        return Err(context.unknown("The key \"messages\" appears twice"));
    }
    let values = Object::array_of(value).ok_or_else(|| {
        context.unknown(format!(
            "The key \"messages\" holds {}, not a list",
            value.get().chars().take(40).collect::<String>()
        ))
    })?;
    Ok((value.get(), values))
}
