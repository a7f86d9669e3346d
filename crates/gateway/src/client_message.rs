//! A message as a client sends it.

use crate::{Api, exact};
use foldback_core::{Content, Message, Part, Role};
use foldback_redaction::plain;
use foldback_tool::canonical_json;
use foldback_transcript::{anthropic, responses};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A message as a client sends it, and what is known of its content.
#[derive(Clone)]
pub(crate) struct ClientMessage {
    api: Api,
    pub(crate) json: Slice,
    /// Its place in the body of its request.
    pub(crate) place: Range<usize>,
    pub(crate) facts: Facts,
}

/// What is known of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The digest of its content, however it is written: cache marks, a string in place of one block of text,
    /// the order of keys, digits beyond the 64 bits of a number and the model's thinking make no difference.
    pub(crate) digest: blake3::Hash,
    /// Whether a model wrote it.
    pub(crate) is_models: bool,
    /// Whether it answers a call.
    pub(crate) is_result: bool,
    /// Whether a person asks something in it, or another agent in a person's place.
    pub(crate) is_asked: bool,
    /// Whether it calls a tool.
    pub(crate) has_calls: bool,
    /// Whether a model produced it, even if it is only thinking.
    pub(crate) is_given: bool,
    /// Whether the store has redaction marks in place of some of its content.
    pub(crate) is_redacted: bool,
    /// Whether it holds cache marks, and whether one of them requests an hour.
    pub(crate) is_marked: bool,
    pub(crate) is_long: bool,
}

impl ClientMessage {
    /// Returns its content as our messages: at least one.
    ///
    /// # Errors
    /// When it is not a message of its API.
    pub(crate) fn messages(&self) -> Result<Vec<Message>, String> {
        read(self.api, &self.json)
    }

    /// Returns the message at the same place of the body `to`, if it is a part of `from`.
    pub(crate) fn moved(&self, from: &Arc<String>, to: &Arc<String>) -> Self {
        let mut moved = self.clone();
        if Arc::ptr_eq(&moved.json.of, from) {
            moved.json.of = Arc::clone(to);
        }
        moved
    }
}

impl Deref for ClientMessage {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// A part of a text that is shared.
#[derive(Clone)]
pub(crate) struct Slice {
    of: Arc<String>,
    at: Range<usize>,
}

impl Slice {
    pub(crate) fn new(of: &Arc<String>, at: Range<usize>) -> Self {
        Self { of: Arc::clone(of), at }
    }
}

impl From<String> for Slice {
    fn from(text: String) -> Self {
        let at = 0..text.len();
        Self { of: Arc::new(text), at }
    }
}

impl Deref for Slice {
    type Target = str;

    fn deref(&self) -> &str {
        self.of.get(self.at.clone()).unwrap_or_default()
    }
}

/// Reads messages of clients, each of which comes again with every request: a message that was read once is
/// recognised by its bytes.
#[derive(Default)]
pub(crate) struct Digests {
    known: HashMap<blake3::Hash, Facts>,
    /// Whether the store redacts.
    pub(crate) redacts: bool,
}

/// How many messages are recognised by their bytes.
const MOST_KNOWN: usize = 100_000;

impl Digests {
    /// Reads the message at this place of its request's body.
    ///
    /// # Errors
    /// When it is not a message of this API.
    pub(crate) fn read(
        &mut self,
        api: Api,
        json: Slice,
        place: Range<usize>,
    ) -> Result<ClientMessage, String> {
        let bytes = blake3::Hasher::new().update(&[api as u8]).update(json.as_bytes()).finalize();
        let facts = match self.known.get(&bytes) {
            Some(known) => *known,
            None => {
                let facts = Facts::of(api, &json, self.redacts)?;
                if self.known.len() >= MOST_KNOWN {
                    self.known.clear();
                }
                self.known.insert(bytes, facts);
                facts
            }
        };
        Ok(ClientMessage { api, json, place, facts })
    }
}

#[cfg(test)]
impl Digests {
    /// Returns how many messages are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

impl Facts {
    /// Reads a message; `redacts` says whether the store redacts its secrets.
    ///
    /// # Errors
    /// When it is not a message of this API.
    pub(crate) fn of(api: Api, json: &str, redacts: bool) -> Result<Self, String> {
        // The digest of a text with a password would allow guesses to be tested against it.
        let kept = if redacts { plain(json) } else { Cow::Borrowed(json) };
        let is_redacted = kept != json;
        let messages = read(api, &kept)?;
        let is_models = messages.iter().any(|message| *message.role() == Role::Assistant);
        Ok(Self {
            digest: digest(&messages),
            is_models,
            is_result: messages.iter().any(|message| *message.role() == Role::Tool),
            is_asked: messages.iter().any(is_asked),
            has_calls: messages.iter().any(|message| !message.tool_calls().is_empty()),
            is_given: is_models || api == Api::Responses && begins_as_models(json),
            is_redacted,
            is_marked: is_marked(json),
            is_long: lives_long(json),
        })
    }
}

/// Returns whether a message is a user's text.
fn is_asked(message: &Message) -> bool {
    *message.role() == Role::User && !message.content().is_blank()
}

/// Returns whether a text holds cache marks.
pub(crate) fn is_marked(json: &str) -> bool {
    json.contains("\"cache_control\"")
}

/// Returns whether a cache mark among messages requests an hour.
pub(crate) fn lives_long(json: &str) -> bool {
    ["\"ttl\":\"1h\"", "\"ttl\": \"1h\""].iter().any(|mark| json.contains(mark))
}

/// Reads the content of a client's message.
fn read(api: Api, json: &str) -> Result<Vec<Message>, String> {
    let read = match api {
        Api::Messages => anthropic::read_message(json).map_err(|error| error.to_string())?,
        Api::Responses => read_items(json)?,
        _ => vec![Message::from_json(json).map_err(|error| error.to_string())?],
    };
    // A message without content is still a message.
    Ok(if read.is_empty() { vec![Message::user("")] } else { read })
}

/// Reads items of the Responses API: one, or those of one answer as a list.
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

/// The type of an item.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// Returns, for each message of a request, the range of its items in the list. In the Responses API, the items that a
/// model gave in one answer are one message, and any other item is a message by itself.
pub(crate) fn ranges(api: Api, items: &[&RawValue]) -> Vec<Range<usize>> {
    match api {
        Api::Responses => groups(items),
        _ => (0..items.len()).map(|n| n..n + 1).collect(),
    }
}

/// Groups the items of the Responses API into messages.
fn groups(items: &[&RawValue]) -> Vec<Range<usize>> {
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

/// Returns whether a model gave the item: thinking, text or a call.
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

/// Returns whether a message of the Responses API begins with an item that a model gave.
fn begins_as_models(json: &str) -> bool {
    let list = serde_json::from_str::<Vec<&RawValue>>(json);
    let first = list.ok().and_then(|list| list.first().copied());
    first.or_else(|| serde_json::from_str(json).ok()).is_some_and(is_models)
}

/// Returns the digest of messages.
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
            add(&canonical(&call.arguments));
        }
    }
    hasher.finalize()
}

/// Returns a part in its canonical form, without cache marks.
fn without_marks(json: &str) -> String {
    let Ok(serde_json::Value::Object(mut part)) = serde_json::from_str(json) else {
        return json.to_owned();
    };
    part.shift_remove("cache_control");
    canonical(&serde_json::Value::Object(part).to_string())
}

/// Returns a JSON text in its canonical form, with its numbers as clients send them back; another text as it is.
fn canonical(json: &str) -> String {
    match canonical_json(json) {
        Ok(canonical) => exact::in_64_bits(&canonical).into_owned(),
        Err(_) => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Facts;
    use crate::Api;
    use crate::model_answer::message_of;

    /// GW5: an answer is the one that was recorded, also if the client keeps 64 bits of each of its numbers.
    #[test]
    fn gw5_an_answer_is_known_by_what_clients_keep_of_its_numbers() {
        let wrote = "[123456789012345678901234567890,9007199254740993,100.0]";
        let sent = "[1.2345678901234568e+29,9007199254740992,100]";
        let digest = |json: &str| Facts::of(Api::Messages, json, false).unwrap().digest;
        let message = |numbers: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"读","input":{{"港口":{numbers}}}}}]}}"#
            )
        };
        let recorded = message_of(Api::Messages, &message(wrote)).unwrap();
        assert_eq!(recorded.get(), message(wrote), "its digits are kept");
        assert_eq!(digest(recorded.get()), digest(&message(sent)));
        let other = sent.replace("740992", "740994");
        assert_ne!(digest(recorded.get()), digest(&message(&other)));
    }
}
