//! A message that was sent before, in the same bytes.

use crate::{Api, exact};
use serde_json::{Value, json};
use std::borrow::Cow;

/// A cache mark, the client's own.
pub(crate) const MARK: &str = "cache_control";

/// Returns the message `now` as it was sent `before`: a client may write it differently, with its keys in another order
/// or a text in a block of its own. Cache marks are taken from `now`. A message with thinking is sent as it is now.
pub(crate) fn replayed<'m>(api: Api, before: &'m str, now: &'m str) -> Cow<'m, str> {
    let thinks = |json: &str| ["thinking\"", "\"reasoning"].iter().any(|mark| json.contains(mark));
    if before == now || thinks(before) || thinks(now) {
        return Cow::Borrowed(now);
    }
    let is_marked = before.contains(MARK) || now.contains(MARK);
    // The Responses API has no marks.
    if api == Api::Responses || !is_marked {
        return Cow::Borrowed(before);
    }
    marked(before, now).map_or(Cow::Borrowed(now), Cow::Owned)
}

/// Returns the message of before with the marks of now; `None` if they do not fit.
fn marked(before: &str, now: &str) -> Option<String> {
    let object = |json: &str| match exact::read(json)? {
        Value::Object(object) => Some(object),
        _ => None,
    };
    let (mut message, mut now) = (object(before)?, object(now)?);
    // In chat-completions the message itself may have a mark, and a message with calls need not have content.
    message.shift_remove(MARK);
    let own = now.shift_remove(MARK);
    let marks: Vec<Option<Value>> = match now.get_mut("content") {
        Some(Value::Array(blocks)) => blocks.iter_mut().map(taken).collect(),
        _ => vec![None],
    };
    let is_marked = marks.iter().any(Option::is_some);
    if let (Some(Value::String(text)), true) = (message.get("content"), is_marked) {
        let block = json!([{ "type": "text", "text": text }]);
        message.insert("content".to_owned(), block);
    }
    if let Some(Value::Array(blocks)) = message.get_mut("content") {
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
    } else if is_marked {
        return None;
    }
    message.extend(own.map(|mark| (MARK.to_owned(), mark)));
    Some(exact::write(&Value::Object(message)))
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
    fn gw5_numbers_keep_their_digits_where_a_mark_moves() {
        let call = |mark: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"读","input":{{"id":123456789012345678901234567890,"at":1e5}}{mark}}}]}}"#
            )
        };
        let (plain, marked) = (call(""), call(r#","cache_control":{"type":"ephemeral"}"#));
        assert_eq!(replayed(Api::Messages, &plain, &marked), marked);
        assert_eq!(replayed(Api::Messages, &marked, &plain), plain);
    }

    /// Clients of OpenRouter mark the last messages in chat-completions, in a block or beside the content.
    #[test]
    fn gw5_marks_of_chat_completions_follow_the_client() {
        let mark = r#""cache_control":{"type":"ephemeral"}"#;
        let chat =
            |before: &str, now: &str| replayed(Api::ChatCompletions, before, now).into_owned();
        let text = r#"{"role":"user","content":"八 A"}"#;
        let blocks = |mark: &str| {
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"八 A"{mark}}}]}}"#)
        };
        let (plain, marked) = (blocks(""), blocks(&format!(",{mark}")));
        // One mark is removed, and one is added.
        assert_eq!(chat(&marked, &plain), plain);
        assert_eq!(chat(&marked, text), plain);
        assert_eq!(chat(text, &marked), marked);
        assert_eq!(chat(text, &plain), text);
        // The same of marks beside the content.
        let result = r#"{"role":"tool","tool_call_id":"a","content":"港"}"#;
        let calls = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}"#;
        for one in [text, result, calls] {
            let marked = format!("{},{mark}}}", one.strip_suffix('}').unwrap());
            assert_eq!(chat(&marked, one), one);
            assert_eq!(chat(one, &marked), marked);
        }
    }

    #[test]
    fn gw5_thoughts_that_a_client_drops_stay_away() {
        let before = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"?","signature":"s"},{"type":"text","text":"A"}]}"#;
        let now = r#"{"role":"assistant","content":[{"type":"text","text":"A"}]}"#;
        assert_eq!(replayed(Api::Messages, before, now), now);
    }
}
