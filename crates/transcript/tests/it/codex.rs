//! Session logs of Codex.

use crate::converted::{PARTIAL, all_there, errors, fixture, json, mark, read, roles, source};
use foldback_transcript::{Conversation, FindingKind, Format, read_bytes};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The thread of the `n`-th fixture.
fn thread_id(n: u64) -> String {
    format!("0195a000-0000-7000-8000-{n:012}")
}

fn texts(conversation: &Conversation) -> Vec<String> {
    conversation.messages.iter().map(|message| message.text().into_owned()).collect()
}

fn record(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-03-01T09:00:00.000Z", "type": kind, "payload": payload})
}

fn item(payload: Value) -> Value {
    record("response_item", payload)
}

fn event(payload: Value) -> Value {
    record("event_msg", payload)
}

fn said(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
}

#[test]
fn a_session_becomes_messages_and_records() {
    let [session] = fixture("codex/session.jsonl").try_into().unwrap();
    assert_eq!(session.id, Some(thread_id(1)));
    assert_eq!(session.envelope.format(), Format::CodexLog);
    assert_eq!(
        roles(&session),
        [
            "developer",
            "user",
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant"
        ]
    );
    let at = |at| json(&session, at);
    for injected in [0, 1] {
        assert_eq!(at(injected)["source"]["injected"], true);
    }
    assert_eq!(at(2)["content"], "修复测试");
    assert_eq!(at(2)["source"].get("injected"), None);

    let unit = at(3);
    assert_eq!(unit["content"], "我来看看。");
    assert_eq!(unit["reasoning_items"][0]["encrypted_content"], "gAAAA==");
    assert_eq!(unit["reasoning_items"][0]["id"], "rs_1");
    let call = |at: usize| unit["tool_calls"][at]["function"].clone();
    assert_eq!(call(0), json!({"name": "shell", "arguments": "{\"command\":[\"ls\"]}"}));
    assert_eq!(
        call(1),
        json!({"name": "apply_patch", "arguments": "*** Begin Patch\n*** End Patch"})
    );
    assert_eq!(unit["source"]["model"], "gpt-test");
    assert_eq!(unit["source"]["effort"], "high");
    let items = &unit["source"]["items"];
    assert_eq!(
        items[1],
        json!({
            "line": 10, "type": "message", "id": "msg_1", "phase": "commentary",
            "timestamp": "2026-03-01T09:00:10.000Z",
        })
    );
    assert_eq!(items[3]["type"], "custom_tool_call");

    assert_eq!(at(4)["tool_call_id"], "call_2");
    assert_eq!(at(4)["source"]["exit_code"], 0);
    assert!(at(4)["content"].as_str().unwrap().starts_with(r#"{"output":"Success""#));
    assert_eq!(at(5)["content"][0], json!({"type": "text", "text": "a.txt"}));
    let image = json!({"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"});
    assert_eq!(at(5)["content"][1], json!({"type": "image_url", "image_url": image}));

    let search = at(6);
    assert_eq!(search["tool_calls"][0]["id"], "ws_1");
    assert_eq!(search["tool_calls"][0]["function"]["name"], "web_search");
    let arguments = search["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(arguments, r#"{"type":"search","query":"cargo 测试"}"#);
    assert_eq!(at(7)["tool_call_id"], "ws_1");
    assert_eq!(at(7)["source"]["builtin"], true);

    let shell = at(8);
    assert_eq!(shell["tool_calls"][0]["id"], "line-21");
    assert_eq!(shell["tool_calls"][0]["function"]["name"], "local_shell");
    assert_eq!((&at(9)["tool_call_id"], &at(9)["content"]), (&json!("line-21"), &json!("failed")));
    assert_eq!(at(9)["is_error"], true);
    assert_eq!(at(9)["source"]["output"]["success"], false);
    assert_eq!(at(10)["tool_calls"][0]["function"]["arguments"], "a cat");
    assert_eq!(at(11)["content"][0]["image_url"]["url"], "data:image/png;base64,aGk=");
    assert_eq!(at(12)["tool_calls"][0]["function"]["arguments"], r#"{"query":"git"}"#);
    assert_eq!(at(13)["content"], r#"[{"name":"git_log"}]"#);
    assert_eq!(session.messages[14].text(), "完成 \u{fffd}");
    assert!(session.messages[14].json().contains(r"\ud83d"));
    assert_eq!(at(15)["source"].get("injected"), None, "one of its parts was typed");
    let open = at(16);
    assert_eq!(open["tool_calls"][0]["function"]["arguments"], "{not json");
    let unanswered = FindingKind::UnansweredCall { id: "call_9".to_owned() };
    assert!(session.check().iter().any(|odd| (odd.at, &odd.kind) == (Some(16), &unanswered)));
    assert_eq!(open["source"]["items"][0]["namespace"], "tools");

    let kept = source(&session);
    assert_eq!(kept["format"], "codex_log");
    assert_eq!(kept["cwd"], "/home/ada/app");
    assert_eq!(kept["git"], json!({"branch": "main"}));
    assert_eq!(kept.get("partial"), None);
    let counts = &kept["counts"];
    assert_eq!(counts["event_msg/token_count"], 4);
    assert_eq!(counts["response_item/ghost_snapshot"], 1);
    assert_eq!(counts["response_item/brand_new_item"], 1);
    assert_eq!(counts["compacted"], 1);
    assert_eq!(counts["world_state"], 1);
    assert_eq!(counts["event_msg/user_message"], 1, "it repeats an item");
}

#[test]
fn usage_is_counted_once_a_response() {
    let tokens = |conversation: &Conversation| -> Vec<_> {
        let messages = (0..conversation.messages.len()).filter(|at| *at != 14);
        let sources = messages.map(|at| json(conversation, at)["source"].clone());
        let tokens = sources.filter_map(|source| {
            Some((source.get("prompt_tokens")?.as_u64()?, source["completion_tokens"].as_u64()?))
        });
        tokens.collect()
    };
    let [session] = fixture("codex/session.jsonl").try_into().unwrap();
    assert_eq!(tokens(&session), [(90, 10)], "a total that does not change is no response");
    assert!(session.messages[14].json().contains(r#""prompt_tokens":140"#));
    let [events] = fixture("codex/events.jsonl").try_into().unwrap();
    assert_eq!(tokens(&events), [(50, 5)]);
    assert_eq!(json(&events, 1)["source"]["response"], "resp_1");
    let [copied] = fixture("codex/copied.jsonl").try_into().unwrap();
    assert_eq!(tokens(&copied), [(10, 10)], "the parent's responses are the parent's");
}

#[test]
fn rollbacks_leave_branches() {
    let [active, first, second] = fixture("codex/rollbacks.jsonl").try_into().unwrap();
    assert_eq!(texts(&active), ["<environment_context>e</environment_context>", "again", "再来"]);
    assert_eq!(texts(&first), ["mode changed", "two", "二", "three", "三"]);
    assert_eq!(first.id, Some(thread_id(2) + "-branch-1"));
    assert_eq!(source(&first)["fork_point"], json!({"line": 5}));
    assert_eq!(texts(&second), ["one", "一", "other", "别的"], "more turns than there are: all");
    assert_eq!(source(&second)["fork_point"], json!({"line": 3}));
    assert_eq!(source(&active)["counts"]["event_msg/thread_rolled_back"], 2);
}

#[test]
fn only_a_copied_prefix_is_left_to_its_own_thread() {
    let [child] = fixture("codex/copied.jsonl").try_into().unwrap();
    assert_eq!(child.id, Some(thread_id(3)));
    assert_eq!(texts(&child), ["child's question 子", "child's answer"]);
    let kept = source(&child);
    assert_eq!(kept["partial"], true);
    assert!(child.check().contains(&PARTIAL), "{:?}", child.check());
    assert_eq!(kept["copied_from"], "01940000-0000-7000-8000-000000000009");
    assert_eq!(kept["forked_from_id"], kept["copied_from"]);
    assert_eq!(kept["counts"]["copied response_item/message"], 2);

    // If no turn is certainly the thread's own, everything is taken.
    let meta = |id: &str| record("session_meta", json!({"id": id}));
    let [all] = read(&[meta("a"), meta("b"), said("user", "q"), said("assistant", "答")])
        .try_into()
        .unwrap();
    assert_eq!(texts(&all), ["q", "答"]);
    assert_eq!(source(&all)["copied_from"], "b");
}

#[test]
fn events_are_read_where_no_item_says_a_message() {
    let [paginated] = fixture("codex/events.jsonl").try_into().unwrap();
    assert_eq!(texts(&paginated), ["列出文件", "Done."]);
    let answer = json(&paginated, 1);
    assert_eq!(answer["reasoning_items"][0]["summary"][0]["text"], "想一想");
    assert_eq!(answer["source"]["items"][1]["event"]["turn_id"], "t1");
    assert_eq!(answer["source"]["items"][1]["record"]["ordinal"], 5);
    let kept = source(&paginated);
    assert_eq!(kept["partial"], true, "its beginning stands in another file");
    assert!(paginated.check().contains(&PARTIAL), "{:?}", paginated.check());
    assert_eq!(kept["history_base"]["end_ordinal_exclusive"], 12);
    assert_eq!(kept["counts"]["event_msg/item_completed"], 1, "a command is no message");

    let [legacy] = read(&[
        record("session_meta", json!({"id": "t"})),
        event(json!({"type": "user_message", "message": "问", "kind": "plain"})),
        event(json!({"type": "agent_reasoning", "text": "想"})),
        event(json!({"type": "agent_message", "message": "答"})),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&legacy), ["问", "答"]);
    assert_eq!(json(&legacy, 0)["source"]["items"][0]["kind"], "plain");
}

#[test]
fn the_generations_before_are_read() {
    let [bare] = fixture("codex/bare.jsonl").try_into().unwrap();
    assert_eq!(bare.id.as_deref(), Some("5973b6c0-94b8-487b-a530-2aeb6098ae0e"));
    assert_eq!(roles(&bare), ["user", "user", "assistant", "tool", "assistant"]);
    assert_eq!(json(&bare, 0)["source"]["injected"], true);
    assert_eq!(source(&bare)["counts"], json!({"session_meta": 1, "state": 2}));
    assert_eq!(bare.check(), []);

    let [first] = fixture("codex/first.json").try_into().unwrap();
    assert_eq!(first.id.as_deref(), Some("b5f1"));
    assert_eq!(roles(&first), ["user", "assistant", "tool", "assistant"]);
    let call = json(&first, 1);
    assert_eq!(call["tool_calls"][0]["id"], "call_x");
    assert_eq!(call["source"]["items"][0]["duration_ms"], 7);
    assert_eq!(json(&first, 2)["source"]["exit_code"], 2);
    assert_eq!(json(&first, 3)["source"]["line"], 41, "where the item begins");
    assert_eq!(source(&first)["records"][0]["record"]["instructions"], "Be brief.");
}

#[test]
fn a_rewritten_file_begins_with_what_replaced_its_beginning() {
    let [read] = fixture("codex/rewritten.jsonl").try_into().unwrap();
    assert_eq!(texts(&read), ["早先的问题", "早先的回答", "plain 文本", "go on", "好"]);
    assert_eq!(source(&read)["partial"], true);
    assert!(read.check().contains(&PARTIAL), "{:?}", read.check());
    assert_eq!(json(&read, 3)["source"]["items"][0]["author"], "/root");
    assert_eq!(json(&read, 4)["content"][0]["annotations"], json!([1]));
}

#[test]
fn parts_say_whether_they_were_typed() {
    let with_kinds = |text: &str, kind: &str| {
        let mut line = said("user", text);
        line["payload"]["internal_chat_message_metadata_passthrough"] =
            json!({"content_item_kinds": [kind]});
        line
    };
    let [read] = read(&[
        record("session_meta", json!({"id": "t"})),
        with_kinds("<skill> is a word that I typed", "user.text"),
        with_kinds("plain words of the client", "context.environment"),
        said("user", "  # AGENTS.md instructions for /w"),
        said("assistant", "ok"),
    ])
    .try_into()
    .unwrap();
    let injected: Vec<_> =
        (0..3).map(|at| json(&read, at)["source"].get("injected").is_some()).collect();
    assert_eq!(injected, [false, true, true]);
}

#[test]
fn a_log_without_messages_names_what_it_holds() {
    let [error] = errors(include_str!("../fixtures/codex/empty.jsonl")).try_into().unwrap();
    for expected in ["Codex", "no message", "\"session_meta\" (1)", "\"world_state\" (1)"] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    for foreign in [
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hi"}}"#,
        r#"{"session_id":"s","ts":1,"text":"hi"}"#,
    ] {
        let [error] = errors(foreign).try_into().unwrap();
        assert!(error.contains("not a session log") || error.contains("history"), "{error}");
    }
}

#[test]
fn odd_items_are_kept() {
    let call = json!({"type": "function_call", "call_id": 7, "arguments": null});
    let [read] = read(&[
        record("session_meta", json!({"id": 7})),
        json!(["no object"]),
        item(json!({"type": "message", "role": "user"})),
        item(json!({"role": "user"})),
        record("response_item", json!({"type": 7})),
        item(call),
        item(json!({"type": "function_call_output", "call_id": "c"})),
        item(json!({"type": "message", "role": "user", "content": [1, null, "文", {"type": "text", "text": 7}]})),
        event(json!({"type": "thread_rolled_back", "num_turns": -3})),
    ])
    .try_into()
    .unwrap();
    assert_eq!(roles(&read), ["assistant", "tool", "user"]);
    assert_eq!(json(&read, 2)["content"][0], json!({"type": "unknown", "value": 1}));
    assert_eq!(read.messages[2].text(), "文");
    assert_eq!(read.id, None);
    assert_eq!(lines_of(&[read]), (1..=9).collect::<Vec<_>>());
}

/// Members of an item for which its kind has no use.
#[test]
fn items_keep_what_they_say() {
    let [read] = read(&[
        record("session_meta", json!({"id": "t"})),
        said("user", "hi"),
        item(json!({"type": "tool_search_call", "call_id": "c", "arguments": {}, "name": "KEPT1"})),
        item(json!({"type": "image_generation_call", "id": "i", "result": {"x": "KEPT2"}})),
        item(json!({"type": "local_shell_call", "id": "s", "action": {}, "name": "KEPT3"})),
        item(json!({"type": "web_search_call", "action": {}, "name": "KEPT4"})),
        item(json!({"type": "function_call_output", "call_id": ["KEPT5"], "output": "r"})),
    ])
    .try_into()
    .unwrap();
    let export = read.to_json_line();
    for kept in ["KEPT1", "KEPT2", "KEPT3", "KEPT4", "KEPT5"] {
        assert_eq!(export.matches(kept).count(), 1, "{kept}: {export}");
    }
}

/// The lines that conversations account for, each once.
fn lines_of(conversations: &[Conversation]) -> Vec<u64> {
    let mut lines = BTreeSet::new();
    let number = |value: &Value| value["line"].as_u64().unwrap();
    for conversation in conversations {
        let kept = source(conversation);
        lines.extend(kept["records"].as_array().into_iter().flatten().map(number));
        for message in &conversation.messages {
            let fields = message.fields();
            let source = fields.iter().find(|(key, _)| key == "source").unwrap().1.get();
            let source: Value = serde_json::from_str(source).unwrap();
            lines.insert(number(&source));
            lines.extend(source["items"].as_array().into_iter().flatten().map(number));
        }
    }
    lines.into_iter().collect()
}

#[test]
fn every_line_of_a_fixture_is_somewhere() {
    for (name, lines) in [
        ("session", 36),
        ("rollbacks", 23),
        ("copied", 10),
        ("events", 9),
        ("bare", 8),
        ("rewritten", 5),
    ] {
        let read = fixture(&format!("codex/{name}.jsonl"));
        assert_eq!(lines_of(&read), (1..=lines).collect::<Vec<_>>(), "{name}");
    }
}

/// Records of every kind, in any order.
fn any_records() -> impl Strategy<Value = Vec<Value>> {
    let line = (0..18usize, 0..4u64, any::<bool>()).prop_map(|(kind, n, flag)| {
        let id = if flag { json!(format!("c{n}")) } else { Value::Null };
        match kind {
            0 => record("session_meta", json!({"id": format!("t{n}"), "timestamp": "2026-03-01T09:00:00.000Z"})),
            1 | 2 => said("user", if flag { "文" } else { "<environment_context>" }),
            3 => said("assistant", "答"),
            4 => said("developer", "d"),
            5 | 6 => item(json!({"type": "function_call", "name": "t", "arguments": "{}", "call_id": id})),
            7 | 8 => item(json!({"type": "function_call_output", "call_id": id, "output": "r"})),
            9 => item(json!({"type": "reasoning", "summary": [], "encrypted_content": "g"})),
            10 => item(json!({"type": "web_search_call", "action": {}})),
            11 => event(json!({"type": "task_started", "turn_id": "t"})),
            12 => event(json!({"type": "thread_rolled_back", "num_turns": n})),
            13 => event(json!({"type": "token_count", "info": {"total_token_usage": {"t": n}, "last_token_usage": {"input_tokens": n}}})),
            14 => record("turn_context", json!({"model": format!("m{n}")})),
            15 => record("compacted", json!({"message": "m", "replacement_history": [{"type": "message", "role": "user", "content": "s"}]})),
            16 => event(json!({"type": "agent_message", "message": "a"})),
            _ => json!({"timestamp": "t", "type": if flag { "message" } else { "news" }, "role": "user", "content": n}),
        }
    });
    prop::collection::vec(line, 0..40).prop_map(|mut lines| {
        lines.push(record("world_state", json!({})));
        lines.push(said("user", "end"));
        lines
    })
}

proptest! {
    /// Whatever the records and their order, each one is kept somewhere, and the same records give
    /// the same conversations.
    #[test]
    fn every_record_is_somewhere(mut lines in any_records()) {
        let mut marks = Vec::new();
        lines.iter_mut().for_each(|line| mark(line, &mut marks));
        let conversations = read(&lines);
        prop_assert_eq!(lines_of(&conversations), (1..=lines.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(&read(&lines), &conversations);
        prop_assert!(conversations.iter().all(|c| !c.messages.is_empty()));
        all_there(&marks, &conversations);
    }
}

/// Parallel calls in one response, and rollbacks again and again, cost no more than their lines.
#[test]
fn large_responses_and_many_rollbacks_are_read() {
    let count = 20_000;
    let mut lines = vec![record("session_meta", json!({"id": "t"})), said("user", "go")];
    for at in 0..count {
        lines.push(item(json!({"type": "function_call", "name": "t", "arguments": "{}", "call_id": format!("c{at}")})));
    }
    for at in (0..count).rev() {
        lines.push(item(
            json!({"type": "function_call_output", "call_id": format!("c{at}"), "output": "文"}),
        ));
    }
    for _ in 0..count {
        lines.push(said("user", "turn"));
        lines.push(event(json!({"type": "thread_rolled_back", "num_turns": 1})));
    }
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    let read: Vec<_> =
        read_bytes(text.join("\n").as_bytes()).unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), count + 1);
    assert_eq!(read[0].messages.len(), count + 2);
    assert_eq!(read[0].check(), []);
}
