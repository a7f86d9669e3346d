//! Streams of the Responses API.

use super::edits::{Edits, members};
use super::failed::Failed;
use super::wire::{Fate, Heard, Wire};
use crate::Api;
use serde_json::{Value, json};

/// Calls that the provider answers by itself.
const PROVIDERS: [&str; 6] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "tool_search_call",
];

/// Streams of the Responses API: items one after the other, and at the end all of them.
#[derive(Default)]
pub(super) struct Responses {
    /// How many events the client has received.
    count: u64,
    /// Its complete items.
    items: Vec<String>,
    /// The response that was begun.
    begun: Value,
}

/// Returns whether an item is a call that the provider does not answer itself.
pub(super) fn is_call(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    kind.ends_with("_call") && !PROVIDERS.contains(&kind)
}

impl Wire for Responses {
    fn fate(&mut self, heard: &mut Heard, data: &str) -> Fate {
        let Ok(mut event) = serde_json::from_str::<Value>(data) else { return Fate::Pass };
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued"
                if heard.earlier > 0 =>
            {
                return Fate::Hidden;
            }
            "response.created" => self.begun = event["response"].take(),
            "response.completed" | "response.incomplete" | "response.failed" => {
                heard.count(Api::Responses, &event);
                heard.is_over = true;
                heard.is_whole = kind == "response.completed";
                return Fate::Held;
            }
            _ => {}
        }
        let index = event["output_index"].as_u64();
        if let Some(index) = index.filter(|_| kind == "response.output_item.added") {
            let item = &event["item"];
            let is_ours = item["type"] == "function_call" && heard.is_ours(&item["name"]);
            heard.ours += usize::from(is_ours);
            heard.theirs += usize::from(is_call(item) && !is_ours);
            heard.place(index, is_ours);
        }
        let place = index.and_then(|index| heard.places.get(&index).copied());
        if place == Some(None) {
            return Fate::Hidden;
        }
        if kind == "response.output_item.done"
            && let Some(item) = members(data).and_then(|event| event.get("item").copied())
        {
            self.items.push(item.get().to_owned());
        }
        if heard.is_untouched() {
            // The provider's own numbers are kept.
            let own = event["sequence_number"].as_u64();
            self.count = own.unwrap_or(self.count).saturating_add(1);
            return Fate::Pass;
        }
        self.numbered(data, place.flatten()).map_or(Fate::Pass, Fate::Changed)
    }

    fn last(&mut self, heard: &Heard, data: &str) -> Option<String> {
        let numbered = self.numbered(data, None);
        let data = numbered.as_deref().unwrap_or(data);
        let event = members(data)?;
        let response = members(event.get("response")?.get())?;
        let mut edits = Edits::new(data);
        // Libraries refuse a stream whose end has another id than its beginning.
        if let Some(id) = response.get("id").filter(|_| self.begun["id"].is_string()) {
            edits.replace(id.get(), self.begun["id"].to_string());
        }
        if let Some(output) = response.get("output") {
            edits.replace(output.get(), format!("[{}]", self.items.join(",")));
        }
        if let Some(usage) = response.get("usage").filter(|_| heard.earlier > 0) {
            edits.replace(usage.get(), heard.told(Api::Responses, usage.get()));
        }
        Some(edits.finish())
    }

    fn error(&mut self, failed: &Failed) -> String {
        let error = failed.error().unwrap_or_default();
        let told = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        let code =
            told("code").or_else(|| told("type")).unwrap_or_else(|| failed.code().to_owned());
        let message = told("message").unwrap_or_else(|| failed.to_string());
        // A response that cannot be read is reported without its members.
        let begun = std::mem::take(&mut self.begun);
        let mut response = if begun.is_object() { begun } else { json!({}) };
        response["status"] = json!("failed");
        response["error"] = json!({ "code": code, "message": message });
        let event = json!({ "type": "response.failed", "sequence_number": self.count, "response": response });
        format!("event: response.failed\ndata: {event}\n\n")
    }

    fn ping(&self) -> &'static str {
        ": foldback\n\n"
    }
}

impl Responses {
    /// Returns the event with its number for the client, and the place of its item; `None` if it has them already.
    fn numbered(&mut self, data: &str, place: Option<u64>) -> Option<String> {
        let event = members(data)?;
        let mut edits = Edits::new(data);
        let mut is_changed = false;
        let mut set = |key: &str, value: u64| {
            let value = value.to_string();
            if let Some(old) = event.get(key).filter(|old| old.get() != value) {
                edits.replace(old.get(), value);
                is_changed = true;
            }
        };
        set("sequence_number", self.count);
        if let Some(place) = place {
            set("output_index", place);
        }
        self.count = self.count.saturating_add(1);
        is_changed.then(|| edits.finish())
    }
}
