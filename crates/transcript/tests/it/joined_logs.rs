//! Several session logs in one stream.

use crate::claude_code::{assistant, texts, user};
use crate::converted::{comes_back, errors, fixture, read, source};
use foldback_transcript::{Conversation, read_bytes};
use serde_json::{Value, json};
use std::path::Path;

fn text_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// What is known of conversations without the numbers of their lines.
fn said(conversations: &[Conversation]) -> Vec<(Option<String>, Vec<String>)> {
    conversations.iter().map(|one| (one.id.clone(), texts(one))).collect()
}

/// Logs that follow each other are read as they are one by one.
#[track_caller]
fn check(names: &[&str]) {
    let text: String = names.iter().map(|name| text_of(name)).collect();
    let read: Vec<_> = read_bytes(text.as_bytes()).unwrap().map(Result::unwrap).collect();
    read.iter().for_each(comes_back);
    let alone: Vec<_> = names.iter().flat_map(|name| said(&fixture(name))).collect();
    assert_eq!(said(&read), alone, "{names:?}");
}

#[test]
fn logs_of_codex_stay_apart() {
    let [session, released] = ["codex/session.jsonl", "codex/released.jsonl"];
    let [rollbacks, copied] = ["codex/rollbacks.jsonl", "codex/copied.jsonl"];
    check(&[session, released]);
    check(&[released, session]);
    check(&[rollbacks, copied, session]);
    check(&["codex/bare.jsonl", session, "codex/events.jsonl"]);
    let other = text_of("codex/bare.jsonl").replace("5973b6c0", "6084c7d1");
    let bare = text_of("codex/bare.jsonl") + &other;
    let ids = read_bytes(bare.as_bytes()).unwrap().map(|one| one.unwrap().id.unwrap());
    let expected =
        ["5973b6c0", "6084c7d1"].map(|begin| format!("{begin}-94b8-487b-a530-2aeb6098ae0e"));
    assert_eq!(ids.collect::<Vec<_>>(), expected);
    // A session that was opened and left has a statement alone.
    let left = text_of(session).split_inclusive('\n').next().unwrap().to_owned();
    let read: Vec<_> = read_bytes((left + &text_of(released)).as_bytes()).unwrap().collect();
    let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
    assert_eq!(said(&read), said(&fixture(released)));
    // One that says nothing leaves its lines to the next, or to the last.
    let empty = text_of("codex/empty.jsonl");
    for text in [empty.clone() + &text_of(session), text_of(session) + &empty] {
        let [one] =
            <[_; 1]>::try_from(read_bytes(text.as_bytes()).unwrap().collect::<Vec<_>>()).unwrap();
        let one = one.unwrap();
        assert_eq!(said(std::slice::from_ref(&one)), said(&fixture(session)));
        assert_eq!(source(&one)["counts"]["session_meta"], 2);
    }
}

/// A fork's log has the lines of its parent, whose own log may be before or after it.
#[test]
fn a_fork_of_codex_and_its_parent_stay_apart() {
    let copied = text_of("codex/copied.jsonl");
    let parent: String = copied.split_inclusive('\n').skip(1).take(5).collect();
    let expect_parent = (
        Some("01940000-0000-7000-8000-000000000009".to_owned()),
        vec!["parent's question".to_owned(), "parent's answer".to_owned()],
    );
    let [child] = <[_; 1]>::try_from(said(&fixture("codex/copied.jsonl"))).unwrap();
    for (text, expected) in [
        (parent.clone() + &copied, [&expect_parent, &child]),
        (copied.clone() + &parent, [&child, &expect_parent]),
    ] {
        let read: Vec<_> = read_bytes(text.as_bytes()).unwrap().map(Result::unwrap).collect();
        assert_eq!(said(&read).iter().collect::<Vec<_>>(), expected);
    }
}

/// Until its first own turn, a fork has said nothing itself.
#[test]
fn a_fork_of_codex_that_has_not_begun_holds_no_message() {
    let copied = text_of("codex/copied.jsonl");
    let begun: String = copied.split_inclusive('\n').take(6).collect();
    let [error] = errors(&begun).try_into().unwrap();
    for expected in ["holds no message", "\"copied response_item/message\" (2)"] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // A parent that is not named may be the thread itself.
    let unnamed = begun.replace("forked_from_id", "x").replace("parent_thread_id", "y");
    let read: Vec<_> = read_bytes(unnamed.as_bytes()).unwrap().map(Result::unwrap).collect();
    assert_eq!(texts(&read[0]), ["parent's question", "parent's answer"]);
}

#[test]
fn sessions_of_claude_code_stay_apart() {
    let [session, released] = ["claude-code/session.jsonl", "claude-code/released.jsonl"];
    let [branches, sides] = ["claude-code/branches.jsonl", "claude-code/side-chains.jsonl"];
    check(&[session, released]);
    check(&[released, session]);
    check(&[sides, branches, session, "claude-code/agent.jsonl"]);
}

fn of(session: &str, mut line: Value) -> Value {
    line["sessionId"] = json!(session);
    line
}

/// A resumed session may hold the lines of the older one, and what was left in it.
#[test]
fn a_resumed_session_of_claude_code_is_one() {
    let answer = |text: &str| json!([{"type": "text", "text": text}]);
    let old = [
        of("old", user("left", None, json!("问错了"))),
        of("old", user("u", None, json!("哪个端口？"))),
        of("old", assistant("a", Some("u"), "m1", answer("7001"))),
    ];
    let resumed = [
        of("new", user("v", Some("a"), json!("还有呢？"))),
        of("new", assistant("b", Some("v"), "m2", answer("没有"))),
    ];
    let expected =
        [("new", vec!["哪个端口？", "7001", "还有呢？", "没有"]), ("new-branch-1", vec!["问错了"])];
    let expected = expected.map(|(id, texts)| {
        (Some(id.to_owned()), texts.into_iter().map(str::to_owned).collect::<Vec<_>>())
    });
    let lines = [&old[..], &resumed].concat();
    assert_eq!(said(&read(&lines)), expected);
    // Its own line says which one it follows, although that is missing.
    let lines = [&old[..2], &resumed].concat();
    let damaged = read(&lines);
    assert_eq!(damaged[0].id.as_deref(), Some("new"));
    assert_eq!(texts(&damaged[0]), ["哪个端口？", "还有呢？", "没有"]);
    // Lines of another session in which nothing is said belong to this one.
    let mode = json!({"type": "mode", "sessionId": "other", "mode": "x"});
    let [one] = read(&[resumed[0].clone(), mode, resumed[1].clone()]).try_into().unwrap();
    assert_eq!(source(&one)["counts"]["mode"], 1);
}

/// A session that begins with words that cannot be read keeps its lines.
#[test]
fn every_line_of_a_session_is_somewhere() {
    let lines = [
        of("a", user("u", None, json!("问"))),
        of("b", user("v", None, json!([]))),
        of("c", user("w", None, json!("答"))),
    ];
    let read = read(&lines);
    let lines: Vec<_> = read.iter().map(|one| one.to_json_line()).collect();
    for uuid in ["\"u\"", "\"v\"", "\"w\""] {
        assert_eq!(lines.concat().matches(&format!("\"uuid\":{uuid}")).count(), 1, "{lines:?}");
    }
}
