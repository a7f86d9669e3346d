//! A message that was sent before, in the same bytes.

use crate::Api;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A cache mark.
const MARK: &str = "cache_control";

/// Returns the message `now` as it was sent `before`: a client may write it differently, with its keys in another order
/// or a text in a block of its own. Cache marks are taken from `now`. A message with thinking is sent as it is now.
pub(crate) fn replayed<'m>(api: Api, before: &'m str, now: &'m str) -> Cow<'m, str> {
    let thinks = |json: &str| ["thinking\"", "\"reasoning"].iter().any(|mark| json.contains(mark));
    if before == now || thinks(before) || thinks(now) {
        return Cow::Borrowed(now);
    }
    let is_marked = before.contains(MARK) || now.contains(MARK);
    if api != Api::Messages || !is_marked {
        return Cow::Borrowed(before);
    }
    marked(before, now).map_or(Cow::Borrowed(now), Cow::Owned)
}

/// Returns the message of before with the marks of now; `None` if they do not fit.
fn marked(before: &str, now: &str) -> Option<String> {
    let mut message: Map<String, Value> = serde_json::from_str(before).ok()?;
    let mut now: Map<String, Value> = serde_json::from_str(now).ok()?;
    let marks: Vec<Option<Value>> = match now.get_mut("content")? {
        Value::Array(blocks) => blocks.iter_mut().map(taken).collect(),
        _ => vec![None],
    };
    let content = message.get_mut("content")?;
    if let (Value::String(text), true) = (&*content, marks.iter().any(Option::is_some)) {
        *content = json!([{ "type": "text", "text": text }]);
    }
    if let Value::Array(blocks) = content {
        if blocks.len() != marks.len() {
            return None;
        }
        blocks.iter_mut().for_each(|block| drop(taken(block)));
        // Marks further inside are where the client has them now.
        let is_marked = |value: &Value| value.to_string().contains(MARK);
        if blocks.iter().any(is_marked) || now.get("content").is_some_and(is_marked) {
            return None;
        }
        for (block, mark) in blocks.iter_mut().zip(marks) {
            block.as_object_mut()?.extend(mark.map(|mark| (MARK.to_owned(), mark)));
        }
    }
    Some(Value::Object(message).to_string())
}

/// Removes a block's mark, and returns it.
fn taken(block: &mut Value) -> Option<Value> {
    block.as_object_mut()?.shift_remove(MARK)
}

#[cfg(test)]
mod tests {
    use super::replayed;
    use crate::Api;

    #[test]
    fn gw5_only_marks_move() {
        let before = r#"{"role":"user","content":"八 \u0041"}"#;
        let now = r#"{"content":[{"text":"八 A","type":"text","cache_control":{"type":"ephemeral"}}],"role":"user"}"#;
        let marked = r#"{"role":"user","content":[{"type":"text","text":"八 A","cache_control":{"type":"ephemeral"}}]}"#;
        assert_eq!(replayed(Api::Messages, before, now), marked);
        let later = r#"{"content":[{"text":"八 A","type":"text"}],"role":"user"}"#;
        assert_eq!(replayed(Api::Messages, before, later), before);
        let input = |input: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"read","input":{input}}}]}}"#
            )
        };
        let (one, other) = (input(r#"{"a":1.0,"b":2}"#), input(r#"{"b":2,"a":1.0}"#));
        assert_eq!(replayed(Api::Messages, &one, &other), one);
    }

    #[test]
    fn gw5_thoughts_that_a_client_drops_stay_away() {
        let before = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"?","signature":"s"},{"type":"text","text":"A"}]}"#;
        let now = r#"{"role":"assistant","content":[{"type":"text","text":"A"}]}"#;
        assert_eq!(replayed(Api::Messages, before, now), now);
    }
}
