//! OpenAI's Responses API: what it refuses, and how it answers.

use super::{Bill, Raw, Said, Seen, check_tools, events, whole};
use serde_json::{Value, json};

/// Returns the answer to a request, or its refusal.
pub(super) fn raw(seen: &Seen, said: &Said, bill: Bill<'_>) -> Raw {
    let body = seen.json();
    if let Err(why) = check(&body) {
        let error = json!({ "message": why, "type": "invalid_request_error", "param": "input" });
        return whole(400, &json!({ "error": error }));
    }
    let message = format!("msg_{}", seen.mark());
    let mut thought =
        json!({ "type": "reasoning", "id": format!("rs_{}", seen.mark()), "summary": [] });
    if body["include"].to_string().contains("reasoning.encrypted_content") {
        thought["encrypted_content"] = json!(format!("sealed {}", said.thought));
    }
    let mut output = vec![thought];
    if !said.text.is_empty() {
        let part = json!({ "type": "output_text", "text": said.text, "annotations": [] });
        output.push(json!({
            "type": "message", "id": message, "status": "completed", "role": "assistant", "content": [part],
        }));
    }
    for (id, name, arguments) in &said.calls {
        if let Value::String(input) = arguments {
            output.push(json!({
                "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id, "name": name, "input": input,
                "status": "completed",
            }));
            continue;
        }
        output.push(json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
            "arguments": arguments.to_string(), "status": "completed",
        }));
    }
    // A client that asks for a compaction gets a sealed one in place of its conversation.
    let last = body["input"].as_array().and_then(|items| items.last());
    if last.is_some_and(|last| last["type"] == "compaction_trigger") {
        let (id, sealed) = (format!("cmp_{}", seen.mark()), format!("sealed {}", said.text));
        output = vec![json!({ "type": "compaction", "id": id, "encrypted_content": sealed })];
    }
    let (read, written, plain) = bill(&body);
    let tokens = read + written + plain;
    let usage = json!({
        "input_tokens": tokens, "input_tokens_details": { "cached_tokens": read }, "output_tokens": 7,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": tokens + 7,
    });
    let response = |status: &str, output: &[Value]| {
        json!({
            "id": format!("resp_{}", seen.mark()), "object": "response", "created_at": 1, "status": status, "model": body["model"],
            "output": output, "usage": usage, "error": null, "parallel_tool_calls": true,
            "tool_choice": "auto", "tools": [],
        })
    };
    if body["stream"] != true {
        return whole(200, &response("completed", &output));
    }
    let mut stream = Vec::new();
    let mut event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(stream.len());
        stream.push(format!("event: {kind}\ndata: {data}\n\n"));
    };
    event("response.created", json!({ "response": response("in_progress", &[]) }));
    for (n, item) in output.iter().enumerate() {
        event("response.output_item.added", json!({ "output_index": n, "item": item }));
        if item["type"] == "message" {
            let place = json!({ "item_id": message, "output_index": n, "content_index": 0 });
            let mut delta = place.clone();
            delta["delta"] = json!(said.text);
            event("response.output_text.delta", delta);
        }
        event("response.output_item.done", json!({ "output_index": n, "item": item }));
    }
    event("response.completed", json!({ "response": response("completed", &output) }));
    events(stream)
}

/// Refuses what the real API refuses with status 400.
fn check(body: &Value) -> Result<(), String> {
    body.get("model").ok_or("Missing required parameter: 'model'.")?;
    let first = &body["input"][0];
    let is_lite = first["type"] == "additional_tools";
    check_tools(body, if is_lite { &first["tools"] } else { &body["tools"] })?;
    let items = body["input"].as_array().cloned().unwrap_or_default();
    for (n, item) in items.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
        if body["store"] == false && !item["encrypted_content"].is_string() {
            return Err(format!(
                "Item with id {} not found. Items are not persisted when `store` is set to false.",
                item["id"]
            ));
        }
        let is_models = |next: &Value| {
            next["role"] == "assistant"
                || next["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
        };
        if !items.get(n + 1).is_some_and(is_models) {
            return Err(format!(
                "Item {} of type 'reasoning' was provided without its required following item.",
                item["id"]
            ));
        }
    }
    let ids = |kind: &'static str| {
        let own = items.iter().filter(move |item| item["type"] == kind);
        own.map(|item| item["call_id"].as_str().unwrap_or_default()).collect::<Vec<_>>()
    };
    for (call, output) in
        [("function_call", "function_call_output"), ("custom_tool_call", "custom_tool_call_output")]
    {
        let (calls, outputs) = (ids(call), ids(output));
        if let Some(id) = calls.iter().enumerate().find(|(n, id)| calls[..*n].contains(id)) {
            return Err(format!("Duplicate call_id {}.", id.1));
        }
        if let Some(id) = calls.iter().find(|id| !outputs.contains(id)) {
            return Err(format!("No tool output found for function call {id}."));
        }
        if let Some(id) = outputs.iter().find(|id| !calls.contains(id)) {
            return Err(format!("No tool call found for function call output with call_id {id}."));
        }
    }
    Ok(())
}
