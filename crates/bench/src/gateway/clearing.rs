//! A request as the provider's own context editing leaves it.

use serde_json::{Value, json};

/// Requests of more tokens than this are edited.
pub(crate) const TRIGGER: u64 = 100_000;

/// The number of the newest results that are kept.
const KEPT: usize = 3;

/// The text in place of a cleared result.
const PLACEHOLDER: &str = "[result cleared]";

/// Returns a request of over [`TRIGGER`] tokens as Anthropic's context editing
/// (`clear_tool_uses_20250919` with its defaults) leaves it: all tool results except the last 3 are
/// cleared. A result that the model has not seen yet is kept.
pub(crate) fn cleared(body: &Value) -> Value {
    let mut body = body.clone();
    let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) else {
        return body;
    };
    let mut newer = 0;
    for (n, message) in messages.iter_mut().rev().enumerate() {
        let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) else {
            continue;
        };
        for block in content.iter_mut().rev().filter(|block| block["type"] == "tool_result") {
            if newer >= KEPT && n > 0 {
                block["content"] = json!(PLACEHOLDER);
            }
            newer += 1;
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::cleared;
    use serde_json::{Value, json};

    #[test]
    fn old_results_are_cleared_and_new_ones_stay() {
        let results = |texts: &[&str]| {
            let result = |text: &&str| json!({ "type": "tool_result", "tool_use_id": text, "content": text });
            json!({ "role": "user", "content": texts.iter().map(result).collect::<Vec<_>>() })
        };
        let shown = |messages: Value| {
            let body = cleared(&json!({ "messages": messages }));
            let blocks = body["messages"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|message| message["content"].as_array().unwrap());
            blocks
                .map(|block| block["content"].as_str().unwrap() == block["tool_use_id"])
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown(json!([results(&["a", "b"]), results(&["c", "d"])])),
            [false, true, true, true]
        );
        // Four at once that the model has not seen.
        let four = json!([results(&["a"]), results(&["b", "c", "d", "e"])]);
        assert_eq!(shown(four), [false, true, true, true, true]);
        assert_eq!(cleared(&json!({ "input": "x" })), json!({ "input": "x" }));
    }
}
