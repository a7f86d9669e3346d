//! Pieces of a chat-completions stream, put together.

use super::{are_texts, extend};
use serde_json::{Map, Value, json};

/// Members of a list's elements whose content comes in fragments.
const FRAGMENTS: [&str; 4] = ["text", "summary", "data", "thinking"];

/// Adds a piece of a message to what is there. Elements of a list come in fragments, as text does.
pub(super) fn extend_message(message: &mut Map<String, Value>, key: &str, piece: &Value) {
    match piece {
        Value::Array(pieces) if pieces.iter().all(Value::is_object) => {
            match message.entry(key).or_insert_with(|| json!([])) {
                Value::Array(list) => pieces.iter().for_each(|piece| extend_list(list, piece)),
                _ if pieces.is_empty() => {}
                other => *other = piece.clone(),
            }
        }
        _ => extend(message, key, piece),
    }
}

/// Adds a fragment to the element that it continues: that of its number; without a number, the last one, if both are
/// of one kind and hold text. A fragment that continues none is a new element.
fn extend_list(list: &mut Vec<Value>, piece: &Value) {
    let agrees = |one: &Value, key: &str| {
        one[key] == piece[key] || one[key].is_null() || piece[key].is_null()
    };
    let is_same = |one: &Value| agrees(one, "type") && agrees(one, "id");
    let place = match &piece["index"] {
        Value::Null => list.len().checked_sub(1).filter(|last| {
            let is_like = |one: &Value| is_same(one) && is_fragment(one);
            is_fragment(piece) && list.get(*last).is_some_and(is_like)
        }),
        index => list.iter().rposition(|one| one["index"] == *index && is_same(one)),
    };
    let one = place.and_then(|place| list.get_mut(place)).and_then(Value::as_object_mut);
    let (Some(one), Some(pieces)) = (one, piece.as_object()) else {
        return list.push(piece.clone());
    };
    for (key, piece) in pieces {
        match (one.get_mut(key), piece) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if FRAGMENTS.contains(&key.as_str()) && are_texts(text, more) =>
            {
                text.push_str(more);
            }
            (Some(Value::Array(inner)), Value::Array(more))
                if FRAGMENTS.contains(&key.as_str()) =>
            {
                more.iter().for_each(|piece| extend_list(inner, piece));
            }
            (Some(_), Value::String(more)) if more.is_empty() => {}
            _ => drop(one.insert(key.clone(), piece.clone())),
        }
    }
}

/// Returns whether an element holds text that can come in fragments, or the seal of such a text.
fn is_fragment(element: &Value) -> bool {
    FRAGMENTS.iter().any(|key| element[*key].is_string() || element[*key].is_array())
        || element["signature"].is_string()
}

/// Tells to which call the pieces of calls in an answer belong.
#[derive(Default)]
pub(crate) struct CallNumbers {
    begun: Vec<Begun>,
}

/// What distinguishes a call that has begun from others.
struct Begun {
    /// The index that the provider gave it, if any.
    at: Option<u64>,
    /// Its id; empty until it is known.
    id: String,
}

impl CallNumbers {
    /// Returns the number of the call that a piece belongs to: calls are counted from zero, as they begin. It is the
    /// call of the piece's index; without an index, the one of its id, or the last.
    ///
    /// Some servers give all calls one index, others a new id with every piece. So at a known index a new id begins
    /// another call only together with a name.
    pub(crate) fn of(&mut self, piece: &Value) -> usize {
        let at = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let is_named = piece["function"]["name"].as_str().is_some_and(|name| !name.is_empty());
        let is_its = |call: &Begun| !id.is_empty() && call.id == id;
        let known = match at {
            Some(_) => self
                .begun
                .iter()
                .rposition(|call| call.at == at && is_its(call))
                .or_else(|| self.begun.iter().rposition(|call| call.at == at)),
            None if id.is_empty() => self.begun.len().checked_sub(1),
            None => self.begun.iter().rposition(is_its),
        };
        if let Some(number) = known
            && let Some(call) = self.begun.get_mut(number)
        {
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if !is_named || id.is_empty() || call.id == id {
                return number;
            }
        }
        self.begun.push(Begun { at, id: id.to_owned() });
        self.begun.len().saturating_sub(1)
    }

    /// Begins the next answer.
    pub(crate) fn clear(&mut self) {
        self.begun.clear();
    }
}

/// Adds a piece of a call.
pub(super) fn extend_call(
    calls: &mut Vec<Map<String, Value>>,
    numbers: &mut CallNumbers,
    piece: &Value,
) {
    let Some(pieces) = piece.as_object() else { return };
    let number = numbers.of(piece);
    if number >= calls.len() {
        calls.push(Map::new());
    }
    let Some(call) = calls.get_mut(number) else { return };
    for (key, piece) in pieces.iter().filter(|(key, _)| *key != "index") {
        match piece {
            Value::Object(pieces) => {
                let inner = call.entry(key.as_str()).or_insert_with(|| json!({}));
                if let Some(inner) = inner.as_object_mut() {
                    for (key, piece) in pieces {
                        match key.as_str() {
                            "arguments" => extend(inner, key, piece),
                            _ => keep_first(inner, key, piece),
                        }
                    }
                }
            }
            piece => keep_first(call, key, piece),
        }
    }
}

/// Sets a member that comes whole, unless it is there. Some servers repeat names and ids, or send empty ones.
fn keep_first(object: &mut Map<String, Value>, key: &str, piece: &Value) {
    let is_nothing = |value: &Value| value.is_null() || *value == "";
    if object.get(key).is_none_or(is_nothing) {
        object.insert(key.to_owned(), piece.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::message_of;
    use crate::Api;
    use serde_json::{Value, json};

    /// The message of a stream with these deltas.
    fn message(deltas: &[Value]) -> Value {
        let chunk = |delta: &Value| {
            format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
        };
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        let stream = deltas.iter().map(chunk).collect::<String>() + &format!("data: {end}\n\n");
        let message = message_of(Api::ChatCompletions, &stream).unwrap();
        serde_json::from_str(message.get()).unwrap()
    }

    /// OpenRouter streams thinking in fragments of numbered elements; several kinds may have one number.
    #[test]
    fn gw9_thinking_in_fragments_is_sent_back_whole() {
        let thought = |mut more: Value| {
            more["format"] = json!("anthropic-claude-v1");
            json!({ "reasoning_details": [more] })
        };
        let text = |index: u64, text: &str| {
            thought(json!({ "type": "reasoning.text", "text": text, "index": index }))
        };
        let said = message(&[
            text(0, "让我"),
            text(0, "看看港口"),
            thought(json!({ "type": "reasoning.text", "signature": "s1", "index": 0 })),
            thought(json!({ "type": "reasoning.encrypted", "data": "AA", "id": "r", "index": 0 })),
            thought(json!({ "type": "reasoning.encrypted", "data": "BB", "id": "r", "index": 0 })),
            text(1, "Let"),
            thought(
                json!({ "type": "reasoning.text", "text": " me", "signature": null, "index": 1 }),
            ),
        ]);
        let expected = json!([
            { "type": "reasoning.text", "text": "让我看看港口", "index": 0, "format": "anthropic-claude-v1", "signature": "s1" },
            { "type": "reasoning.encrypted", "data": "AABB", "id": "r", "index": 0, "format": "anthropic-claude-v1" },
            { "type": "reasoning.text", "text": "Let me", "index": 1, "format": "anthropic-claude-v1" },
        ]);
        assert_eq!(said["reasoning_details"], expected);
    }

    #[test]
    fn gw9_fragments_without_a_number_continue_the_last_one() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let thought =
            |text: Value| json!({ "content": [{ "type": "thinking", "thinking": [text] }] });
        let link = |url: &str| json!({ "annotations": [{ "type": "url_citation", "url": url }] });
        let said = message(&[
            thought(text("港")),
            thought(text("口")),
            json!({ "content": [text("八"), text("号")] }),
            link("a"),
            link("b"),
        ]);
        let thought = json!({ "type": "thinking", "thinking": [text("港口")] });
        assert_eq!(said["content"], json!([thought, text("八号")]));
        let links = [link("a"), link("b")].map(|link| link["annotations"][0].clone());
        assert_eq!(said["annotations"], json!(links));
    }

    /// The ids, names and arguments of the calls in a stream with these pieces.
    fn calls(pieces: &[Value]) -> Value {
        let deltas: Vec<_> = pieces.iter().map(|piece| json!({ "tool_calls": [piece] })).collect();
        let calls = message(&deltas)["tool_calls"].as_array().cloned().unwrap_or_default();
        let told = |call: &Value| {
            json!([call["id"], call["function"]["name"], call["function"]["arguments"]])
        };
        calls.iter().map(told).collect()
    }

    /// Gemini gives all parallel calls the index 0.
    #[test]
    fn gw9_calls_of_one_index_are_several() {
        let piece = |index: Value, id: Value, name: Value, arguments: &str| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
        let both = json!([["a", "read", "{\"p\":\"港\"}"], ["b", "load", "{}"]]);
        for [first, second] in [[json!(0), json!(0)], [json!(0), json!(1)], [json!(3), json!(7)]] {
            let said = calls(&[
                piece(first.clone(), json!("a"), json!("read"), "{\"p\":"),
                piece(first, json!(""), json!(""), "\"港\"}"),
                piece(second.clone(), json!("b"), json!("load"), "{"),
                piece(second, Value::Null, Value::Null, "}"),
            ]);
            assert_eq!(said, both);
        }
        // Without an index.
        let said = calls(&[
            piece(Value::Null, json!("a"), json!("read"), "{\"p\":\"港\"}"),
            piece(Value::Null, json!("b"), json!("load"), "{}"),
        ]);
        assert_eq!(said, both);
        // One call, with a new id in every piece, or with its name and its id in every piece.
        let one = json!([["a", "read", "{}"]]);
        for (id, name) in [("x", ""), ("a", "read"), ("", "read")] {
            let again = piece(json!(0), json!(id), json!(name), "}");
            let said = calls(&[piece(json!(0), json!("a"), json!("read"), "{"), again]);
            assert_eq!(said, one, "{id} {name}");
        }
    }
}
