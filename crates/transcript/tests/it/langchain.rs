//! Messages of LangChain and LangGraph are read.

use crate::converted::{errors, fixture, json, roles, source};
use foldback_core::Content;
use foldback_transcript::{Format, read_bytes};
use serde_json::json;

#[test]
fn dicts_become_messages_and_calls_count_once() {
    let all = fixture("langchain/dict.json");
    let [read] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(read.envelope.format(), Format::LangChain);
    assert_eq!(
        roles(read),
        ["developer", "user", "assistant", "tool", "tool", "critic", "user", "assistant"]
    );
    assert_eq!(
        (read.messages[1].text().as_ref(), read.messages[1].name()),
        ("列出文件", Some("小明"))
    );
    assert_eq!(read.messages[1].id(), Some("h1"));
    let ai = json(read, 2);
    assert_eq!(ai["content"], json!([{"type": "text", "text": "好"}]));
    assert_eq!(ai["thinking_blocks"][0]["signature"], "sig=");
    assert_eq!(ai["reasoning_content"], "想");
    let [ls, rm] = read.messages[2].tool_calls() else { panic!("{ai}") };
    assert_eq!((ls.id.as_str(), ls.arguments.as_str()), ("c1", r#"{"path": ".", "n": 1.50}"#));
    assert_eq!((rm.id.as_str(), rm.arguments.as_str()), ("c2", r#"{"path": "#));
    // Data that the mapping has no place for, and the block that repeats a call.
    assert_eq!(ai["source"]["repeated"][0]["id"], "c1");
    assert_eq!(ai["source"]["keys"]["usage_metadata"]["total_tokens"], 12);
    assert_eq!(ai["source"]["keys"]["response_metadata"]["model_name"], "m");
    assert_eq!(ai["source"]["line"], 4);
    assert_eq!(json(read, 3)["source"]["keys"]["artifact"], json!({"raw": [1]}));
    assert!(json(read, 3).get("is_error").is_none());
    assert_eq!(
        (&json(read, 4)["is_error"], read.messages[4].text().as_ref()),
        (&json!(true), "bad arguments")
    );
    let Content::Parts(parts) = read.messages[6].content() else { panic!() };
    assert_eq!(parts.len(), 3);
    let image = json(read, 6);
    assert_eq!(image["content"][0]["image_url"]["url"], "data:image/png;base64,aGk=");
    assert_eq!(image["source"]["images"][0]["extras"]["k"], 1);
    assert_eq!(image["content"][2], json!({"type": "non_standard", "value": {"v": 2}}));
    assert_eq!(read.messages[7].tool_calls()[0].arguments, "{\"x\": 1}");
    // A removed message is not a message, and is kept.
    let records = &source(read)["records"];
    assert_eq!(records[0]["record"]["data"]["content"], "forget me");
    assert_eq!(source(read)["counts"], json!({"remove": 1, "removed": 1}));
}

#[test]
fn constructors_stand_one_on_each_line() {
    let all = fixture("langchain/dumps.jsonl");
    let [read] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(roles(read), ["user", "assistant", "tool"]);
    assert_eq!(read.messages[0].text(), "hi \u{fffd}");
    assert!(read.messages[0].json().contains(r#""hi \ud83d""#));
    assert_eq!(read.messages[2].tool_call_id().unwrap().as_str(), "c1");
    assert_eq!(json(read, 2)["source"]["line"], 4);
    let kept = json!([{"line": 3, "record": {"event": "checkpoint", "n": 3}}]);
    assert_eq!(source(read)["records"], kept);
}

#[test]
fn the_state_of_a_thread_holds_messages() {
    let read = fixture("langchain/thread.json").remove(0);
    assert_eq!(read.id.as_deref(), Some("thread-9"));
    assert_eq!(roles(&read), ["user", "assistant"]);
    assert_eq!(read.messages[1].text(), "答");
    assert_eq!(source(&read)["values"]["todos"][0]["content"], "x");
    assert_eq!(source(&read)["body"]["next"], json!([]));
    assert_eq!(json(&read, 0)["source"]["line"], 2);
}

#[test]
fn chunks_of_one_message_are_put_together() {
    let read = fixture("langchain/chunks.json").remove(0);
    assert_eq!(roles(&read), ["user", "assistant", "assistant"]);
    // A character that was cut in two is whole again.
    assert_eq!(read.messages[1].text(), "sho \u{1f600}w");
    let calls: Vec<_> = read.messages[1]
        .tool_calls()
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("c1", "ls", "{\"path\":1}"), ("c2", "rm", "{}")]);
    // The chunks themselves are kept.
    let text = read.messages[1].json();
    assert_eq!(text.matches("\"AIMessageChunk\", \"data\"").count(), 3, "{text}");
    let thinking = &json(&read, 2)["thinking_blocks"][0];
    assert_eq!((&thinking["thinking"], &thinking["signature"]), (&json!("ab"), &json!("s")));
    assert_eq!(read.messages[2].text(), "后");
}

/// Neither removals, chunks nor lists take quadratic time.
#[test]
fn long_lists_are_read() {
    let count = 40_000;
    let line = |kind: &str, id: usize| {
        format!("{{\"type\":\"{kind}\",\"data\":{{\"content\":\"文{id} \",\"id\":\"m{id}\"}}}}")
    };
    let mut lines: Vec<_> = (0..count).map(|id| line("human", id)).collect();
    lines.extend((1..count).map(|id| line("remove", id)));
    lines.extend((0..count).map(|_| line("AIMessageChunk", count)));
    let read = read_bytes(lines.join("\n").as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(roles(&read), ["user", "assistant"]);
    assert_eq!(read.messages[1].text().matches('文').count(), count);
    assert_eq!(source(&read)["counts"], json!({"remove": count - 1, "removed": count - 1}));
    assert_eq!(source(&read)["unfinished_response"], 2 * count);

    let list = format!("[{}]", lines[..count].join(",\n"));
    let read = read_bytes(list.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(json(&read, count - 1)["source"]["line"], count);
}

#[test]
fn hostile_messages_are_named() {
    let list = |message: &str| {
        format!("[{{\"type\":\"human\",\"data\":{{\"content\":\"x\"}}}},\n{message}]")
    };
    for (message, words) in [
        ("7", "message 1 begins with 7; expected a LangChain message"),
        (r#"{"type":"alien","data":{"content":""}}"#, "message 1 begins with"),
        (r#"{"type":"ai","data":{"content":{}}}"#, "\"content\" holds {}; expected a string"),
        (r#"{"type":"ai","data":{"content":[7]}}"#, "a block of the content is 7"),
        (r#"{"type":"tool","data":{"content":"x"}}"#, "\"tool_call_id\" holds nothing; expected"),
        (r#"{"type":"tool","data":{"content":"x","tool_call_id":4}}"#, "\"tool_call_id\" holds 4"),
        (r#"{"type":"ai","data":{"content":"","tool_calls":{}}}"#, "\"tool_calls\" holds {}"),
        (r#"{"type":"ai","data":{"content":"","tool_calls":[{"args":{}}]}}"#, "a call is"),
        (r#"{"type":"chat","data":{"content":""}}"#, "names no \"role\""),
        (r#"{"type":"ai","data":{"content":NaN}}"#, "NaN is not JSON"),
    ] {
        let errors = errors(&list(message));
        let [error] = errors.as_slice() else { panic!("{message}: {errors:?}") };
        assert!(error.starts_with("the input, line 2") && error.contains(words), "{error}");
    }
    let prompt = r#"{"lc":1,"type":"constructor","id":["langchain","PromptTemplate"],"kwargs":{}}"#;
    assert!(errors(prompt)[0].contains("LangChain data that is not a message"));
}
