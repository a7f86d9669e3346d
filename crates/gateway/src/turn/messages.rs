//! Streams of Anthropic's Messages.

use super::edits::{Edits, members};
use super::failed::Failed;
use super::wire::{Fate, Heard, Wire};
use crate::Api;
use serde_json::{Value, json};

/// Streams of Anthropic's Messages: blocks one after the other, each with its number.
pub(super) struct Messages;

impl Wire for Messages {
    fn fate(&mut self, heard: &mut Heard, data: &str) -> Fate {
        let Ok(event) = serde_json::from_str::<Value>(data) else { return Fate::Pass };
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                heard.count(Api::Messages, &event);
                if heard.earlier > 0 { Fate::Hidden } else { Fate::Pass }
            }
            "message_delta" => {
                heard.count(Api::Messages, &event);
                heard.is_whole = event["delta"]["stop_reason"] == "tool_use";
                Fate::Held
            }
            "message_stop" => {
                heard.is_over = true;
                Fate::Held
            }
            kind => {
                let Some(index) = event["index"].as_u64() else { return Fate::Pass };
                let block = &event["content_block"];
                if kind == "content_block_start" {
                    let is_call = block["type"] == "tool_use";
                    let is_ours = is_call && heard.is_ours(&block["name"]);
                    heard.ours += usize::from(is_ours);
                    heard.theirs += usize::from(is_call && !is_ours);
                    heard.place(index, is_ours);
                }
                match heard.places.get(&index) {
                    Some(None) => Fate::Hidden,
                    Some(Some(place)) if *place != index => numbered(data, *place),
                    _ => Fate::Pass,
                }
            }
        }
    }

    fn last(&mut self, heard: &Heard, data: &str) -> Option<String> {
        let event = members(data)?;
        let mut edits = Edits::new(data);
        if let Some(usage) = event.get("usage").filter(|_| heard.earlier > 0) {
            edits.replace(usage.get(), heard.told(Api::Messages, usage.get()));
        }
        let delta = event.get("delta").and_then(|delta| members(delta.get()));
        let stop = delta.as_ref().and_then(|delta| delta.get("stop_reason"));
        if let Some(stop) =
            stop.filter(|stop| heard.calls_ours_alone() && stop.get() == "\"tool_use\"")
        {
            edits.replace(stop.get(), "\"end_turn\"".to_owned());
        }
        Some(edits.finish())
    }

    fn error(&mut self, failed: &Failed) -> String {
        let own = || json!({ "type": failed.kind(), "message": failed.to_string() });
        let error = failed.error().map_or_else(own, Value::Object);
        format!("event: error\ndata: {}\n\n", json!({ "type": "error", "error": error }))
    }

    fn ping(&self) -> &'static str {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }
}

fn numbered(data: &str, place: u64) -> Fate {
    let event = members(data);
    let Some(index) = event.as_ref().and_then(|event| event.get("index")) else {
        return Fate::Pass;
    };
    let mut edits = Edits::new(data);
    edits.replace(index.get(), place.to_string());
    Fate::Changed(edits.finish())
}
