//! A message as a client sends it.

use crate::Api;
use foldback_core::{Content, Message, Part};
use foldback_tool::canonical_json;
use foldback_transcript::anthropic;
use serde_json::value::RawValue;

/// A message as a client sends it, and what it says.
pub(crate) struct ClientMessage {
    pub(crate) json: String,
    /// At least one.
    pub(crate) messages: Vec<Message>,
    /// What it says, whatever way it is written in: marks for the cache, a string in place of one block of text,
    /// the order of keys and the model's thinking make no difference.
    pub(crate) digest: blake3::Hash,
}

impl ClientMessage {
    /// Reads one.
    ///
    /// # Errors
    /// When it is no message of this API.
    pub(crate) fn read(api: Api, json: &RawValue) -> Result<Self, String> {
        let json = json.get();
        let read = match api {
            Api::Messages => anthropic::read_message(json).map_err(|error| error.to_string())?,
            _ => vec![Message::from_json(json).map_err(|error| error.to_string())?],
        };
        // A message without content says nothing, and is one all the same.
        let messages = if read.is_empty() { vec![Message::user("")] } else { read };
        let digest = digest(&messages);
        Ok(Self { json: json.to_owned(), messages, digest })
    }
}

/// What messages say.
fn digest(messages: &[Message]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    };
    for message in messages {
        add(message.role().as_str());
        add(message.name().unwrap_or_default());
        add(message.tool_call_id().map_or("", |id| id.as_str()));
        match message.content() {
            Content::Empty => {}
            Content::Text(text) if text.trim().is_empty() => {}
            Content::Text(text) => add(text.trim()),
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Text(text) if text.trim().is_empty() => {}
                        Part::Text(text) => add(text.trim()),
                        Part::Other(json) => add(&without_marks(json)),
                    }
                }
            }
        }
        for call in message.tool_calls() {
            add(call.id.as_str());
            add(&call.name);
            add(&canonical_json(&call.arguments).unwrap_or_else(|_| call.arguments.clone()));
        }
    }
    hasher.finalize()
}

/// A part in its one form, without the marks for a cache.
fn without_marks(json: &str) -> String {
    let Ok(serde_json::Value::Object(mut part)) = serde_json::from_str(json) else {
        return json.to_owned();
    };
    part.shift_remove("cache_control");
    let text = serde_json::Value::Object(part).to_string();
    canonical_json(&text).unwrap_or(text)
}
