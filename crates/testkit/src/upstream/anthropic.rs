//! Anthropic's Messages API: what it refuses, and how it answers.

use super::{Bill, Raw, Said, Seen, check_tools, events, whole};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Returns the answer to a request, or its refusal.
pub(super) fn raw(seen: &Seen, said: &Said, bill: Bill<'_>) -> Raw {
    let body = seen.json();
    if let Err(why) = check(seen, &body) {
        let error = json!({ "type": "invalid_request_error", "message": why });
        return whole(400, &json!({ "type": "error", "error": error, "request_id": "req_1" }));
    }
    let mut blocks = Vec::new();
    if !said.thought.is_empty() {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let signature = signature(&messages, &[], &said.thought);
        blocks
            .push(json!({ "type": "thinking", "thinking": said.thought, "signature": signature }));
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
    let message = |content: Value, stop: Value| json!({ "id": format!("msg_{}", seen.mark()), "type": "message", "role": "assistant", "model": body["model"], "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage });
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
        let mut empty = block.clone();
        let (key, kind, piece) = match block["type"].as_str() {
            Some("text") => ("text", "text_delta", "text"),
            Some("thinking") => ("thinking", "thinking_delta", "thinking"),
            _ => ("input", "input_json_delta", "partial_json"),
        };
        let pieces = match &block[key] {
            Value::String(text) => halves(text),
            input => halves(&input.to_string()),
        };
        empty[key] = if key == "input" { json!({}) } else { json!("") };
        if key == "thinking" {
            empty["signature"] = json!("");
        }
        event(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        for half in pieces {
            let delta = json!({ "type": kind, piece: half });
            event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        if key == "thinking" {
            let delta = json!({ "type": "signature_delta", "signature": block["signature"] });
            event(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        event(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }));
    event(json!({ "type": "message_stop" }));
    events(stream)
}

/// Returns the seal of a thought: it is valid if the thought follows the same words, whatever their
/// marks and forms.
fn signature(messages: &[Value], before: &[Value], thought: &str) -> String {
    let mut hasher = DefaultHasher::new();
    for message in messages {
        message["role"].to_string().hash(&mut hasher);
        let text = json!([{ "type": "text", "text": message["content"] }]);
        let blocks = if message["content"].is_string() { &text } else { &message["content"] };
        blocks.as_array().into_iter().flatten().for_each(|block| plain(block).hash(&mut hasher));
    }
    before.iter().for_each(|block| plain(block).hash(&mut hasher));
    thought.hash(&mut hasher);
    format!("sig{:016x}", hasher.finish())
}

/// Returns a block without its cache mark, and with its keys in order.
fn plain(block: &Value) -> String {
    let members = block.as_object().into_iter().flatten();
    let mut members: Vec<_> = members.filter(|(key, _)| *key != "cache_control").collect();
    members.sort_by_key(|(key, _)| key.as_str());
    format!("{members:?}")
}

/// Returns a text in two pieces.
pub(super) fn halves(text: &str) -> Vec<String> {
    let half = text.chars().count() / 2;
    let (first, rest): (String, String) =
        (text.chars().take(half).collect(), text.chars().skip(half).collect());
    [first, rest].into_iter().filter(|piece| !piece.is_empty()).collect()
}

/// Refuses what the real API refuses with status 400.
fn check(seen: &Seen, body: &Value) -> Result<(), String> {
    seen.header("anthropic-version").ok_or("anthropic-version: header is required")?;
    for key in ["model", "max_tokens"] {
        body.get(key).ok_or_else(|| format!("{key}: Field required"))?;
    }
    check_tools(body, &body["tools"])?;
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
        check_thoughts(body, messages, n, &blocks)?;
        if n + 1 < messages.len()
            && message["content"].as_array().is_some_and(Vec::is_empty)
            && message["role"] == "assistant"
        {
            return Err(format!("messages.{n}: all messages must have non-empty content"));
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

/// Checks thoughts as the real API does: refuses one that follows other words than originally, and a
/// missing one if a turn that continues has to begin with one.
fn check_thoughts(
    body: &Value,
    messages: &[Value],
    n: usize,
    blocks: &[Value],
) -> Result<(), String> {
    let kind = |block: &Value, kind: &str| block["type"] == kind;
    for (place, block) in blocks.iter().enumerate().filter(|(_, b)| kind(b, "thinking")) {
        let thought = block["thinking"].as_str().unwrap_or_default();
        if block["signature"] != signature(&messages[..n], &blocks[..place], thought) {
            return Err(format!(
                "messages.{n}.content.{place}: Invalid `signature` in `thinking` block"
            ));
        }
    }
    let goes_on = messages.get(n + 1..).unwrap_or_default().iter().all(|later| {
        later["role"] != "user" || later["content"].to_string().contains("\"tool_result\"")
    });
    if body["thinking"]["type"] == "enabled"
        && goes_on
        && blocks.iter().any(|b| kind(b, "tool_use"))
        && !blocks.iter().any(|b| kind(b, "thinking"))
    {
        return Err(format!(
            "messages.{n}: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
        ));
    }
    Ok(())
}
