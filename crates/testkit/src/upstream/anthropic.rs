//! Anthropic's Messages: what it refuses, and how it answers.

use super::{Bill, Raw, Said, Seen, events, whole};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The answer to a request, or its refusal.
pub(super) fn raw(seen: &Seen, said: &Said, bill: Bill<'_>) -> Raw {
    let body = seen.json();
    if let Err(why) = check(seen, &body) {
        let error = json!({ "type": "invalid_request_error", "message": why });
        return whole(400, &json!({ "type": "error", "error": error, "request_id": "req_1" }));
    }
    let mut blocks = Vec::new();
    if let Some(thinking) = &said.thinking {
        let signature = signature(&body, usize::MAX);
        blocks.push(json!({ "type": "thinking", "thinking": thinking, "signature": signature }));
    }
    if !said.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": said.text }));
    }
    for (id, name, input) in &said.calls {
        blocks.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
    }
    let stop = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
    let (read, written, plain) = bill(&body);
    let usage = json!({ "input_tokens": plain, "cache_creation_input_tokens": written, "cache_read_input_tokens": read, "output_tokens": 7 });
    // A client takes messages with the same id for one.
    let id = format!("msg_{}", signature(&body, usize::MAX));
    let message = |content: Value, stop: Value| json!({ "id": id, "type": "message", "role": "assistant", "model": body["model"], "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage });
    if body["stream"] != true {
        return whole(200, &message(Value::Array(blocks), json!(stop)));
    }
    let mut stream = Vec::new();
    let mut event = |data: Value| {
        stream.push(format!(
            "event: {}\ndata: {data}\n\n",
            data["type"].as_str().unwrap_or_default()
        ));
    };
    event(json!({ "type": "message_start", "message": message(json!([]), Value::Null) }));
    event(json!({ "type": "ping" }));
    for (index, block) in blocks.iter().enumerate() {
        let (key, kind, piece) = match block["type"].as_str() {
            Some("text") => ("text", "text_delta", "text"),
            Some("thinking") => ("thinking", "thinking_delta", "thinking"),
            _ => ("input", "input_json_delta", "partial_json"),
        };
        let pieces = match &block[key] {
            Value::String(text) => halves(text),
            input => halves(&input.to_string()),
        };
        let mut empty = block.clone();
        empty[key] = if key == "input" { json!({}) } else { json!("") };
        event(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        for half in pieces {
            let delta = json!({ "type": kind, piece: half });
            event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        event(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }));
    event(json!({ "type": "message_stop" }));
    events(stream)
}

/// What thinking is bound to: everything in front of the message `n`, but for thoughts and marks of the cache.
fn signature(body: &Value, n: usize) -> String {
    let mut hasher = DefaultHasher::new();
    body["tools"].to_string().hash(&mut hasher);
    body["system"].to_string().replace(MARK, "").hash(&mut hasher);
    for message in body["messages"].as_array().into_iter().flatten().take(n) {
        let texts =
            message["content"].as_str().map(|text| vec![json!({ "type": "text", "text": text })]);
        let blocks = texts.or_else(|| message["content"].as_array().cloned()).unwrap_or_default();
        for mut block in blocks.into_iter().filter(|block| block["type"] != "thinking") {
            block.as_object_mut().and_then(|block| block.shift_remove("cache_control"));
            format!("{}{block}", message["role"]).hash(&mut hasher);
        }
    }
    format!("{:x}", hasher.finish())
}

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

/// A text in two pieces.
pub(super) fn halves(text: &str) -> Vec<String> {
    let half = text.chars().count() / 2;
    let (first, rest): (String, String) =
        (text.chars().take(half).collect(), text.chars().skip(half).collect());
    [first, rest].into_iter().filter(|piece| !piece.is_empty()).collect()
}

/// What the real one refuses with status 400.
fn check(seen: &Seen, body: &Value) -> Result<(), String> {
    seen.header("anthropic-version").ok_or("anthropic-version: header is required")?;
    for key in ["model", "max_tokens"] {
        body.get(key).ok_or_else(|| format!("{key}: Field required"))?;
    }
    let messages = body["messages"].as_array().ok_or("messages: Field required")?;
    if messages.first().is_none_or(|message| message["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        let kind = |block: &Value, kind: &str| block["type"] == kind;
        let id = |block: &Value, key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let answered: Vec<_> = blocks
            .iter()
            .filter(|b| kind(b, "tool_result"))
            .map(|b| id(b, "tool_use_id"))
            .collect();
        if let Some(stray) = answered.iter().find(|id| !open.contains(id)) {
            return Err(format!(
                "messages.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {stray}"
            ));
        }
        if let Some(missing) = open.iter().find(|id| !answered.contains(id)) {
            return Err(format!(
                "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
            ));
        }
        open = blocks.iter().filter(|b| kind(b, "tool_use")).map(|b| id(b, "id")).collect();
        if let Some(twice) = open.iter().find(|id| !ids.insert((*id).clone())) {
            return Err(format!("messages.{n}: `tool_use` ids must be unique: {twice}"));
        }
        let thoughts = blocks.iter().filter(|b| kind(b, "thinking"));
        let is_bound = |b: &Value| b["signature"] == signature(body, n);
        if thoughts.clone().any(|b| !is_bound(b)) {
            return Err(format!(
                "messages.{n}: `thinking` blocks cannot be modified, nor what they were thought behind"
            ));
        }
        let goes_on = messages.get(n + 1..).unwrap_or_default().iter().all(|later| {
            later["role"] != "user" || later["content"].to_string().contains("\"tool_result\"")
        });
        if body["thinking"]["type"] == "enabled"
            && goes_on
            && blocks.iter().any(|b| kind(b, "tool_use"))
            && thoughts.count() == 0
        {
            return Err(format!(
                "messages.{n}: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
            ));
        }
        if blocks
            .iter()
            .any(|b| kind(b, "text") && b["text"].as_str().is_none_or(|t| t.trim().is_empty()))
        {
            return Err(format!("messages.{n}: text content blocks must be non-empty"));
        }
        match message["role"].as_str() {
            Some("user" | "system") => {}
            Some("assistant") if n + 1 == messages.len() => {
                return Err("This model does not support assistant message prefill".to_owned());
            }
            Some("assistant") => {}
            other => return Err(format!("messages.{n}.role: unexpected value {other:?}")),
        }
    }
    match body.to_string().matches("\"cache_control\"").count() {
        0..=4 => Ok(()),
        n => Err(format!("A maximum of 4 blocks with cache_control may be provided. Found {n}.")),
    }
}
