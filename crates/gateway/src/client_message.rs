//! A message as a client sends it.

use crate::Api;
use foldback_core::{Content, Message, Part, Role};
use foldback_tool::canonical_json;
use foldback_transcript::{anthropic, responses};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// A message as a client sends it, and what is known of what it says.
#[derive(Clone)]
pub(crate) struct ClientMessage {
    api: Api,
    pub(crate) json: String,
    /// What it says, whatever way it is written in: marks for the cache, a string in place of one block of text,
    /// the order of keys and the model's thinking make no difference.
    pub(crate) digest: blake3::Hash,
    /// Whether a model said it.
    pub(crate) is_models: bool,
    /// Whether it answers a call.
    pub(crate) is_result: bool,
    /// Whether it calls a tool.
    pub(crate) has_calls: bool,
}

impl ClientMessage {
    /// Reads one.
    ///
    /// # Errors
    /// When it is no message of this API.
    pub(crate) fn read(api: Api, json: &RawValue) -> Result<Self, String> {
        Digests::default().read(api, json)
    }

    /// What it says, in our messages: at least one.
    ///
    /// # Errors
    /// When it is no message of its API.
    pub(crate) fn messages(&self) -> Result<Vec<Message>, String> {
        read(self.api, &self.json)
    }
}

/// Reads messages of clients, each of which comes again with every request: what was read once is known by its
/// bytes.
#[derive(Default)]
pub(crate) struct Digests {
    known: HashMap<blake3::Hash, (blake3::Hash, [bool; 3])>,
}

/// So many messages are known by their bytes.
const MOST_KNOWN: usize = 100_000;

impl Digests {
    /// Reads one.
    ///
    /// # Errors
    /// When it is no message of this API.
    pub(crate) fn read(&mut self, api: Api, json: &RawValue) -> Result<ClientMessage, String> {
        let json = json.get();
        let bytes = blake3::Hasher::new().update(&[api as u8]).update(json.as_bytes()).finalize();
        let known = match self.known.get(&bytes) {
            Some(known) => *known,
            None => {
                let messages = read(api, json)?;
                let is_result = messages.iter().any(|message| *message.role() == Role::Tool);
                let is_models = messages.iter().any(|message| *message.role() == Role::Assistant);
                let has_calls = messages.iter().any(|message| !message.tool_calls().is_empty());
                let known = (digest(&messages), [is_models, is_result, has_calls]);
                if self.known.len() >= MOST_KNOWN {
                    self.known.clear();
                }
                self.known.insert(bytes, known);
                known
            }
        };
        let (digest, [is_models, is_result, has_calls]) = known;
        Ok(ClientMessage { api, json: json.to_owned(), digest, is_models, is_result, has_calls })
    }
}

/// What a message of a client says.
fn read(api: Api, json: &str) -> Result<Vec<Message>, String> {
    let read = match api {
        Api::Messages => anthropic::read_message(json).map_err(|error| error.to_string())?,
        Api::Responses => read_items(json)?,
        _ => vec![Message::from_json(json).map_err(|error| error.to_string())?],
    };
    // A message without content says nothing, and is one all the same.
    Ok(if read.is_empty() { vec![Message::user("")] } else { read })
}

/// What items of the Responses API say: one, or those of one answer as a list.
fn read_items(json: &str) -> Result<Vec<Message>, String> {
    let list = match json.trim_start().starts_with('[') {
        true => json.to_owned(),
        false => format!("[{json}]"),
    };
    let read = responses::read_items(&list).map_err(|error| error.to_string())?;
    if !read.is_empty() {
        return Ok(read);
    }
    let kinds: Vec<Kind> = serde_json::from_str(&list).map_err(|error| error.to_string())?;
    let names: Vec<_> = kinds.iter().map(|kind| kind.kind.as_deref().unwrap_or("item")).collect();
    Ok(vec![Message::system(&format!("[{}]", names.join(", ")))])
}

/// The kind of an item.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// The items of a request of the Responses API, as messages: those that a model gave in one answer together, as a
/// list, and any other by itself.
pub(crate) fn grouped(input: &RawValue) -> Result<Vec<Box<RawValue>>, String> {
    let raw = |json: String| RawValue::from_string(json).map_err(|error| error.to_string());
    if input.get().starts_with('"') {
        let item =
            format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":{}}}", input.get());
        return Ok(vec![raw(item)?]);
    }
    let items: Vec<&RawValue> = serde_json::from_str(input.get())
        .map_err(|_| "its input is neither a text nor a list of items".to_owned())?;
    let group = |group: Range<usize>| {
        let group = items.get(group).unwrap_or_default();
        let group: Vec<_> = group.iter().map(|item| item.get()).collect();
        match group.as_slice() {
            [one] => raw((*one).to_owned()),
            several => raw(format!("[{}]", several.join(","))),
        }
    };
    groups(&items).into_iter().map(group).collect()
}

/// Which items of the Responses API make up a message together.
pub(crate) fn groups(items: &[&RawValue]) -> Vec<Range<usize>> {
    let mut groups: Vec<(bool, Range<usize>)> = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let is_models = is_models(item);
        match groups.last_mut() {
            Some((true, group)) if is_models => group.end = n + 1,
            _ => groups.push((is_models, n..n + 1)),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Whether a model gave the item: what it thought, said or called.
pub(crate) fn is_models(item: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Item<'i> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<Cow<'i, str>>,
        #[serde(borrow, default)]
        role: Option<Cow<'i, str>>,
    }
    let Ok(item) = serde_json::from_str::<Item<'_>>(item.get()) else { return false };
    let kind = item.kind.as_deref().unwrap_or("message");
    kind == "reasoning"
        || kind.ends_with("_call")
        || kind == "message" && item.role.as_deref() == Some("assistant")
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
