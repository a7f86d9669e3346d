//! GW9: one stream of several answers, however they are cut.

use super::{Failed, Stream};
use crate::Api;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The model thinks, speaks, calls our tools and ends; then it speaks, calls ours beside the client's, and ends.
fn messages() -> [String; 2] {
    let event =
        |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let block = |index: u64, block: Value, deltas: &[Value]| {
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": block });
        let delta = |delta: &Value| {
            event(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
        };
        let deltas: String = deltas.iter().map(delta).collect();
        event(start) + &deltas + &event(json!({ "type": "content_block_stop", "index": index }))
    };
    let start = |input: u64| {
        let usage =
            json!({ "input_tokens": input, "cache_read_input_tokens": 5, "output_tokens": 1 });
        event(
            json!({ "type": "message_start", "message": { "id": format!("m{input}"), "content": [], "usage": usage } }),
        )
    };
    let end = |output: u64| {
        let delta = json!({ "stop_reason": "tool_use", "stop_sequence": null });
        event(
            json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": output } }),
        ) + &event(json!({ "type": "message_stop" }))
    };
    let call = |index: u64, id: &str, name: &str| {
        let begun = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let input = json!({ "type": "input_json_delta", "partial_json": "{\"a\":\"港\"}" });
        block(index, begun, &[input])
    };
    let text = |index: u64, words: &str| {
        let begun = json!({ "type": "text", "text": "" });
        block(index, begun, &[json!({ "type": "text_delta", "text": words })])
    };
    let thought = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let thinking = [
        json!({ "type": "thinking_delta", "thinking": "七" }),
        json!({ "type": "signature_delta", "signature": "sig" }),
    ];
    let ping = ": comment\n\nevent: ping\ndata: {\"type\": \"ping\"}\r\n\r\n";
    let first = start(10) + ping + &block(0, thought, &thinking) + &text(1, "Let me look.");
    let first = first + &call(2, "o1", "foldback_load") + &end(20);
    let second = start(30) + &text(0, "It is:") + &call(1, "o2", "foldback_load") + ping;
    [first, second + &call(2, "t1", "read") + &call(3, "o3", "foldback_load") + &end(40)]
}

fn stream(api: Api) -> Stream {
    Stream::new(api, vec!["foldback_load".to_owned()])
}

/// What the client gets of answers that come in pieces of these lengths.
fn played(api: Api, answers: &[String], lengths: &[usize]) -> String {
    let (mut stream, mut out) = (stream(api), Vec::new());
    for (n, answer) in answers.iter().enumerate() {
        let (mut rest, mut lengths) = (answer.as_bytes(), lengths.iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at((*lengths.next().unwrap()).min(rest.len()));
            out.extend(stream.read(piece));
            rest = later;
        }
        assert!(stream.is_to_be_decided());
        if n + 1 < answers.len() {
            stream.go_on();
        }
    }
    out.extend(stream.end());
    assert_eq!(stream.shown().as_bytes(), out);
    String::from_utf8(out).unwrap()
}

fn data(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn gw9_messages_become_one() {
    let out = played(Api::Messages, &messages(), &[usize::MAX]);
    assert!(!out.contains("foldback"), "{out}");
    let events = data(&out);
    let kinds = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    let once = ["message_start", "message_delta", "message_stop"].map(kinds);
    assert_eq!((once, kinds("ping"), kinds("content_block_start")), ([1, 1, 1], 2, 4));
    let starts = events.iter().filter(|event| event["type"] == "content_block_start");
    let indices: Vec<_> = starts.map(|event| event["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [0, 1, 2, 3]);
    let end = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    let usage = json!({ "output_tokens": 60, "input_tokens": 30, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5 });
    assert_eq!((&end["usage"], &end["delta"]["stop_reason"]), (&usage, &json!("tool_use")));
    // What precedes the first call of ours is the provider's to the byte.
    let [first, _] = messages();
    let visible = first
        .find("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2");
    assert!(out.starts_with(&first[..visible.unwrap()]));
}

/// Text is sent at once, and only the end waits.
#[test]
fn gw9_words_are_not_held_back() {
    let mut stream = stream(Api::Messages);
    let [first, _] = messages();
    let mut words = 0;
    for event in first.split_inclusive("\n\n") {
        let out = stream.read(event.as_bytes());
        let is_words = event.contains("text_delta") || event.contains("thinking_delta");
        assert!(!is_words || out == event.as_bytes(), "{event}");
        words += u32::from(is_words);
    }
    assert!(words > 0, "{first}");
}

/// A stream without a call of ours passes byte for byte, whatever it is.
#[test]
fn gw9_what_calls_none_of_ours_passes() {
    for text in [
        "data: {\"choices\":[]}\n\ndata: [DONE]\n\nrest",
        "\n\n: c\r\n\r\ndata:no json\n\n",
        "event: x\n",
    ] {
        for api in [Api::Messages, Api::ChatCompletions, Api::Responses] {
            let mut stream = stream(api);
            let mut out = stream.read(text.as_bytes());
            assert!(!stream.close());
            out.extend(stream.rest());
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}

/// Servers that send a call whole, with the end in the same piece, without numbers and without an end of the stream.
#[test]
fn gw9_chat_completions_of_other_servers() {
    let chunk = |delta: Value, finish: Value| {
        format!(
            "data: {}\n\n",
            json!({ "id": "c1", "created": 1, "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
        )
    };
    let call = |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let first = chunk(
        json!({ "role": "assistant", "content": "I look.", "tool_calls": [call("a", "foldback_load")] }),
        json!("stop"),
    );
    let both = json!([call("b", "foldback_load"), call("c", "read")]);
    let second = chunk(json!({ "role": "assistant", "content": "So:" }), Value::Null)
        + &chunk(json!({ "tool_calls": both }), json!("tool_calls")).replace("c1", "c2");
    let mut stream = stream(Api::ChatCompletions);
    let mut out = stream.read(first.as_bytes());
    assert!(stream.close());
    stream.go_on();
    out.extend(stream.read(second.as_bytes()));
    assert!(stream.close());
    out.extend(stream.end());
    let out = String::from_utf8(out).unwrap();
    let deltas: Vec<_> = data(&out).iter().map(|chunk| chunk["choices"][0].clone()).collect();
    let words: String = deltas.iter().filter_map(|one| one["delta"]["content"].as_str()).collect();
    assert_eq!(
        (&*words, out.contains("foldback"), out.contains("c2")),
        ("I look.\n\nSo:", false, false)
    );
    let ends: Vec<_> = deltas.iter().filter(|one| one["finish_reason"].is_string()).collect();
    assert_eq!((ends.len(), &ends[0]["finish_reason"]), (1, &json!("tool_calls")));
    let calls: Vec<_> =
        deltas.iter().filter_map(|one| one["delta"]["tool_calls"].as_array()).collect();
    assert_eq!((calls.len(), &calls[0][0]["id"]), (1, &json!("c")));
}

/// Gemini gives all parallel calls the index 0; the client gets its own calls, each with an index.
#[test]
fn gw9_calls_of_one_index_are_the_clients_and_ours() {
    let call = |id: &str, name: &str| json!({ "index": 0, "id": id, "type": "function", "function": { "name": name, "arguments": "{\"p\":\"港\"}" } });
    let chunk = |calls: Value, finish: Value| {
        let choice =
            json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "c1", "created": 1, "choices": [choice] }))
    };
    let done = "data: [DONE]\n\n";
    let apart = chunk(json!([call("a", "foldback_load")]), Value::Null)
        + &chunk(json!([call("b", "read")]), Value::Null)
        + &chunk(json!([call("c", "write")]), json!("tool_calls"))
        + done;
    let all = json!([call("a", "foldback_load"), call("b", "read"), call("c", "write")]);
    let together = chunk(all, json!("tool_calls")) + done;
    for answer in [apart, together] {
        let out = played(Api::ChatCompletions, &[answer], &[usize::MAX]);
        let chunks = data(&out);
        let deltas = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"]);
        let calls: Vec<_> = deltas.filter_map(Value::as_array).flatten().collect();
        let told = |call: &&Value| (call["index"].clone(), call["id"].clone());
        let calls: Vec<_> = calls.iter().map(told).collect();
        assert_eq!(calls, [(json!(0), json!("b")), (json!(1), json!("c"))], "{out}");
    }
}

/// GW12: what is not of the shape of its API passes, and what follows it is played.
#[test]
fn gw12_odd_pieces_of_a_stream_pass() {
    let odd = [
        json!({ "choices": [1] }),
        json!({ "choices": ["港"] }),
        json!({ "choices": [{ "delta": "港" }] }),
        json!({ "choices": [{ "delta": { "tool_calls": ["港", 1] } }] }),
    ]
    .map(|data| format!("data: {data}\n\n"));
    let call = json!({ "index": 0, "id": "a", "type": "function", "function": { "name": "foldback_load", "arguments": "{}" } });
    let call = json!({ "choices": [{ "delta": { "tool_calls": [7, call] } }] });
    let end = "data: {\"choices\":[{\"finish_reason\":\"tool_calls\"}]}\n\n";
    let answer = odd.concat() + &format!("data: {call}\n\n") + &odd.concat() + end;
    let mut stream = stream(Api::ChatCompletions);
    let out = String::from_utf8(stream.read(answer.as_bytes())).unwrap();
    assert!(out.starts_with(&odd.concat()) && !out.contains("foldback"), "{out}");
    assert!(stream.close());
    stream.go_on();
    let out = String::from_utf8(stream.read(odd.concat().as_bytes())).unwrap();
    assert!(out.contains("港"), "{out}");

    for response in [json!("港"), json!(["港"]), json!(8), Value::Null] {
        let event = json!({ "type": "response.created", "response": response });
        let mut stream = self::stream(Api::Responses);
        let event = format!("data: {event}\n\n");
        assert_eq!(stream.read(event.as_bytes()), event.as_bytes());
        let error = stream.error(&Failed::default());
        assert!(error.contains("\"status\":\"failed\""), "{error}");
    }
}

proptest! {
    /// However a stream is cut, the client gets the same.
    #[test]
    fn gw9_pieces_make_no_difference(lengths in prop::collection::vec(1usize..90, 1..20)) {
        let whole = played(Api::Messages, &messages(), &[usize::MAX]);
        prop_assert_eq!(played(Api::Messages, &messages(), &lengths), whole);
    }
}

/// R5: the sum of a provider's counts may exceed the largest number.
#[test]
fn r5_counts_beyond_all_numbers_are_told() {
    let most = u64::MAX.to_string();
    let [first, second] = messages();
    let answers = [first, second]
        .map(|answer| answer.replace("\"output_tokens\":20", &format!("\"output_tokens\":{most}")));
    let out = played(Api::Messages, &answers, &[usize::MAX]);
    let end = data(&out).into_iter().find(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(end["usage"]["output_tokens"], json!(u64::MAX));

    // An event has the greatest possible number.
    let mut stream = stream(Api::Responses);
    let event = format!("data: {{\"type\":\"response.created\",\"sequence_number\":{most}}}\n\n");
    assert_eq!(stream.read(event.as_bytes()), event.as_bytes());
    let error = stream.error(&Failed::default());
    assert!(error.contains(&format!("\"sequence_number\":{most}")), "{error}");
}
