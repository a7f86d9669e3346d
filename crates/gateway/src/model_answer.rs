//! A model's answer, as the message that a client sends back.

use crate::sse::Events;
use crate::{Api, exact};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

mod pieces;

pub(crate) use pieces::CallNumbers;

/// Returns the message in an answer, streamed or not; `None` if it holds none or broke off.
pub(crate) fn message_of(api: Api, answer: &str) -> Option<Box<RawValue>> {
    let message = match (api, answer.trim_start().starts_with('{')) {
        (Api::Messages, true) => {
            let answer = exact::read_integers(answer)?;
            json!({ "role": "assistant", "content": answer.get("content")? })
        }
        (Api::Messages, false) => anthropic_stream(answer)?,
        (Api::ChatCompletions, true) => {
            let answer = exact::read_integers(answer)?;
            answer.pointer("/choices/0/message")?.clone()
        }
        (Api::ChatCompletions, false) => chat_stream(answer)?,
        (Api::Responses, true) => {
            let answer = exact::read_integers(answer)?;
            let items = answer.get("output").and_then(Value::as_array);
            Value::Array(items.filter(|items| !items.is_empty())?.clone())
        }
        (Api::Responses, false) => responses_stream(answer)?,
        _ => return None,
    };
    RawValue::from_string(exact::write(&message)).ok()
}

/// Returns the data of the events of a stream, each as JSON with exact integers. The last one need not be complete.
pub(crate) fn events(stream: &str) -> impl Iterator<Item = Value> {
    let mut events = Events::default();
    events.push(stream.as_bytes());
    events.push(b"\n\n");
    events.filter_map(|event| exact::read_integers(&event.data))
}

fn anthropic_stream(stream: &str) -> Option<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let mut is_whole = false;
    for event in events(stream) {
        let index =
            event.get("index").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        match (event.get("type").and_then(Value::as_str), index) {
            (Some("content_block_start"), Some(index)) if index == blocks.len() => {
                blocks.push(event.get("content_block")?.clone());
                inputs.push(String::new());
            }
            (Some("content_block_delta"), Some(index)) => {
                let (block, delta) = (blocks.get_mut(index)?.as_object_mut()?, event.get("delta")?);
                for (key, piece) in delta.as_object()?.iter().filter(|(key, _)| *key != "type") {
                    match (key.as_str(), piece) {
                        ("partial_json", Value::String(piece)) => {
                            inputs.get_mut(index)?.push_str(piece);
                        }
                        ("citation", piece) => {
                            let list = block.entry("citations").or_insert_with(|| json!([]));
                            if !list.is_array() {
                                *list = json!([]);
                            }
                            list.as_array_mut()?.push(piece.clone());
                        }
                        _ => extend(block, key, piece),
                    }
                }
            }
            (Some("message_stop"), _) => is_whole = true,
            _ => {}
        }
    }
    for (block, input) in blocks.iter_mut().zip(&inputs).filter(|(_, input)| !input.is_empty()) {
        let input = exact::read_integers(input).unwrap_or_else(|| json!({}));
        block.as_object_mut()?.insert("input".to_owned(), input);
    }
    is_whole.then(|| json!({ "role": "assistant", "content": blocks }))
}

fn chat_stream(stream: &str) -> Option<Value> {
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant"))]);
    let (mut calls, mut numbers) = (Vec::new(), CallNumbers::default());
    let mut is_whole = false;
    for event in events(stream) {
        // If several answers were requested, a conversation continues with the first.
        let choices = event.get("choices").and_then(Value::as_array).into_iter().flatten();
        let is_first = |choice: &&Value| choice.get("index").is_none_or(|index| *index == 0);
        let Some(choice) = choices.into_iter().find(is_first) else { continue };
        is_whole |= choice.get("finish_reason").is_some_and(Value::is_string);
        let Some(delta) = choice.get("delta").and_then(Value::as_object) else { continue };
        for (key, piece) in delta.iter().filter(|(key, _)| *key != "role") {
            match (key.as_str(), piece) {
                ("tool_calls", Value::Array(list)) => {
                    for piece in list {
                        pieces::extend_call(&mut calls, &mut numbers, piece);
                    }
                }
                _ => pieces::extend_message(&mut message, key, piece),
            }
        }
    }
    message.entry("content").or_insert(Value::Null);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into_iter().map(Value::Object).collect());
    }
    is_whole.then_some(Value::Object(message))
}

fn responses_stream(stream: &str) -> Option<Value> {
    let (mut items, mut is_whole) = (Vec::new(), false);
    for mut event in events(stream) {
        match event.get("type").and_then(Value::as_str) {
            Some("response.output_item.done") => items.push(event.get_mut("item")?.take()),
            // It is incomplete where the model reached the most tokens that it may write.
            Some("response.completed" | "response.incomplete") => is_whole = true,
            _ => {}
        }
    }
    (is_whole && !items.is_empty()).then_some(Value::Array(items))
}

/// Adds a piece to what is there: a text is appended to a text, anything else is replaced.
fn extend(object: &mut Map<String, Value>, key: &str, piece: &Value) {
    match (object.get_mut(key), piece) {
        (_, Value::Null) => {}
        (Some(Value::String(text)), Value::String(more)) if are_texts(text, more) => {
            text.push_str(more);
        }
        _ => drop(object.insert(key.to_owned(), piece.clone())),
    }
}

/// Returns whether neither string stands for a number.
fn are_texts(text: &str, more: &str) -> bool {
    !exact::is_number(text) && !exact::is_number(more)
}

#[cfg(test)]
mod tests {
    use super::message_of;
    use crate::Api;
    use serde_json::json;

    /// GW5: a call's integers are recorded and asked again as the model wrote them, streamed or not; fractions are
    /// those that clients send back.
    #[test]
    fn gw5_integers_of_an_answer_keep_their_digits() {
        let input = r#"{"id":123456789012345678901234567890,"at":19.90}"#;
        let block =
            |input: &str| format!(r#"{{"type":"tool_use","id":"a","name":"读","input":{input}}}"#);
        let message = format!(r#"{{"role":"assistant","content":[{}]}}"#, block(input));
        let said = |answer: &str| message_of(Api::Messages, answer).unwrap().get().to_owned();
        let expected = message.replace("19.90", "19.9");
        assert_eq!(said(&message), expected);
        let (begin, end) = input.split_at(20);
        let delta = |piece: &str| {
            let delta = json!({ "type": "input_json_delta", "partial_json": piece });
            json!({ "type": "content_block_delta", "index": 0, "delta": delta }).to_string()
        };
        let start = format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{}}}"#,
            block("{}")
        );
        let stop = json!({ "type": "message_stop" }).to_string();
        let events = [start, delta(begin), delta(end), stop];
        let stream: String = events.map(|event| format!("data: {event}\n\n")).concat();
        assert_eq!(said(&stream), expected);
    }

    /// GW5: a number that comes in several pieces is the last one, and the rest of the answer stays.
    #[test]
    fn gw5_long_numbers_are_not_joined() {
        let (long, longer) = ("123456789012345678901234567890", "223456789012345678901234567890");
        let piece = |content: &str, number: &str| {
            let thought = format!(r#"{{"type":"thinking","index":0,"data":{number}}}"#);
            let delta = format!(
                r#"{{"content":"{content}","seconds":{number},"thoughts":[{thought}],"港口":"{content}"}}"#
            );
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
        };
        let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let stream = piece("八", long) + &piece("号", longer) + end;
        let said = message_of(Api::ChatCompletions, &stream).unwrap();
        let thought = format!(r#"{{"type":"thinking","index":0,"data":{longer}}}"#);
        assert_eq!(
            said.get(),
            format!(
                r#"{{"role":"assistant","content":"八号","seconds":{longer},"thoughts":[{thought}],"港口":"八号"}}"#
            )
        );
    }

    #[test]
    fn gw2_an_answer_that_reached_its_longest_is_an_answer() {
        let item = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"港口"}]}"#;
        let done = format!("data: {{\"type\":\"response.output_item.done\",\"item\":{item}}}\n\n");
        let ended = |with: &str| {
            let stream =
                format!("{done}data: {{\"type\":\"response.{with}\",\"response\":{{}}}}\n\n");
            message_of(Api::Responses, &stream).map(|message| message.get().to_owned())
        };
        let whole = ended("completed");
        assert!(whole.as_ref().is_some_and(|whole| whole.contains("港口")));
        assert_eq!(ended("incomplete"), whole);
        assert_eq!(ended("failed"), None);
    }
}
