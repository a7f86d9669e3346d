//! Anthropic Messages bodies are read, and written again as they were.

use crate::converted::{comes_back, errors, fixture, json, roles, source};
use foldback_transcript::{Conversation, Format, Options, anthropic, read_bytes};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The instructions and messages of the body as which a conversation is written.
fn written(conversation: &Conversation) -> Value {
    let body = anthropic::body(&conversation.messages, &[], &Options::default());
    as_the_api_reads(&serde_json::from_str(&body).unwrap())
}

/// The instructions and messages of a body in a normal form, without differences that the API
/// ignores: texts as blocks, blank texts left out, neighbours of one role as one, results first.
fn as_the_api_reads(body: &Value) -> Value {
    let mut turns: Vec<(String, Vec<Value>)> = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let blocks = blocks(&message["content"]);
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, all)) if last == role => all.extend(blocks),
            _ => turns.push((role.to_owned(), blocks)),
        }
    }
    for (_, blocks) in &mut turns {
        blocks.sort_by_key(|block| block["type"] != "tool_result");
    }
    json!({"system": blocks(&body["system"]), "messages": turns})
}

fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => {
            blocks.iter().filter(|block| !is_blank(block)).map(result).collect()
        }
        _ => Vec::new(),
    }
}

fn is_blank(block: &Value) -> bool {
    block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty()
}

fn result(block: &Value) -> Value {
    let mut block = block.clone();
    if block["type"] == "tool_result" {
        let content = blocks(&block["content"]);
        block["content"] = if content.is_empty() { Value::Null } else { content.into() };
    }
    block
}

#[test]
fn a_request_becomes_messages_and_keeps_the_rest() {
    let all = fixture("anthropic/request.json");
    let [read] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(read.envelope.format(), Format::AnthropicBody);
    assert_eq!(
        roles(read),
        ["system", "user", "assistant", "tool", "tool", "user", "assistant", "tool", "assistant"]
    );
    assert_eq!(read.messages[0].text(), "Be brief. 简短回答。");
    assert_eq!(read.messages[1].text(), "Which port does the server use? 端口是多少？");
    assert_eq!(json(read, 1)["source"]["keys"], json!({"ts": 1_764_000_000_123_u64}));
    let calls = json(read, 2);
    assert_eq!(calls["content"], "I look it up.");
    assert_eq!(calls["thinking_blocks"][0]["signature"], "Eq+sig==");
    assert_eq!(calls["thinking_blocks"][1]["data"], "b64opaque==");
    // The bytes of a signature are what is checked.
    assert!(read.messages[2].json().contains(r#""signature": "Eq\u002bsig==""#));
    let [first, second] = read.messages[2].tool_calls() else { panic!("{calls}") };
    assert_eq!((first.id.as_str(), first.name.as_str()), ("toolu_01", "read_file"));
    assert_eq!(first.arguments, r#"{"path": "etc/caf\u00e9.toml", "n": 1.50}"#);
    assert_eq!(second.arguments, "{}");
    assert_eq!(calls["source"]["calls"], json!([{"caller": {"type": "direct"}}, {}]));
    assert_eq!(read.messages[3].tool_call_id().unwrap().as_str(), "toolu_01");
    assert_eq!(read.messages[3].text(), "port = 8080\n端口 = 8080");
    assert_eq!(json(read, 4)["is_error"], true);
    assert_eq!(read.messages[5].text(), "And on the test machine?");
    // Which results shared one message with this text.
    for at in [3, 4, 5] {
        assert_eq!(json(read, at)["source"]["message"], 2);
        assert_eq!(json(read, at)["source"]["format"], "anthropic_body");
    }
    let odd = json(read, 6);
    let kinds: Vec<_> =
        odd["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(
        kinds,
        ["server_tool_use", "web_search_tool_result", "thinking", "text", "text", "future_block"]
    );
    assert_eq!(odd["source"]["calls_at"], json!([4]));
    assert_eq!(json(read, 7)["content"], "");
    assert_eq!(json(read, 0)["source"]["line"], 5);
    assert_eq!(json(read, 8)["source"]["line"], 40);
    // Nothing of the body is lost.
    assert_eq!(source(read)["body"]["metadata"]["user_id"], "u-7");
    assert!(read.envelope.get("source").unwrap().contains("\"temperature\":0.20"));
    assert_eq!(source(read)["body"]["tools"][0]["name"], "read_file");
    assert_eq!(read.check(), []);
}

#[test]
fn a_body_that_was_read_is_written_as_it_was() {
    for name in ["request.json", "messages.json"] {
        let path = format!("{}/tests/fixtures/anthropic/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut body: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        if body.is_array() {
            body = json!({"messages": body});
        }
        let read = fixture(&format!("anthropic/{name}")).remove(0);
        assert_eq!(written(&read), as_the_api_reads(&body));
        // An export in between changes nothing.
        let line = read.to_json_line();
        let again = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
        assert_eq!(written(&again), as_the_api_reads(&body));
    }
}

#[test]
fn what_is_kept_beside_a_message_is_not_sent_to_a_chat_api() {
    let read = fixture("anthropic/request.json").remove(0);
    let kept: String = read.messages.iter().map(|message| message.json().to_owned()).collect();
    assert!(kept.contains("\"source\"") && kept.contains("\"is_error\""), "{kept}");
    for message in &read.messages {
        let sent: Value = serde_json::from_str(&message.api_json()).unwrap();
        assert!(sent.get("source").is_none() && sent.get("is_error").is_none(), "{sent}");
    }
}

#[test]
fn bodies_are_found_inside_lines_of_logs_and_batches() {
    let all = fixture("anthropic/pairs.jsonl");
    let ids: Vec<_> = all.iter().map(|one| one.id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["first", "second", "third", "fourth"]);
    let [first, second, third, fourth] = all.as_slice() else { panic!() };
    assert_eq!(roles(first), ["system", "user", "assistant", "tool", "assistant"]);
    assert_eq!(first.messages[4].text(), "四");
    let keys = &json(first, 4)["source"]["keys"];
    assert_eq!((&keys["model"], &keys["usage"]["output_tokens"]), (&json!("m-2026"), &json!(3)));
    assert_eq!(source(first)["around"]["logged_at"], "2026-05-01T10:00:00Z");
    assert_eq!(second.envelope.format(), Format::AnthropicBody);
    assert_eq!(source(second)["body"]["max_tokens"], 8);
    assert_eq!(third.envelope.format(), Format::ChatCompletionsBody);
    assert_eq!(third.messages[1].json(), r#"{"role":"user","content":"你好","x":1.0}"#);
    assert_eq!(
        (&source(third)["around"]["url"], &source(third)["body"]["seed"]),
        (&json!("/v1/chat/completions"), &json!(7))
    );
    assert_eq!(roles(fourth), ["user", "assistant"]);
    assert_eq!(source(fourth)["request"]["method"], "POST");
    assert_eq!(source(fourth)["answer"]["status_code"], 200);
    assert_eq!(source(fourth)["response"]["usage"]["total_tokens"], 3);
    // An answer that is an error is not a message, and is kept.
    let failed = r#"{"request":{"system":"s","messages":[{"role":"user","content":"x"}]},"response":{"type":"error","error":{"type":"overloaded"}}}"#;
    let failed = read_bytes(failed.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(roles(&failed), ["system", "user"]);
    assert_eq!(source(&failed)["response"]["error"]["type"], "overloaded");
}

/// The answer shows whose API it was if the request holds only texts.
#[test]
fn an_answer_is_a_message() {
    let request = r#"{"model":"m","messages":[{"role":"user","content":"2+2?"}]}"#;
    for response in [
        r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"四"}]}"#,
        r#"{"type":"message","role":"assistant","content":"四"}"#,
        r#"{"content":"四"}"#,
        r#"{"status":200,"body":{"content":[{"type":"text","text":"四"}]}}"#,
    ] {
        let line = format!("{{\"id\":\"log-1\",\"request\":{request},\"response\":{response}}}");
        let read = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
        assert_eq!(roles(&read), ["user", "assistant"], "{response}");
        assert_eq!(read.messages[1].text(), "四");
        assert_eq!(read.id.as_deref(), Some("log-1"), "the line's own");
        comes_back(&read);
    }
    // A chat body stays one, and an answer that is not an object is kept as it is.
    let request = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"x"}]}"#;
    for response in [r#"{"content":"KEPT"}"#, r#""HTTP 500 KEPT""#] {
        let line = format!("{{\"request\":{request},\"response\":{response}}}");
        let read = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
        assert_eq!(roles(&read), ["system", "user"]);
        assert!(read.to_json_line().contains("KEPT"), "{}", read.to_json_line());
        comes_back(&read);
    }
}

#[test]
fn a_list_of_messages_is_read() {
    let read = fixture("anthropic/messages.json").remove(0);
    assert_eq!(roles(&read), ["user", "assistant", "tool", "user"]);
    assert_eq!(read.messages[1].id(), Some("m-2"));
    assert_eq!(read.messages[1].timestamp().unwrap().to_string(), "2026-05-01 10:00:01");
    assert_eq!(json(&read, 2)["source"]["block"], json!({"is_error": false}));
    assert_eq!(json(&read, 2)["source"]["block_at"], 1);
    let with_id = r#"{"id":"a","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}"#;
    let with_id = read_bytes(with_id.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(
        (with_id.id.as_deref(), with_id.envelope.format()),
        (Some("a"), Format::AnthropicBody)
    );
    comes_back(&with_id);
}

#[test]
fn hostile_bodies_are_named() {
    let body = |messages: &str| {
        format!(
            "{{\"system\":\"s\",\n\"messages\":[{{\"role\":\"user\",\"content\":\"x\"}},\n{messages}]}}"
        )
    };
    for (messages, words) in [
        ("7", "message 1: it is 7; expected an object"),
        (r#"{"content":"x"}"#, "message 1: the role is nothing; expected \"user\","),
        (r#"{"role":["user"],"content":"x"}"#, "the role is [\"user\"]"),
        (r#"{"role":"user"}"#, "it has no \"content\"; expected a string"),
        (r#"{"role":"user","content":{}}"#, "\"content\" holds {}; expected a"),
        (r#"{"role":"user","content":[null]}"#, "a content block is null; expected an object"),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","name":"n"}]}"#,
            "the \"id\" of a tool_use block holds nothing; expected a string",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"i","name":7}]}"#,
            "the \"name\" of a tool_use block holds 7",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result"}]}"#,
            "the \"tool_use_id\" of a tool_result block holds nothing",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":1e999}]}"#,
            "the \"content\" of a tool_result block holds 1e999",
        ),
    ] {
        let errors = errors(&body(messages));
        let [error] = errors.as_slice() else { panic!("{messages}: {errors:?}") };
        assert!(error.starts_with("the input, line 3: ") && error.contains(words), "{error}");
    }
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"n"}]}"#;
    let errors = errors(&format!("{{\"system\":7,\"messages\":[{call}]}}"));
    assert!(errors[0].contains("line 1: \"system\" holds 7; expected a string"), "{errors:?}");
    // Neither numbers nor halves of pairs nor repeated ids do any harm.
    let odd = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"n":1e999,"s":"\ud83d"}},{"type":"tool_use","id":"t","name":"n","input":7}]},{"role":"user","content":[]}]"#;
    let odd = read_bytes(odd.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(odd.messages[0].tool_calls()[0].arguments, r#"{"n":1e999,"s":"\ud83d"}"#);
    assert_eq!(odd.messages[0].tool_calls()[1].arguments, "7");
    assert!(odd.check().len() >= 3, "{:?}", odd.check());
    comes_back(&odd);
}

/// A message without content is one that says nothing, and the others are read.
#[test]
fn null_is_an_empty_content() {
    let body = r#"{"system":"简短","messages":[{"role":"user","content":null},{"role":"assistant","content":null},{"role":"user","content":"哪个端口？"}]}"#;
    let read = read_bytes(body.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(roles(&read), ["system", "user", "assistant", "user"]);
    let texts: Vec<_> = read.messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["简短", "", "", "哪个端口？"]);
    comes_back(&read);
    let alone = anthropic::read_message(r#"{"role":"user","content":null}"#).unwrap();
    assert_eq!((alone.len(), alone[0].text().as_ref()), (1, ""));
}

/// Finding the line of each message does not cost their square.
#[test]
fn long_bodies_are_read() {
    let count = 60_000;
    let messages: Vec<_> =
        (0..count).map(|n| format!("{{\"role\":\"user\",\"content\":\"问 {n}\"}}")).collect();
    let messages = messages.join(",\n");
    let wrapped = format!("{{\"custom_id\":\"a\",\"body\":{{\"messages\":[{messages}]}}}}");
    let wrapped = wrapped.replace('\n', "\r\n ");
    // A body in a line stands on one; pretty-printed, on many.
    let read = read_bytes(wrapped.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(read.messages.len(), count);
    let text = format!("{{\"system\":\"s\",\"messages\":[{messages}]}}");
    let read = read_bytes(text.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(json(&read, count)["source"]["line"], count);
}

/// A body that the API accepts: every call is answered in the next message.
fn any_body() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["go", "好的，继续。", "é\u{1f600}", "line\nline", " "]);
    let block = prop_oneof![
        4 => text.clone().prop_map(|text| json!({"type": "text", "text": text})),
        1 => text.clone().prop_map(|text| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})),
        2 => text.clone().prop_map(|text| json!({"type": "thinking", "thinking": text, "signature": "s"})),
        1 => Just(json!({"type": "redacted_thinking", "data": "d"})),
        1 => Just(json!({"type": "server_tool_use", "id": "srv", "name": "web", "input": {}})),
        4 => any::<bool>().prop_map(|marked| match marked {
            true => json!({"type": "tool_use", "name": "n", "input": {"a": [1]}, "caller": {"t": 1}}),
            false => json!({"type": "tool_use", "name": "n", "input": {}}),
        }),
    ];
    let turn = (prop::collection::vec(block, 1..6), text, any::<bool>());
    prop::collection::vec(turn, 1..5).prop_map(|turns| {
        let mut messages = vec![json!({"role": "user", "content": "begin"})];
        let mut n = 0;
        for (mut blocks, text, plain) in turns {
            let mut next = Vec::new();
            for block in &mut blocks {
                if block["type"] == "tool_use" {
                    n += 1;
                    block["id"] = format!("toolu_{n}").into();
                    let content = if plain { json!(text) } else { json!([{"type": "text", "text": text}]) };
                    next.push(json!({"type": "tool_result", "tool_use_id": block["id"], "content": content}));
                }
            }
            next.push(json!({"type": "text", "text": text}));
            next.push(json!({"type": "image", "source": {"type": "url", "url": "u"}}));
            messages.push(json!({"role": "assistant", "content": blocks}));
            messages.push(json!({"role": "user", "content": next}));
        }
        json!({"system": "简短", "messages": messages})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_body_is_written_as_it_was(body in any_body()) {
        let text = body.to_string();
        let read = read_bytes(text.as_bytes()).unwrap().next().unwrap().unwrap();
        prop_assert_eq!(written(&read), as_the_api_reads(&body));
        comes_back(&read);
    }
}
