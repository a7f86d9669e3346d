//! Streams of chat-completions.

use super::edits::{Edits, members};
use super::failed::Failed;
use super::wire::{Fate, Heard, Wire};
use crate::Api;
use serde_json::{Map, Value, json};

/// What separates the text of one answer from that of the next; a client shows them as one text.
pub(super) const BETWEEN: &str = "\n\n";

/// Streams of chat-completions: pieces of one message.
#[derive(Default)]
pub(super) struct Chat {
    /// The ids and names of the first answer: each piece of the others is given the same.
    name: Map<String, Value>,
    /// The answer that the client's last text came from.
    words_of: Option<usize>,
}

impl Wire for Chat {
    fn fate(&mut self, heard: &mut Heard, data: &str) -> Fate {
        if data.trim() == "[DONE]" {
            heard.is_over = true;
            return Fate::Held;
        }
        let Ok(mut chunk) = serde_json::from_str::<Value>(data) else { return Fate::Pass };
        heard.count(Api::ChatCompletions, &chunk);
        let choice = chunk["choices"].as_array().and_then(|choices| choices.first().cloned());
        let Some(mut choice) = choice else {
            // It reports the usage, or is of an unknown kind.
            return if chunk["choices"].is_array() { Fate::Held } else { Fate::Pass };
        };
        if !choice.is_object() {
            return Fate::Pass;
        }
        if self.name.is_empty() {
            let named = ["id", "created"].map(|key| (key.to_owned(), chunk[key].clone()));
            self.name.extend(named);
        }
        let is_end = choice["finish_reason"].is_string();
        let is_changed = choice.get_mut("delta").is_some_and(|delta| self.show(heard, delta));
        if is_end {
            heard.is_whole = !matches!(
                choice["finish_reason"].as_str(),
                Some("length" | "content_filter" | "error")
            );
        }
        if heard.is_untouched() {
            return if is_end { Fate::Held } else { Fate::Pass };
        }
        let says_nothing =
            choice["delta"].as_object().is_none_or(|delta| delta.values().all(is_nothing));
        self.rename(heard, &mut chunk);
        let mut with = |choice: Value, usage: bool| {
            chunk["choices"] = json!([choice]);
            let mut chunk = chunk.clone();
            if !usage && let Some(chunk) = chunk.as_object_mut() {
                chunk.shift_remove("usage");
            }
            chunk.to_string()
        };
        match (is_end, says_nothing) {
            (true, true) => Fate::Split(None, with(choice, true)),
            (true, false) => {
                let (mut words, mut end) = (choice.clone(), choice);
                words["finish_reason"] = Value::Null;
                end["delta"] = json!({});
                Fate::Split(Some(with(words, false)), with(end, true))
            }
            (false, true) => Fate::Hidden,
            (false, false) if is_changed || heard.earlier > 0 => Fate::Changed(with(choice, true)),
            (false, false) => Fate::Pass,
        }
    }

    fn last(&mut self, heard: &Heard, data: &str) -> Option<String> {
        let mut chunk: Value = serde_json::from_str(data).ok()?;
        if heard.calls_ours_alone() && chunk["choices"][0]["finish_reason"] == "tool_calls" {
            chunk["choices"][0]["finish_reason"] = json!("stop");
        }
        self.rename(heard, &mut chunk);
        let text = chunk.to_string();
        let read = members(&text)?;
        let mut edits = Edits::new(&text);
        if let Some(usage) = read.get("usage").filter(|_| heard.earlier > 0) {
            edits.replace(usage.get(), heard.told(Api::ChatCompletions, usage.get()));
        }
        Some(edits.finish())
    }

    fn error(&mut self, failed: &Failed) -> String {
        let (message, kind, code) = (failed.to_string(), failed.kind(), failed.code());
        let own = || json!({ "message": message, "type": kind, "param": null, "code": code });
        let error = failed.error().map_or_else(own, Value::Object);
        format!("data: {}\n\n", json!({ "error": error }))
    }

    fn ping(&self) -> &'static str {
        ": foldback\n\n"
    }
}

impl Chat {
    /// Reduces a piece to what the client gets; returns whether it changed.
    fn show(&mut self, heard: &mut Heard, delta: &mut Value) -> bool {
        let Some(delta) = delta.as_object_mut() else { return false };
        let mut is_changed = heard.earlier > 0 && delta.shift_remove("role").is_some();
        if let Some(Value::String(words)) = delta.get_mut("content")
            && !words.is_empty()
        {
            let before = self.words_of.replace(heard.earlier);
            if before.is_some_and(|before| before < heard.earlier) {
                words.insert_str(0, BETWEEN);
                is_changed = true;
            }
        }
        let Some(Value::Array(calls)) = delta.get_mut("tool_calls") else { return is_changed };
        let count = calls.len();
        calls.retain_mut(|call| {
            if !call.is_object() {
                return true;
            }
            let number = heard.calls.of(call) as u64;
            if !heard.places.contains_key(&number) {
                let is_ours = heard.is_ours(&call["function"]["name"]);
                heard.ours += usize::from(is_ours);
                heard.theirs += usize::from(!is_ours);
                heard.place(number, is_ours);
            }
            let place = heard.places.get(&number).copied().flatten();
            if let Some(place) = place.filter(|place| call["index"].as_u64() != Some(*place)) {
                call["index"] = json!(place);
                is_changed = true;
            }
            place.is_some()
        });
        is_changed |= calls.len() < count;
        if calls.is_empty() {
            delta.shift_remove("tool_calls");
        }
        is_changed
    }

    /// Gives a piece the ids and names of the first answer.
    fn rename(&self, heard: &Heard, chunk: &mut Value) {
        let Some(chunk) = chunk.as_object_mut().filter(|_| heard.earlier > 0) else { return };
        for (key, value) in self.name.iter().filter(|(_, value)| !value.is_null()) {
            chunk.insert(key.clone(), value.clone());
        }
    }
}

/// Returns whether a value adds nothing to a message.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || text == "assistant",
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
