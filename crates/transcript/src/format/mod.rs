//! The formats, one file each, and how one is told from another.

pub mod anthropic;
pub mod chat;
mod foldback_line;
mod foreign;

pub(crate) use foreign::describe_bytes;

use crate::object::Object;
use crate::scan::json_error;
use crate::{Conversation, Envelope, Error, Limits, Place};
use foldback_core::Message;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// A format that conversations are read from.
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
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FoldbackJsonLines => "foldback JSON Lines",
            Self::ChatCompletionsArray => "a chat-completions array",
            Self::ChatCompletionsBody => "a chat-completions body",
        })
    }
}

/// What is tried, for the error that says that nothing fits.
pub(crate) const TRIED: &str = "Tried were foldback JSON Lines ({\"id\": ..., \"messages\": [...]} \
    on each line), a bare chat-completions array ([{\"role\": ..., \"content\": ...}, ...]) and a \
    chat-completions body ({\"model\": ..., \"messages\": [...]})";

/// Where a text comes from, and how much of it is taken.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) place: &'a Place,
    pub(crate) limits: &'a Limits,
}

impl Context<'_> {
    pub(crate) fn unknown(&self, found: impl Into<String>) -> Error {
        Error::Unknown { place: self.place.clone(), found: found.into() }
    }
}

/// Reads one JSON text as the conversation that it is, whatever the format.
pub(crate) fn read(text: &str, context: Context<'_>) -> Result<Conversation, Error> {
    let wrong = |error: serde_json::Error| json_error(&error, text, context.place);
    match text.as_bytes().first() {
        Some(b'{') => {
            let object: Object<'_> = serde_json::from_str(text).map_err(wrong)?;
            if let Some(found) = foreign::recognise_object(&object) {
                return Err(context.unknown(found));
            }
            if foldback_line::fits(&object) {
                foldback_line::read(text, &object, context)
            } else if chat::fits(&object) {
                chat::read_body(text, &object, context)
            } else {
                Err(context.unknown(foreign::describe(&object)))
            }
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
            match foreign::recognise_array(&items) {
                Some(found) => Err(context.unknown(found)),
                None => chat::read_array(text, &items, context),
            }
        }
        _ => Err(context.unknown(foreign::describe_text(text))),
    }
}

/// The conversation in `text` whose messages are the values of `array`.
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
        let place = || place_of(value.get(), text, context.place);
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

/// The messages of an object, as values.
fn messages_of<'a>(
    object: &Object<'a>,
    context: Context<'_>,
) -> Result<(&'a str, Vec<&'a RawValue>), Error> {
    let mut all = object.0.iter().filter(|(key, _)| key == "messages").map(|(_, value)| *value);
    let value = all.next().ok_or_else(|| context.unknown(foreign::describe(object)))?;
    if all.next().is_some() {
        return Err(context.unknown("The key \"messages\" stands there twice"));
    }
    let values = crate::object::array(value).ok_or_else(|| {
        context.unknown(format!(
            "The key \"messages\" holds {}, not a list",
            value.get().chars().take(40).collect::<String>()
        ))
    })?;
    Ok((value.get(), values))
}

/// Where in the file `slice`, a part of `text`, begins.
fn place_of(slice: &str, text: &str, begin: &Place) -> Place {
    let at = (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let breaks = text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count();
    Place { file: begin.file.clone(), line: begin.line + breaks as u64 }
}
