//! A todo whose saved state is damaged accepts messages again once the state is rebuilt from the
//! records.

use crate::story::{exchange, open, open_showing, options, todo, views};
use foldback::core::{ItemState, TodoItem, TodoList};
use foldback::{Close, Engine, Memory, Mode, Session};
use foldback_core::{Budget, Message};
use foldback_kv::{Batch, Key, Registry, Space};
use std::path::Path;

fn state_key(dir: &Path) -> (std::sync::Arc<dyn foldback_kv::Kv>, Key) {
    let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadWrite).unwrap();
    let no = Registry::new(kv.clone()).find(&todo("long")).unwrap().unwrap().no();
    (kv, Key { space: Space::Session, todo: no, n: 0 })
}

/// Flips a bit of the saved state in the store's file.
fn flip(dir: &Path) {
    let (kv, key) = state_key(dir);
    let value = kv.get(key).unwrap().unwrap();
    drop(kv);
    let file = dir.join("store.sqlite");
    let mut bytes = std::fs::read(&file).unwrap();
    let part = &value[..value.len().min(64)];
    let at = bytes.windows(part.len()).position(|window| window == part).unwrap();
    bytes[at + 10] ^= 4;
    std::fs::write(&file, bytes).unwrap();
}

/// Replaces the saved state by something with a valid checksum.
fn replace(dir: &Path, value: &[u8]) {
    let (kv, key) = state_key(dir);
    kv.commit(Batch { put: vec![(key, value.to_vec())], ..Batch::default() }).unwrap();
}

fn sent(session: &Session) -> Vec<String> {
    let prompt = session.prompt(&Budget::default());
    prompt.messages.iter().map(|message| message.api_json()).collect()
}

fn session(memory: &Memory) -> Session {
    memory.session(&todo("long")).unwrap()
}

fn history(session: &mut Session, subjects: &[&str]) {
    for (n, subject) in subjects.iter().enumerate() {
        let lines = [1, 300, 1][n % 3];
        let result = format!("{subject} 的第 {n} 行\n").repeat(lines);
        session.record_all(exchange(n, subject, &result).to_vec()).unwrap();
    }
}

const SUBJECTS: [&str; 9] =
    ["network", "network", "登录", "登录", "登录", "config", "config", "缓存", "缓存"];

/// A damaged state stops its todo until `doctor --repair` rebuilds it: the same blocks, the same
/// prompt, and it continues.
#[test]
fn a_damaged_state_is_made_again() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("a flipped bit", flip),
        ("another value", |dir| replace(dir, b"nonsense")),
        ("no bytes", |dir| replace(dir, b"")),
    ];
    for (what, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let memory = open(dir.path());
        let mut before = session(&memory);
        history(&mut before, &SUBJECTS);
        let list = TodoList::new(vec![TodoItem::new(todo("sub"), "子任务")]).unwrap();
        before.set_todo_list(&list).unwrap();
        before.set_item_state(&todo("sub"), ItemState::InProgress).unwrap();
        let (prompt, blocks, open_messages) = (sent(&before), before.blocks(), before.open());
        let messages = memory.conversations().export(&todo("long")).unwrap().messages;
        assert!(blocks >= 4 && open_messages > 0);
        drop((before, memory));
        damage(dir.path());

        let memory = open(dir.path());
        assert!(memory.session(&todo("long")).is_err(), "{what}");
        assert!(!memory.maintenance().doctor().unwrap().is_clean(), "{what}");
        assert!(memory.session(&todo("long")).is_err(), "looking repairs nothing");
        let findings = memory.maintenance().repair().unwrap().findings;
        let said = "long: the saved state was rebuilt from the messages";
        assert!(findings.iter().any(|found| found.starts_with(said)), "{what}: {findings:?}");
        assert_eq!(memory.maintenance().repair().unwrap().findings, Vec::<String>::new(), "{what}");

        let mut after = session(&memory);
        assert_eq!((after.blocks(), after.open()), (blocks, open_messages), "{what}");
        assert_eq!(sent(&after), prompt, "{what}");
        assert_eq!(after.todo_list().open(), 1);
        after.record(Message::user("还在吗？")).unwrap();
        let exported = memory.conversations().export(&todo("long")).unwrap().messages;
        assert_eq!(exported[..messages.len()], messages);
        assert_eq!(exported.len(), messages.len() + 1);
    }
}

/// BL9: after a rebuild it is still known that a task is being wrapped up: the next blocks are as fine
/// as they would have been.
#[test]
fn bl9_the_closing_phase_is_made_again() {
    // Blocks that may be large are finer at the end.
    let mut large = options();
    large.chunker = large.chunker.with_sizes(3, 8).unwrap();
    let cut = |state: ItemState, is_damaged: bool| {
        let dir = tempfile::tempdir().unwrap();
        let open = |dir: &Path| Memory::open(dir, large.clone()).unwrap();
        let memory = open(dir.path());
        let mut before = session(&memory);
        history(&mut before, &SUBJECTS[..4]);
        let list = TodoList::new(vec![TodoItem::new(todo("sub"), "子任务")]).unwrap();
        before.set_todo_list(&list).unwrap();
        before.set_item_state(&todo("sub"), state).unwrap();
        drop((before, memory));
        if is_damaged {
            flip(dir.path());
            open(dir.path()).maintenance().repair().unwrap();
        }
        let memory = open(dir.path());
        let mut after = session(&memory);
        history(&mut after, &["network"; 12]);
        after.close(Close::End).unwrap();
        let blocks = memory.blocks(&todo("long"), 0, 99).unwrap();
        blocks.iter().map(|block| block.range.len()).collect::<Vec<_>>()
    };
    let closing = cut(ItemState::Completed, false);
    assert_eq!(cut(ItemState::Completed, true), closing);
    assert_ne!(
        cut(ItemState::InProgress, false),
        closing,
        "it is cut otherwise while there is work"
    );
}

/// A damaged todo list stops nothing: its text stays in view, and the next list replaces it.
#[test]
fn td4_a_damaged_list_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let mut before = session(&memory);
    history(&mut before, &SUBJECTS[..3]);
    let list = TodoList::new(vec![TodoItem::new(todo("sub"), "子任务")]).unwrap();
    before.set_todo_list(&list).unwrap();
    let prompt = sent(&before);
    drop((before, memory));
    let (kv, key) = state_key(dir.path());
    for n in 0..2 {
        let put = vec![(Key { space: Space::Plan, n, ..key }, b"nonsense".to_vec())];
        kv.commit(Batch { put, ..Batch::default() }).unwrap();
    }
    drop(kv);

    let memory = open(dir.path());
    let mut after = session(&memory);
    assert_eq!(sent(&after), prompt);
    assert!(after.todo_list().items().is_empty());
    assert!(memory.todo_list(after.todo()).is_err(), "it is not passed over in silence");
    assert_eq!(after.parent().unwrap(), None);
    after.record(Message::user("继续")).unwrap();
    after.set_todo_list(&list).unwrap();
    assert_eq!(memory.todo_list(after.todo()).unwrap(), list);
}

/// Blocks that closed by an explicit signal (the end, another todo) stay unchanged, whatever the
/// messages alone would have closed.
#[test]
fn blocks_stay_where_a_word_closed_them() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let mut before = session(&memory);
    history(&mut before, &SUBJECTS[..2]);
    before.record(Message::user("第一部分到此为止。")).unwrap();
    before.close(Close::Switch).unwrap();
    history(&mut before, &SUBJECTS[2..5]);
    before.close(Close::End).unwrap();
    before.record(Message::user("还有一件事。")).unwrap();
    before.record(Message::assistant("请说。")).unwrap();
    let blocks = memory.blocks(&todo("long"), 0, 99).unwrap();
    drop((before, memory));
    flip(dir.path());

    let memory = open(dir.path());
    memory.maintenance().repair().unwrap();
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    assert_eq!(memory.blocks(&todo("long"), 0, 99).unwrap(), blocks);
    let mut after = session(&memory);
    assert_eq!(after.open(), 2);
    history(&mut after, &SUBJECTS[5..]);
    after.close(Close::End).unwrap();
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// LV4: a rebuilt state gives the same prompt as the lost one, under either fold policy.
#[test]
fn lv4_a_state_is_made_again_under_either_fold_policy() {
    for view in views() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open_showing(&view, Engine::Sqlite, dir.path());
        let mut before = session(&memory);
        history(&mut before, &SUBJECTS.repeat(3));
        let prompt = sent(&before);
        drop((before, memory));
        replace(dir.path(), b"nonsense");
        let memory = open_showing(&view, Engine::Sqlite, dir.path());
        memory.maintenance().repair().unwrap();
        assert_eq!(sent(&session(&memory)), prompt);
    }
}
