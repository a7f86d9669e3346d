//! One response of the model: what it thought, said and called before the first output.

use super::content::Parts;
use super::entry::Entry;
use crate::draft::{Draft, list_of, push_member};
use crate::format::pairs::Turn;
use serde_json::value::RawValue;

/// A response that may still continue.
pub(super) struct Unit<'r> {
    draft: Draft,
    timestamp: Option<&'r RawValue>,
    parts: Parts,
    /// Reasoning items, as the API requires them back.
    reasoning: Vec<String>,
    calls: Vec<String>,
    /// What the items say in addition.
    items: Vec<String>,
}

impl<'r> Unit<'r> {
    pub(super) fn begin(entry: &Entry<'r>) -> Self {
        Self {
            draft: Draft::new("assistant", entry.line),
            timestamp: entry.time(),
            parts: Parts::default(),
            reasoning: Vec::new(),
            calls: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Keeps what an item says in addition to what was taken from it, and its time if that is not
    /// the time of the first.
    pub(super) fn keep_item(&mut self, entry: &Entry<'_>, mut item: String) {
        let time = entry.time().map(RawValue::get);
        if let Some(time) = time.filter(|time| self.timestamp.map(RawValue::get) != Some(time))
            && item.pop().is_some()
        {
            push_member("timestamp", time, &mut item);
            item.push('}');
        }
        self.items.push(item);
    }

    pub(super) fn say(&mut self, content: &RawValue) {
        self.parts.push_all(content);
    }

    pub(super) fn reason(&mut self, json: &str) {
        self.reasoning.push(json.to_owned());
    }

    /// Adds a call. Arguments that are not a JSON string become the text of their JSON.
    pub(super) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        self.draft.call(id, name, arguments);
        self.calls.push(id.to_owned());
    }

    /// Returns the response as a message; `context` says which model answered.
    pub(super) fn end(mut self, context: Option<&Entry<'r>>) -> Turn {
        self.parts.write(&mut self.draft);
        if !self.reasoning.is_empty() {
            self.draft.field("reasoning_items", &list_of(&self.reasoning));
        }
        if let Some(timestamp) = self.timestamp {
            self.draft.field("timestamp", timestamp.get());
        }
        for key in ["model", "effort"] {
            let value = context.and_then(|context| context.payload.get(key));
            if let Some(value) = value.filter(|value| value.get() != "null") {
                self.draft.keep(key, value.get());
            }
        }
        self.draft.keep("items", &list_of(&self.items));
        Turn { draft: self.draft, calls: self.calls, answers: None }
    }
}
