//! Request bodies for the two APIs.

use foldback_core::{Content, Message, Part, Role, ToolDefinition};
use foldback_testkit::{data, generate, skip_without_data, transcript};
use foldback_transcript::{Options, anthropic, chat};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;

fn body(messages: &[Message]) -> Value {
    let body = anthropic::body(messages, &[], &Options::default());
    assert!(!body.contains('\n'));
    serde_json::from_str(&body).unwrap()
}

#[track_caller]
fn check(script: &str, expected: Value) {
    assert_eq!(body(&transcript(script)), expected);
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_conversation_becomes_blocks() {
    check(
        "
        system: be brief
        user: 2+2?
        assistant: let me see
        assistant> calc({\"e\": 1.50}) #toolu_1
        tool: 4
        assistant: 四
        ",
        json!({
            "system": [text("be brief")],
            "messages": [
                {"role": "user", "content": [text("2+2?")]},
                {"role": "assistant", "content": [
                    text("let me see"),
                    {"type": "tool_use", "id": "toolu_1", "name": "calc", "input": {"e": 1.50}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("4")]},
                ]},
                {"role": "assistant", "content": [text("四")]},
            ],
        }),
    );
    // Number forms in arguments are kept.
    let exact =
        anthropic::body(&transcript("assistant> c({\"e\": 1.50})"), &[], &Options::default());
    assert!(exact.contains(r#""input":{"e": 1.50}"#), "{exact}");
}

#[test]
fn neighbours_are_merged_and_results_stand_first() {
    check(
        "
        user: a
        user: b
        assistant> x({}) #1
        assistant> y({}) #2
        tool #2: r2
        tool #1 !: r1
        user: c
        assistant: d
        assistant: e
        ",
        json!({"messages": [
            {"role": "user", "content": [text("a"), text("b")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "x", "input": {}},
                {"type": "tool_use", "id": "2", "name": "y", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "2", "content": [text("r2")]},
                {"type": "tool_result", "tool_use_id": "1", "content": [text("r1")], "is_error": true},
                text("c"),
            ]},
            {"role": "assistant", "content": [text("d"), text("e")]},
        ]}),
    );
}

#[test]
fn the_first_message_is_a_users() {
    let beginning = json!({"role": "user", "content": [text("(The conversation begins here.)")]});
    check("system: s", json!({"system": [text("s")], "messages": [beginning]}));
    check(
        "assistant: hi",
        json!({"messages": [beginning, {"role": "assistant", "content": [text("hi")]}]}),
    );
}

#[test]
fn late_instructions_go_on_top() {
    check(
        "system: a\nuser: u\ndeveloper: b",
        json!({"system": [text("a"), text("b")], "messages": [
            {"role": "user", "content": [text("u")]},
        ]}),
    );
}

#[test]
fn arguments_are_always_objects() {
    check(
        "user: u\nassistant> a([1]) #1\nassistant> b({\"cut) #2\nassistant> c() #3\ntool: r\ntool: r\ntool: r",
        json!({"messages": [
            {"role": "user", "content": [text("u")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "a", "input": {"_raw": "[1]"}},
                {"type": "tool_use", "id": "2", "name": "b", "input": {"_raw": "{\"cut"}},
                {"type": "tool_use", "id": "3", "name": "c", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [text("r")]},
                {"type": "tool_result", "tool_use_id": "2", "content": [text("r")]},
                {"type": "tool_result", "tool_use_id": "3", "content": [text("r")]},
            ]},
        ]}),
    );
}

#[test]
fn ids_are_legal_and_stand_for_one_call_each() {
    let long = "a".repeat(80);
    let script = format!(
        "user: u
        assistant> t({{}}) #call:1
        assistant> t({{}}) #call/1
        assistant> t({{}}) #问
        assistant> t({{}}) #{long}
        assistant> t({{}}) #{long}b
        tool #call/1: slash
        tool #call:1: colon
        assistant> t({{}}) #call:1
        tool: again"
    )
    .replace("\n        ", "\n");
    let body = body(&transcript(&script));
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        for block in message["content"].as_array().unwrap() {
            calls.extend(block["id"].as_str().map(str::to_owned));
            if let Some(id) = block["tool_use_id"].as_str() {
                results.push((id.to_owned(), block["content"][0]["text"].as_str().unwrap_or("")));
            }
        }
    }
    assert_eq!(
        calls,
        ["call_1", "call_1_2", "_", &"a".repeat(64), &format!("{}_2", "a".repeat(62)), "call_1_3"]
    );
    assert_eq!(results[0], ("call_1_2".to_owned(), "slash"));
    assert_eq!(results[1], ("call_1".to_owned(), "colon"));
    assert_eq!(results.last().unwrap(), &("call_1_3".to_owned(), "again"));
}

#[test]
fn calls_and_results_that_lack_each_other_stay_valid() {
    let note = "(No result was recorded for this call.)";
    check(
        "user: u\nassistant> a({}) #1\nuser: on\ntool #1: late",
        json!({"messages": [
            {"role": "user", "content": [text("u")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "a", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [text(note)], "is_error": true},
                text("on"),
                text("(A tool's result, whose call is not part of this conversation:)"),
                text("late"),
            ]},
        ]}),
    );
}

#[test]
fn blank_texts_are_left_out() {
    check(
        "user: u\nassistant:  \nassistant> a({}) #1\ntool: [nothing]\nuser: [nothing]\nassistant: v",
        json!({"messages": [
            {"role": "user", "content": [text("u")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "a", "input": {}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]},
            {"role": "assistant", "content": [text("v")]},
        ]}),
    );
}

#[test]
fn parts_are_translated_or_passed_through() {
    let parts = [
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#,
        r#"{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}}"#,
        r#"{"type":"text","text":"kept","cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"text","text":" ","cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"refusal","refusal":"no"}"#,
        "{\"type\":\"document\",\n\"source\":{\"n\":1.50}}",
    ];
    let parts = parts.iter().map(|part| Part::Other((*part).into())).collect();
    let message = Message::compose(Role::User, Content::Parts(parts), Vec::new(), None);
    assert_eq!(
        body(&[message])["messages"][0]["content"],
        json!([
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            {"type": "text", "text": "kept", "cache_control": {"type": "ephemeral"}},
            text("no"),
            {"type": "document", "source": {"n": 1.50}},
        ])
    );
}

#[test]
fn signed_thinking_comes_back_in_front() {
    let message = Message::from_json(
        r#"{"role":"assistant","content":"x","thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s\/="}]}"#,
    )
    .unwrap();
    let exact = anthropic::body([&message], &[], &Options::default());
    let thinking =
        r#"[{"type":"thinking","thinking":"t","signature":"s\/="},{"type":"text","text":"x"}]"#;
    assert!(exact.contains(thinking), "{exact}");
}

#[test]
fn tools_and_options_stand_in_both_bodies() {
    let tools = [
        ToolDefinition {
            name: "load".into(),
            description: "Brings \"it\" back.".into(),
            parameters: "{\"type\": \"object\",\n\"x\": 1.0}".into(),
        },
        ToolDefinition { name: "odd".into(), description: String::new(), parameters: "no".into() },
    ];
    let options = Options { model: Some("m".into()), max_tokens: Some(9) };
    let messages = transcript("user: u");
    assert_eq!(
        anthropic::body(&messages, &tools, &options),
        concat!(
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"u"}]}],"#,
            r#""tools":[{"name":"load","description":"Brings \"it\" back.","input_schema":{"type": "object", "x": 1.0}},"#,
            r#"{"name":"odd","description":"","input_schema":{"type":"object"}}]}"#
        )
    );
    assert_eq!(
        chat::body(&messages, &tools, &options),
        concat!(
            r#"{"model":"m","messages":[{"role":"user","content":"u"}],"tools":[{"type":"function","function":"#,
            r#"{"name":"load","description":"Brings \"it\" back.","parameters":{"type": "object", "x": 1.0}}},"#,
            r#"{"type":"function","function":{"name":"odd","description":"","parameters":{"type":"object"}}}],"#,
            r#""max_completion_tokens":9}"#
        )
    );
}

#[test]
fn a_chat_body_leaves_out_what_only_a_recording_has() {
    let message = Message::from_json(
        "{\"id\":\"m1\",\"role\":\"user\",\n\"content\":\"caf\\u00e9\",\"timestamp\":\"2025-01-01T10:00:00Z\",\"x\":1}",
    )
    .unwrap();
    assert_eq!(
        chat::body([&message], &[], &Options::default()),
        r#"{"messages":[{"role":"user","content":"caf\u00e9"}]}"#
    );
}

/// The rules that the Anthropic API checks.
#[track_caller]
fn assert_legal(messages: &[Message]) {
    let body = body(messages);
    let turns = body["messages"].as_array().unwrap();
    assert_eq!(turns[0]["role"], "user");
    let mut ids = HashSet::new();
    let mut waiting: HashSet<String> = HashSet::new();
    for (i, turn) in turns.iter().enumerate() {
        assert_eq!(turn["role"], ["user", "assistant"][i % 2], "{body}");
        let content = turn["content"].as_array().unwrap();
        assert!(!content.is_empty(), "{body}");
        let mut text_begun = false;
        let mut answered = HashSet::new();
        for block in content {
            match block["type"].as_str().unwrap() {
                "text" => {
                    text_begun = true;
                    assert!(!block["text"].as_str().unwrap().trim().is_empty());
                }
                "tool_use" => {
                    let id = block["id"].as_str().unwrap();
                    assert!((1..=64).contains(&id.len()));
                    assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
                    assert!(ids.insert(id.to_owned()), "{id} stands for two calls");
                    assert!(block["input"].is_object());
                }
                "tool_result" => {
                    assert!(!text_begun, "a result stands behind other blocks: {body}");
                    assert!(answered.insert(block["tool_use_id"].as_str().unwrap().to_owned()));
                }
                _ => text_begun = true,
            }
        }
        assert_eq!(answered, waiting, "turn {i} of {body}");
        waiting = content
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| block["id"].as_str().unwrap().to_owned())
            .collect();
    }
    assert!(waiting.is_empty());
    for block in body["system"].as_array().into_iter().flatten() {
        assert_eq!(block["type"], "text");
    }
}

#[test]
fn every_recorded_conversation_makes_a_legal_body() {
    skip_without_data!();
    let mut count = 0;
    for (_, conversation) in data::conversations(&["agent", "dialogue", "segmentation"]) {
        assert_legal(&conversation.messages);
        // So does the beginning of a longer conversation, cut anywhere.
        assert_legal(&conversation.messages[..conversation.messages.len() / 2]);
        count += 1;
    }
    assert!(count > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_conversation_makes_a_legal_body(
        messages in generate::conversation(generate::Shape { odd: true, ..Default::default() })
    ) {
        assert_legal(&messages);
    }

    #[test]
    fn every_list_of_messages_makes_a_legal_body(
        messages in proptest::collection::vec(generate::message(), 0..12)
    ) {
        assert_legal(&messages);
    }

    /// What a longer conversation adds comes after what was there, so that a cache can be used.
    #[test]
    fn a_longer_conversation_keeps_the_ids_of_the_shorter(
        messages in generate::conversation(generate::Shape { odd: true, ..Default::default() }),
        at: prop::sample::Index,
    ) {
        let ids = |messages: &[Message]| -> Vec<String> {
            let body = body(messages);
            body["messages"].as_array().unwrap().iter()
                .flat_map(|turn| turn["content"].as_array().unwrap())
                .filter_map(|block| block["id"].as_str().map(str::to_owned))
                .collect()
        };
        let part = ids(&messages[..at.index(messages.len() + 1)]);
        prop_assert_eq!(&ids(&messages)[..part.len()], &part[..]);
    }
}
