//! Sessions of OpenCode, as `opencode export` writes them.

use crate::converted::source;
use foldback_core::Role;
use foldback_transcript::{Conversation, Format, read_bytes};

const EXPORT: &str = r#"{
  "info": {"id": "ses_1", "directory": "/work", "title": "第一", "parentID": "ses_0", "revert": null},
  "messages": [
    {"info": {"id": "msg_1", "role": "user", "time": {"created": 1764000000000}, "agent": "build"},
     "parts": [{"id": "p1", "type": "text", "text": "Which port?\n哪个"}]},
    {"info": {"id": "msg_2", "role": "assistant", "time": {"created": 1764000001000, "completed": 1764000002000}, "modelID": "m", "cost": 0.5},
     "parts": [
       {"id": "p2", "type": "step-start"},
       {"id": "p3", "type": "reasoning", "text": "I should look."},
       {"id": "p4", "type": "text", "text": "I look."},
       {"id": "p5", "type": "tool", "callID": "c1", "tool": "read", "state": {"status": "completed", "input": {"filePath": "a.txt"}, "output": "7001", "title": "a.txt", "time": {"compacted": 9}}},
       {"id": "p6", "type": "tool", "callID": "c2", "tool": "read", "state": {"status": "error", "input": {}, "error": "no such file"}},
       {"id": "p7", "type": "step-finish", "reason": "tool-calls", "tokens": {"input": 5, "output": 7, "reasoning": 1, "cache": {"read": 100, "write": 20}}},
       {"id": "p8", "type": "step-start"},
       {"id": "p9", "type": "text", "text": "It is 7001."},
       {"id": "pa", "type": "patch", "hash": "x", "files": []}]},
    {"info": {"id": "msg_3", "role": "user"}, "parts": [{"id": "pb", "type": "compaction", "auto": true}]},
    {"info": {"id": "msg_4", "role": "user"}, "parts": [
       {"id": "pc", "type": "text", "text": "Called the Read tool", "synthetic": true}]},
    {"info": {"id": "msg_5", "role": "assistant", "time": {"created": 1764000003000}}, "parts": [
       {"id": "pd", "type": "tool", "callID": "c3", "tool": "bash", "state": {"status": "running", "input": {"command": "ls"}}}]}
  ]
}"#;

fn read(text: &str) -> Conversation {
    read_bytes(text.as_bytes()).unwrap().next().unwrap().unwrap()
}

#[test]
fn a_session_becomes_messages_with_calls_and_results() {
    let session = read(EXPORT);
    assert_eq!(session.envelope.format(), Format::OpenCodeSession);
    assert_eq!(session.id.as_deref(), Some("ses_1"));
    let said: Vec<_> =
        session.messages.iter().map(|m| (m.role().clone(), m.text().into_owned())).collect();
    let expected = [
        (Role::User, "Which port?\n哪个"),
        (Role::Assistant, "I look."),
        (Role::Tool, "7001"),
        (Role::Tool, "no such file"),
        (Role::Assistant, "It is 7001."),
        (Role::User, "Called the Read tool"),
        (Role::Assistant, ""),
    ];
    assert_eq!(said, expected.map(|(role, text)| (role, text.to_owned())));
    let calls: Vec<_> = session.messages[1].tool_calls().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(calls, ["read", "read"]);
    assert_eq!(session.messages[2].tool_call_id().unwrap().as_str(), "c1");
    let json = session.messages[1].json();
    assert!(json.contains("\"prompt_tokens\":125,\"completion_tokens\":8"), "{json}");
    assert_eq!(session.messages[0].timestamp().unwrap().0, 1_764_000_000_000);
    assert!(session.messages[5].json().contains("\"injected\":true"));
    let facts = source(&session);
    assert_eq!((&facts["cwd"], &facts["parent_session"]), (&"/work".into(), &"ses_0".into()));
    // The last answer is not at its end, and its call has no result.
    assert_eq!(session.settled(), 6);
}

/// RC6: an answer becomes a message for each step and each result, and while it may still grow, all of them wait.
#[test]
fn rc6_an_answer_is_settled_as_a_whole() {
    let call = |id: &str, state: &str| {
        format!(
            r#"{{"type":"tool","callID":"{id}","tool":"read","state":{{"status":{state},"input":{{}}}}}}"#
        )
    };
    let (runs, done) = ("\"running\"", "\"completed\",\"output\":\"端口 7001\"");
    let said = r#"{"type":"text","text":"是 7001。"}"#;
    let stages = [
        call("c1", runs),
        [call("c1", done), call("c2", runs)].join(","),
        [call("c1", done), call("c2", done)].join(","),
        [&call("c1", done), &call("c2", done), r#"{"type":"step-start"}"#, said].join(","),
    ];
    let session = |parts: &str, time: &str, newline: &str| {
        let user = |id: &str| {
            format!(
                r#"{{"info":{{"id":"{id}","role":"user"}},"parts":[{{"type":"text","text":"哪个端口？"}}]}}"#
            )
        };
        let answer = format!(
            r#"{{"info":{{"id":"m3","role":"assistant","time":{{{time}}}}},"parts":[{parts}]}}"#
        );
        let messages = [user("m1"), user("m2"), answer].join(&format!(",{newline}"));
        read(&format!(r#"{{"info":{{"id":"s"}},"messages":[{newline}{messages}]}}"#))
    };
    for newline in ["\n", ""] {
        for parts in &stages {
            let open = session(parts, "\"created\":1", newline);
            assert!(open.messages.len() > 2);
            assert_eq!(open.settled(), 2, "{parts}");
        }
        let whole = session(&stages[3], "\"created\":1,\"completed\":2", newline);
        assert_eq!((whole.settled(), whole.messages.len()), (6, 6));
    }
}

/// What OpenCode later adds to a message does not change the messages.
#[test]
fn messages_stay_as_they_are_while_a_session_goes_on() {
    let session = read(EXPORT);
    let later = EXPORT
        .replace("\"agent\": \"build\"", "\"agent\": \"build\", \"summary\": {\"diffs\": []}")
        .replace("\"compacted\": 9", "\"compacted\": 12")
        .replace("\"cost\": 0.5", "\"cost\": 0.7");
    assert_eq!(read(&later).messages, session.messages);
    assert_ne!(read(&later).envelope, session.envelope);
}

#[test]
fn what_the_person_took_back_is_no_part_of_the_conversation() {
    let back = EXPORT.replace("\"revert\": null", "\"revert\": {\"messageID\": \"msg_3\"}");
    let session = read(&back);
    assert_eq!(session.messages, read(EXPORT).messages[..5]);
    assert!(
        session
            .envelope
            .get("source")
            .unwrap()
            .contains("\"counts\":{\"assistant\":1,\"reverted\":3")
    );
}

#[test]
fn a_session_without_messages_is_named() {
    let error = read_bytes(br#"{"info":{"id":"s"},"messages":[]}"#).unwrap().next().unwrap();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a session of OpenCode that holds no message"), "{error}");
}

/// R5: token counts whose sum overflows saturate.
#[test]
fn r5_counts_beyond_all_numbers_are_read() {
    let most = u64::MAX.to_string();
    let session = EXPORT.replace("\"input\": 5", &format!("\"input\": {most}")).replace(
        "\"output\": 7, \"reasoning\": 1",
        &format!("\"output\": {most}, \"reasoning\": 9"),
    );
    let json = read(&session).messages[1].json().to_owned();
    let said = format!("\"prompt_tokens\":{most},\"completion_tokens\":{most}");
    assert!(json.contains(&said), "{json}");
}

/// What becomes no message is kept whole in the records: the reasoning of a step that was stopped or
/// that said nothing, the words of an unknown role, a result before its call ended.
#[test]
fn what_becomes_no_message_stays_in_the_records() {
    let text = r#"{"info": {"id": "s"}, "messages": [
      {"info": {"id": "m1", "role": "user"}, "parts": [
        {"type": "text", "text": "哪个端口？"}, {"type": "reasoning", "text": "user-thought"}]},
      {"info": {"id": "m2", "role": "assistant"}, "parts": [
        {"type": "step-start"}, {"type": "reasoning", "text": "先想一想"},
        {"type": "step-start"}, {"type": "reasoning", "text": "spoken-thought"},
        {"type": "text", "text": "7001"},
        {"type": "tool", "callID": "c1", "tool": "sh", "state": {"status": "running", "input": {}, "output": "half a result"}},
        {"type": "step-start"}, {"type": "reasoning", "text": "stopped-thought"}]},
      {"info": {"id": "m3", "role": "critic"}, "parts": [{"type": "text", "text": "critical"}]}
    ]}"#;
    let session = read(text);
    let said: Vec<_> = session.messages.iter().map(|m| m.text().into_owned()).collect();
    assert_eq!(said, ["哪个端口？", "7001"]);
    let line = session.to_json_line();
    for kept in [
        "user-thought",
        "先想一想",
        "spoken-thought",
        "half a result",
        "stopped-thought",
        "critical",
    ] {
        assert_eq!(line.matches(kept).count(), 1, "{kept} in {line}");
    }
    // What a message holds is not kept a second time.
    assert_eq!((line.matches("哪个端口").count(), line.matches("7001").count()), (1, 1));
    crate::converted::comes_back(&session);
}
