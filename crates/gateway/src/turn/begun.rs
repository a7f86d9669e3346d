//! A turn that a client may break off: the part of the answer that it keeps follows what it did not see.

use super::edits::{elements, members, string};
use super::parked::is_thought;
use crate::client_message::Facts;
use crate::{Api, exact};
use foldback::ParkedName;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The rounds of a turn that only our tools took part in. A client that breaks off keeps what it has seen. Thinking
/// is bound to what preceded it, so what the client has not seen must be put back there.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Begun {
    rounds: Vec<Round>,
}

#[derive(Serialize, Deserialize)]
struct Round {
    /// The blocks or items that the client saw.
    shown: Vec<Value>,
    /// The model's messages, and our answers.
    messages: Vec<Value>,
}

/// Returns the name under which the turn that answers each message is parked: its digest, and how often it
/// occurred before.
pub(super) fn names(said: &[Facts]) -> Vec<ParkedName> {
    let mut counts: HashMap<blake3::Hash, u64> = HashMap::new();
    let mut names = Vec::with_capacity(said.len());
    let fresh = blake3::Hasher::new_derive_key("foldback 2026-11-23 begun turns");
    for one in said {
        let mut hasher = fresh.clone();
        let count = counts.entry(one.digest).or_default();
        hasher.update(one.digest.as_bytes()).update(&count.to_le_bytes());
        *count += 1;
        names.push(*hasher.finalize().as_bytes());
    }
    names
}

impl Begun {
    /// Adds a round: what the client saw of the model's message, and everything that replaces it in requests.
    pub(super) fn push(&mut self, api: Api, shown: &Value, messages: &[Value]) {
        let list = if api == Api::Messages { &shown["content"] } else { shown };
        let shown = list.as_array().cloned().unwrap_or_default();
        self.rounds.push(Round { shown, messages: messages.to_vec() });
    }

    pub(super) fn to_json(&self) -> String {
        exact::restored(serde_json::to_string(self).unwrap_or_default())
    }

    pub(super) fn from_json(json: &str) -> Option<Self> {
        serde_json::from_str(&exact::marked(json)).ok()
    }

    /// Returns what replaces a message in requests of which the client keeps only the beginning; `None` if it does
    /// not begin as this turn did.
    pub(super) fn around(&self, api: Api, own: &[&RawValue]) -> Option<Vec<Value>> {
        let parts = parts_of(api, own)?;
        let keeps_thoughts = parts.iter().any(is_thought);
        let mut rest = parts.as_slice();
        let mut messages = Vec::new();
        for round in &self.rounds {
            let shown = round.shown.iter().filter(|part| keeps_thoughts || !is_thought(part));
            let shown: Vec<_> = shown.filter(|part| !is_empty(part)).collect();
            let begins = rest.get(..shown.len());
            if !begins
                .is_some_and(|own| own.iter().zip(&shown).all(|(own, shown)| is_same(own, shown)))
                || messages.is_empty() && shown.is_empty()
            {
                break;
            }
            messages.extend(round.messages.iter().cloned());
            rest = rest.get(shown.len()..).unwrap_or_default();
        }
        if messages.is_empty() {
            return None;
        }
        let mut rest = rest.to_vec();
        for block in rest.iter_mut().filter_map(Value::as_object_mut) {
            // If the client has set the cache mark, it ends up at the end.
            block.shift_remove("cache_control");
        }
        match api {
            Api::Messages if rest.is_empty() => {}
            Api::Messages => messages.push(json!({ "role": "assistant", "content": rest })),
            _ => messages.extend(rest),
        }
        Some(messages)
    }
}

/// Returns the blocks of a message, or the items that make one up.
fn parts_of(api: Api, own: &[&RawValue]) -> Option<Vec<Value>> {
    let read = |raw: &&RawValue| exact::read(raw.get());
    match (api, own) {
        (Api::Messages, [message]) => {
            let content = *members(message.get())?.get("content")?;
            match string(content) {
                Some(text) => Some(vec![json!({ "type": "text", "text": text })]),
                None => elements(content.get())?.iter().map(read).collect(),
            }
        }
        (Api::Responses, items) => items.iter().map(read).collect(),
        _ => None,
    }
}

fn is_empty(part: &Value) -> bool {
    part["type"] == "text" && part["text"].as_str().is_none_or(|text| text.trim().is_empty())
}

/// Returns whether a client's block or item is the one that it was given: clients drop and add members without
/// content.
fn is_same(own: &Value, shown: &Value) -> bool {
    let said = |part: &Value| {
        let mut said: Vec<String> = Vec::new();
        for path in
            ["/type", "/signature", "/data", "/encrypted_content", "/call_id", "/content/0/text"]
        {
            said.push(part.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        said.push(part["text"].as_str().unwrap_or_default().trim().to_owned());
        said
    };
    said(own) == said(shown)
}
