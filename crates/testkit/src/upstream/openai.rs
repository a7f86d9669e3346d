//! OpenAI's chat-completions API: what it refuses, and how it answers.

use super::anthropic::halves;
use super::{Bill, Raw, Said, Seen, check_tools, events, whole};
use serde_json::{Value, json};

/// Returns the answer to a request, or its refusal.
pub(super) fn raw(seen: &Seen, said: &Said, bill: Bill<'_>) -> Raw {
    let body = seen.json();
    if let Err(why) = check(&body) {
        let error = json!({ "message": why, "type": "invalid_request_error", "param": "messages", "code": null });
        return whole(400, &json!({ "error": error }));
    }
    let call = |(n, (id, name, arguments)): (usize, &(String, String, Value))| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "index": n, "id": id, "type": "function", "function": function })
    };
    let (read, written, plain) = bill(&body);
    let tokens = read + written + plain;
    let usage = json!({
        "prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7,
        "prompt_tokens_details": { "cached_tokens": read },
    });
    let mut calls: Vec<Value> = said.calls.iter().enumerate().map(call).collect();
    let stop = if calls.is_empty() { "stop" } else { "tool_calls" };
    let id = format!("chatcmpl-{}", seen.mark());
    let chunk = |delta: Value, stop: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": stop });
        let chunk = json!({ "id": id, "object": "chat.completion.chunk", "created": 1, "model": body["model"], "choices": [choice] });
        format!("data: {chunk}\n\n")
    };
    if body["stream"] == true {
        let mut stream = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        stream.extend(
            halves(&said.text)
                .into_iter()
                .map(|half| chunk(json!({ "content": half }), Value::Null)),
        );
        for call in &mut calls {
            let arguments = call["function"]["arguments"].take();
            call["function"]["arguments"] = json!("");
            stream.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
            for half in halves(arguments.as_str().unwrap_or_default()) {
                let piece = json!({ "index": call["index"], "function": { "arguments": half } });
                stream.push(chunk(json!({ "tool_calls": [piece] }), Value::Null));
            }
        }
        stream.push(chunk(json!({}), json!(stop)));
        if body["stream_options"]["include_usage"] == true {
            let chunk = json!({ "id": id, "object": "chat.completion.chunk", "created": 1, "model": body["model"], "choices": [], "usage": usage });
            stream.push(format!("data: {chunk}\n\n"));
        }
        stream.push("data: [DONE]\n\n".to_owned());
        return events(stream);
    }
    let mut message =
        json!({ "role": "assistant", "content": said.text, "refusal": null, "annotations": [] });
    if !calls.is_empty() {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            call.shift_remove("index");
        }
        message["content"] = if said.text.is_empty() { Value::Null } else { json!(said.text) };
        message["tool_calls"] = Value::Array(calls);
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": stop });
    whole(
        200,
        &json!({ "id": id, "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": usage }),
    )
}

/// Refuses what the real API refuses with status 400.
fn check(body: &Value) -> Result<(), String> {
    body.get("model").ok_or("you must provide a model parameter")?;
    check_tools(body, &body["tools"])?;
    let messages = body["messages"].as_array().ok_or("Missing required parameter: 'messages'.")?;
    let mut open: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let place = open.iter().position(|one| *one == id);
            let place = place.ok_or_else(|| format!("messages[{n}]: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"))?;
            open.remove(place);
            continue;
        }
        if !open.is_empty() {
            return Err(format!(
                "messages[{n}]: an assistant message with 'tool_calls' must be followed by tool messages; missing: {open:?}"
            ));
        }
        match role {
            "system" | "developer" | "user" => {}
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                open = calls.into_iter().flatten().filter_map(|call| call["id"].as_str()).collect();
            }
            other => return Err(format!("messages[{n}].role: invalid value {other:?}")),
        }
    }
    match open.as_slice() {
        [] => Ok(()),
        open => Err(format!("tool calls without answers: {open:?}")),
    }
}
