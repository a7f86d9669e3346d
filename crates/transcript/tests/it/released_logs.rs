//! Session logs of the shapes in which released agents write them: Claude Code 2.1.330, Codex 0.169.0.

use crate::converted::{fixture, json, roles, source};
use foldback_transcript::{Conversation, read_bytes};
use serde_json::json as value;
use std::path::Path;

fn texts(conversation: &Conversation) -> Vec<String> {
    conversation.messages.iter().map(|message| message.text().into_owned()).collect()
}

/// RC6: the answer to a first call may come between the calls of a response; what comes before and after a compaction
/// is one conversation, in which the summary is not a message.
#[test]
fn rc6_a_session_of_claude_code_is_read() {
    let [session] = fixture("claude-code/released.jsonl").try_into().unwrap();
    let expected = ["user", "assistant", "tool", "tool", "assistant"];
    let behind = ["user", "user", "user", "user", "assistant"];
    assert_eq!(roles(&session), [expected, behind].concat());
    let calls: Vec<_> =
        session.messages[1].tool_calls().iter().map(|call| call.id.to_string()).collect();
    assert_eq!(calls, ["toolu_1", "toolu_2"]);
    assert_eq!(json(&session, 1)["thinking_blocks"][0]["thinking"], "看看端口。");
    assert_eq!(
        texts(&session)[2..5],
        ["1\tThe port is 7001.\n", "1\tNothing else.\n", "端口是 7001。"]
    );
    let injected = |at: usize| json(&session, at)["source"]["injected"] == true;
    assert_eq!((0..10).filter(|at| injected(*at)).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(texts(&session)[8..], ["再说一次？", "7001。"]);
    let source = source(&session);
    for odd in ["unread_lines", "repeated_lines", "partial", "unfinished_response"] {
        assert_eq!(source.get(odd), None, "{source}");
    }
    let counts = &source["counts"];
    assert_eq!(counts["user/compact_summary"], 1, "{counts}");
    assert_eq!(counts["attachment/prompt_snapshot"], 2, "{counts}");
}

/// RC6: a tool that takes a program answers in parts; a sealed compaction replaces nothing that was said.
#[test]
fn rc6_a_session_of_codex_is_read() {
    let [session] = fixture("codex/released.jsonl").try_into().unwrap();
    let first = ["developer", "user", "user", "assistant", "tool", "assistant"];
    assert_eq!(roles(&session), [&first[..], &["user", "assistant"]].concat());
    let call = &session.messages[3].tool_calls()[0];
    assert_eq!((call.id.as_str(), call.name.as_str()), ("call_1", "exec"));
    assert!(call.arguments.contains("cat a.txt"), "{}", call.arguments);
    assert!(texts(&session)[4].contains("The port is 7001."));
    assert_eq!(texts(&session)[5..], ["端口是 7001。", "再说一次？", "7001。"]);
    assert_eq!(json(&session, 1)["source"]["injected"], true);
    let tokens = |at: usize| json(&session, at)["source"]["response"].clone();
    assert_eq!(
        [tokens(3), tokens(5), tokens(7)],
        [value!("resp_1"), value!("resp_2"), value!("resp_4")]
    );
    let source = source(&session);
    assert_eq!(source["counts"]["compacted"], 1, "{source}");
    assert_eq!(source.get("partial"), None, "{source}");
}

/// RC6: wherever such a log ends while it is written, its settled messages stay as they are.
#[test]
fn rc6_what_is_settled_of_a_growing_log_stays() {
    for name in ["claude-code/released.jsonl", "codex/released.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let whole = fixture(name).remove(0).messages;
        let mut most = 0;
        for (end, _) in text.match_indices('\n') {
            let read = read_bytes(&text.as_bytes()[..=end]).unwrap().next();
            let Some(Ok(read)) = read else { continue };
            let settled = &read.messages[..read.settled()];
            let expected = whole.get(..settled.len());
            assert_eq!(expected, Some(settled), "{name}, {} lines", text[..=end].lines().count());
            most = settled.len();
        }
        assert_eq!(most, whole.len(), "{name}");
    }
}
