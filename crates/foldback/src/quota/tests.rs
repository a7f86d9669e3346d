//! What is refused, and what stays.

use crate::core::{Message, TodoId, ToolCall, ToolCallId};
use crate::{Close, Error, ErrorKind, Memory, Options, Quota, SearchRequest};
use foldback_kv::{Batch, Delete, Key, Space};
use std::path::Path;

fn todo(name: &str) -> TodoId {
    TodoId::new(name).unwrap()
}

fn memory(quota: Quota) -> Memory {
    Memory::in_memory(Options::default().with_quota(quota)).unwrap()
}

/// A limit, its todo and its setting are named.
#[track_caller]
fn check_refused<T>(result: Result<T, Error>, most: &str, setting: &str) {
    let error = result.err().expect("a bound");
    assert_eq!(error.kind(), ErrorKind::Quota);
    let text = error.to_string();
    assert!(text.contains(most) && text.contains(setting) && text.contains("todo a"), "{text}");
}

#[test]
fn s10_messages_of_a_todo_are_bounded() {
    let memory = memory(Quota::default().with_messages(3));
    let mut session = memory.session(&todo("a")).unwrap();
    session.record_all(vec![Message::user("1"), Message::user("2")]).unwrap();
    // All of a batch, or none.
    let two = || vec![Message::user("3"), Message::user("4")];
    check_refused(session.record_all(two()), "3 messages", "memory.max_messages");
    session.record(Message::user("3")).unwrap();
    check_refused(session.record(Message::user("4")), "3 messages", "memory.max_messages");
    let texts: Vec<_> = memory.messages(&todo("a"), 0..3).unwrap();
    assert_eq!(texts.iter().map(Message::text).collect::<String>(), "123");
    assert!(memory.maintenance().doctor().unwrap().is_clean());
    // What is there can be closed, read and searched; and another todo has a bound of its own.
    session.close(Close::End).unwrap();
    assert!(memory.recall(&todo("a"), "load", r#"{"ref": "b_a_001"}"#).unwrap().text.contains('3'));
    memory.session(&todo("b")).unwrap().record(Message::user("1")).unwrap();
}

#[test]
fn s10_blocks_of_a_todo_are_bounded() {
    let memory = memory(Quota::default().with_blocks(2));
    let mut session = memory.session(&todo("a")).unwrap();
    for _ in 0..2 {
        session.record(Message::user("x")).unwrap();
        session.close(Close::End).unwrap();
    }
    session.record(Message::user("x")).unwrap();
    check_refused(session.close(Close::End), "2 blocks", "memory.max_blocks");
    assert_eq!((session.blocks(), session.len()), (2, 3));
}

#[test]
fn s10_bytes_of_a_todo_are_bounded_also_over_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let open = |most: Option<u64>| {
        let options = Options::default().with_quota(Quota::default().with_bytes(most));
        Memory::open(dir.path(), options).unwrap()
    };
    let said = Message::user(&"中".repeat(100));
    let size = said.json().len() as u64;
    // Recorded without a bound, and counted once there is one.
    open(None).session(&todo("a")).unwrap().record(said.clone()).unwrap();
    let most = Some(3 * size);
    open(most).session(&todo("a")).unwrap().record(said.clone()).unwrap();
    open(None).session(&todo("a")).unwrap().record(said).unwrap();
    let memory = open(most);
    let mut session = memory.session(&todo("a")).unwrap();
    check_refused(session.record(Message::user("x")), "bytes", "memory.max_bytes");
    assert_eq!(session.len(), 3);
    // Large results count whole.
    let mut session = memory.session(&todo("b")).unwrap();
    session.record(Message::calls("", vec![ToolCall::new("c", "read", "{}")])).unwrap();
    let large = Message::tool_result(&ToolCallId::new("c"), &"line of a log\n".repeat(1_000));
    assert_eq!(session.record(large).unwrap_err().kind(), ErrorKind::Quota);
}

#[test]
fn s10_one_payload_is_bounded() {
    let memory = memory(Quota::default().with_payload_bytes(10_000));
    let mut session = memory.session(&todo("a")).unwrap();
    session.record(Message::calls("", vec![ToolCall::new("c", "read", "{}")])).unwrap();
    let result =
        |lines: usize| Message::tool_result(&ToolCallId::new("c"), &"a line, 10\n".repeat(lines));
    check_refused(session.record(result(1_000)), "10000 bytes", "memory.max_payload_bytes");
    session.record(result(900)).unwrap();
    assert_eq!(session.len(), 2);
}

/// An import ends at the limit, and what came before stays.
#[test]
fn s10_an_import_keeps_what_it_had() {
    let memory = memory(Quota::default().with_messages(300));
    let messages: Vec<_> =
        (0..600).map(|n| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}")).collect();
    let line = format!("{{\"messages\":[{}]}}", messages.join(","));
    let came = foldback_transcript::read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
    check_refused(memory.conversations().import(&todo("a"), &came), "300", "memory.max_messages");
    assert_eq!(memory.len(&todo("a")).unwrap(), 256);
}

/// The key of a record beside the messages of the store's first todo.
fn beside(n: u64) -> Key {
    Key { space: Space::Plan, todo: 1, n }
}

/// Flips a bit of a record in the database.
fn flip(store: &Path, record: &[u8]) {
    let file = store.join("store.sqlite");
    let mut bytes = std::fs::read(&file).unwrap();
    let places = bytes.windows(record.len()).enumerate().filter(|(_, window)| *window == record);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert_eq!(places.len(), 1, "the record is there once");
    bytes[places[0]] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// A damaged count is rebuilt; if a message is damaged, too, nothing is recorded before a repair.
#[test]
fn s10_a_damaged_count_keeps_no_todo_closed() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let options = Options::default().with_quota(Quota::default().with_bytes(7_500));
        Memory::open(dir.path(), options).unwrap()
    };
    let said = |n: u32| Message::user(&format!("the ferry {n} leaves at {}", "六点半".repeat(60)));
    let record = |memory: &Memory, n| memory.session(&todo("a"))?.record(said(n));
    let is_found = |memory: &Memory| {
        let hits = memory.search(&todo("a"), &SearchRequest::new("ferry")).unwrap().hits;
        !hits.is_empty()
    };
    let findings = |memory: &Memory| memory.maintenance().doctor().unwrap().findings;
    let counted = {
        let memory = open();
        for n in 0..3 {
            record(&memory, n).unwrap();
            memory.session(&todo("a")).unwrap().close(Close::End).unwrap();
        }
        (3..8).for_each(|n| drop(record(&memory, n).unwrap()));
        memory.shared.kv.get(beside(4)).unwrap().unwrap()
    };
    flip(dir.path(), &counted);
    let memory = open();
    assert!(is_found(&memory));
    assert!(
        matches!(&findings(&memory)[..], [one] if one.starts_with("a: ") && one.contains("count"))
    );
    // It is counted again: twelve are within the bound, and a thirteenth is not.
    (8..12).for_each(|n| drop(record(&memory, n).unwrap()));
    check_refused(record(&memory, 12), "7500 bytes", "memory.max_bytes");
    assert!(memory.maintenance().doctor().unwrap().is_clean());

    // With a damaged message, one that is out of view, nothing can be counted.
    let kv = &memory.shared.kv;
    let message = Key { space: Space::Message, todo: 1, n: 1 };
    let delete = vec![Delete::one(message)];
    let put = vec![(beside(4), vec![0xc1])];
    kv.commit(Batch { delete, put, ..Batch::default() }).unwrap();
    assert_eq!(memory.messages(&todo("a"), 2..9).unwrap().len(), 7);
    assert!(is_found(&memory));
    let mut session = memory.session(&todo("a")).unwrap();
    assert_eq!(session.record(said(12)).unwrap_err().kind(), ErrorKind::Corrupt);
    memory.maintenance().repair().unwrap();
    // The message that is gone counts for nothing, so there is room for one again.
    session.record(said(12)).unwrap();
    check_refused(session.record(said(13)), "7500 bytes", "memory.max_bytes");
    assert!(!findings(&memory).iter().any(|one| one.contains("count")));
}
