//! A log that has grown gives the messages that it gave before, and more.

use crate::converted::{json, source};
use foldback_transcript::{Conversation, read_bytes};
use std::path::Path;

/// The first conversation of the first `count` lines; `None` if they hold none.
fn read(text: &str, count: usize) -> Option<Conversation> {
    let begin: Vec<_> = text.lines().take(count).collect();
    read_bytes(begin.join("\n").as_bytes()).unwrap().next().unwrap().ok()
}

/// Each message that exists at any time is a message of the whole, except for that of a response
/// that is marked as unfinished, and those after it.
#[track_caller]
fn check(text: &str) -> usize {
    let count = text.lines().count();
    let whole = read(text, count).unwrap();
    let mut unfinished = 0;
    for count in 1..count {
        let Some(part) = read(text, count) else { continue };
        let open = source(&part).get("unfinished_response").cloned();
        unfinished += usize::from(open.is_some());
        for at in 0..part.messages.len() {
            if open.is_some() && Some(&json(&part, at)["source"]["line"]) == open.as_ref() {
                break;
            }
            assert_eq!(part.messages[at], whole.messages[at], "message {at} of {count} lines");
        }
    }
    unfinished
}

#[test]
fn messages_stay_as_they_are_while_a_log_grows() {
    for (name, is_open_at_times) in [
        ("claude-code/session.jsonl", true),
        ("claude-code/side-chains.jsonl", true),
        ("claude-code/compaction.jsonl", false),
        ("codex/session.jsonl", true),
        ("codex/events.jsonl", true),
        ("codex/bare.jsonl", true),
        ("langchain/dumps.jsonl", false),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        // Halves of surrogate pairs, which the reader of the tests does not take.
        let text = std::fs::read_to_string(path).unwrap().replace(r"\ud83d", "?");
        assert_eq!(check(&text) > 0, is_open_at_times, "{name}");
    }
}

/// A call whose result is still missing, and a response that ends, change nothing by themselves.
#[test]
fn an_open_call_is_the_same_call_when_it_is_answered() {
    let call = r#"{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":"c","name":"t","input":{}}],"stop_reason":"tool_use"}}"#;
    let user = |uuid: &str, parent: &str, content: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","message":{{"role":"user","content":{content}}}}}"#
        )
    };
    let result = r#"[{"type":"tool_result","tool_use_id":"c","content":"好"}]"#;
    let first = call
        .replace("\"uuid\":\"a\"", "\"uuid\":\"t\"")
        .replace("\"tool_use\"}}", "null}}")
        .replace(
            r#"{"type":"tool_use","id":"c","name":"t","input":{}}"#,
            r#"{"type":"text","text":"看"}"#,
        );
    let call = call.to_owned();
    let behind = call.replace("\"parentUuid\":\"u\"", "\"parentUuid\":\"t\"");
    let hi = user("u", "null", "\"hi\"");
    let result = user("r", "\"a\"", result);
    let text = [&*hi, &first, &behind, &result].join("\n");
    assert_eq!(check(&text), 1, "the log says on the last line how the response ended");
    let text = [&*hi, &call, &result].join("\n");
    assert_eq!(check(&text), 1, "where the first line says it, another call may follow");
}
