//! Readers of what clients and providers send through the gateway.

use foldback_gateway::Api;
use foldback_gateway::fuzzing::{answer, request};

const MESSAGES: &str = r#"{"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}], "tools": [{"name": "read", "input_schema": {"type": "object"}}], "thinking": {"type": "adaptive"}, "metadata": {"user_id": "user_1_session_2"}, "messages": [
 {"role": "user", "content": "Which port? 港"},
 {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "I look.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}, {"type": "tool_use", "id": "c1", "name": "read", "input": {"n": 1.50}}]},
 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": false, "content": [{"type": "text", "text": "port 7001"}]}, {"type": "text", "text": "Well?"}]}]}"#;

const CHAT: &str = r#"{"model": "m", "stream": true, "n": 1, "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}], "messages": [
 {"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Which port? 港"}, {"type": "image_url", "image_url": {"url": "data:,"}}]},
 {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"n\": 1.50}"}}]},
 {"role": "tool", "tool_call_id": "c1", "content": "7001"}, {"role": "user", "content": "Well?"}]}"#;

const RESPONSES: &str = r#"{"model": "m", "store": false, "instructions": "Be brief.", "tools": [{"type": "function", "name": "read"}], "prompt_cache_key": "s", "input": [
 {"type": "additional_tools", "role": "developer", "tools": []}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which port? 港"}]},
 {"type": "reasoning", "summary": [], "encrypted_content": "e"}, {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"n\": 1.50}"},
 {"type": "function_call_output", "call_id": "c1", "output": "7001"}, {"role": "user", "content": "Well?"}]}"#;

const MESSAGES_STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m1","model":"m","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4}}}

: comment

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is 港. <tool_call>{\"name\": \"a\"}"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"o1","name":"foldback_load","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"ref\":\"b_001\"}"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"#;

const CHAT_STREAM: &str = r#"data: {"id":"c1","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"It is 港."}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"foldback_load","arguments":"{\"ref\""}}]}}]}

data: {"choices":[{"index":0,"delta":{"reasoning":"x","tool_calls":[{"index":0,"function":{"arguments":":\"b_001\"}"}}]},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

"#;

const RESPONSES_STREAM: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","output":[]}}

data: {"type":"response.output_item.added","output_index":0,"item":{"id":"i1","type":"message","role":"assistant","content":[]}}

data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"i1","delta":"It is 港."}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"i1","type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 港."}]}}

data: {"type":"response.output_item.added","output_index":1,"item":{"id":"i2","type":"function_call","call_id":"o1","name":"foldback_load","arguments":""}}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"i2","type":"function_call","call_id":"o1","name":"foldback_load","arguments":"{\"ref\":\"b_001\"}"}}

data: {"type":"response.completed","sequence_number":9,"response":{"id":"r1","status":"completed","output":[{"id":"i1","type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 港."}]},{"id":"i2","type":"function_call","call_id":"o1","name":"foldback_load","arguments":"{\"ref\":\"b_001\"}"}],"usage":{"input_tokens":9,"output_tokens":2}}}

"#;

/// Requests of Anthropic's API.
pub fn messages_bodies() -> Vec<Vec<u8>> {
    vec![MESSAGES.into()]
}

/// Requests of chat-completions.
pub fn chat_bodies() -> Vec<Vec<u8>> {
    vec![CHAT.into()]
}

/// Requests of the Responses API.
pub fn responses_bodies() -> Vec<Vec<u8>> {
    vec![RESPONSES.into(), r#"{"input": "Which port?", "tools": [{"name": "a"}]}"#.into()]
}

/// Answers of Anthropic's API, streamed and whole.
pub fn messages_streams() -> Vec<Vec<u8>> {
    let whole = r#"{"model":"m","stop_reason":"tool_use","content":[{"type":"text","text":"港"},{"type":"tool_use","id":"o1","name":"foldback_load","input":{"ref":"b_001"}}],"usage":{"input_tokens":9}}"#;
    vec![MESSAGES_STREAM.into(), whole.into()]
}

/// Answers of chat-completions, streamed and whole.
pub fn chat_streams() -> Vec<Vec<u8>> {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"港","tool_calls":[{"id":"o1","type":"function","function":{"name":"foldback_load","arguments":"{\"ref\":\"b_001\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9}}"#;
    vec![CHAT_STREAM.into(), whole.into()]
}

/// Answers of the Responses API.
pub fn responses_streams() -> Vec<Vec<u8>> {
    vec![RESPONSES_STREAM.into()]
}

/// Reads any bytes as a request of Anthropic's API.
pub fn messages_body(bytes: &[u8]) {
    let _ = request(Api::Messages, bytes);
}

/// Reads any bytes as a request of chat-completions.
pub fn chat_body(bytes: &[u8]) {
    let _ = request(Api::ChatCompletions, bytes);
}

/// Reads any bytes as a request of the Responses API.
pub fn responses_body(bytes: &[u8]) {
    let _ = request(Api::Responses, bytes);
}

/// Reads any bytes as an answer of Anthropic's API.
pub fn messages_stream(bytes: &[u8]) {
    stream(Api::Messages, bytes);
}

/// Reads any bytes as an answer of chat-completions.
pub fn chat_stream(bytes: &[u8]) {
    stream(Api::ChatCompletions, bytes);
}

/// Reads any bytes as an answer of the Responses API.
pub fn responses_stream(bytes: &[u8]) {
    stream(Api::Responses, bytes);
}

/// However an answer is cut, the client gets the same; and all of it where nothing of ours is in it.
fn stream(api: Api, bytes: &[u8]) {
    let whole = answer(api, bytes, usize::MAX);
    assert_eq!(String::from_utf8_lossy(&answer(api, bytes, 7)), String::from_utf8_lossy(&whole));
    let is_ours = bytes.windows(8).any(|word| word == b"foldback") || bytes.contains(&b'\\');
    // A part at a place that no answer has is not passed on.
    let is_far = bytes.windows(10).any(|word| word.iter().all(u8::is_ascii_digit));
    assert!(is_ours || is_far || whole == bytes, "something of the provider's is gone");
}
