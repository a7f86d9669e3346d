//! A store that was filled from another one holds the same, and is not used before it does.

use super::TodoCopy;
use crate::{
    Close, EncryptionKey, Engine, ErrorKind, Memory, NewSent, Options, Restored, SearchRequest,
};
use foldback_core::{
    Budget, ItemState, Message, Reference, TodoId, TodoItem, TodoList, ToolCall, ToolCallId,
};
use foldback_kv::{Key, Mode, Space};
use std::path::Path;

fn id(name: &str) -> TodoId {
    TodoId::new(name).unwrap()
}

fn restore(dir: &Path, options: Options, source: &Memory) -> Result<Restored, crate::Error> {
    Memory::restore(dir, options, source, |_, _| {})
}

/// A call and its result, which is large enough to be kept outside the conversation; in a file, from 64 KiB on.
fn reading(n: usize, bytes: usize) -> [Message; 2] {
    let call = format!("call_{n}");
    let result = format!("第{n}表 {}", format!("{n} ").repeat(bytes / 2));
    [
        Message::calls("", vec![ToolCall::new(&call, "read_table", "{}")]),
        Message::tool_result(&ToolCallId::new(&call), &result),
    ]
}

/// Fills a store with everything that a store holds.
fn fill(memory: &Memory) {
    let mut trip = memory.session(&id("trip")).unwrap();
    trip.record(Message::user("Which gate does the ferry to 神户 leave from?")).unwrap();
    trip.record_all(reading(1, 20_000).to_vec()).unwrap();
    trip.record_all(reading(2, 200_000).to_vec()).unwrap();
    let block = Reference::Block(trip.close(Close::End).unwrap().remove(0));
    trip.record(Message::assistant("It leaves from gate 七.")).unwrap();
    // A number that is not given again.
    memory.session(&id("gone")).unwrap().record(Message::user("Forget this.")).unwrap();
    memory.maintenance().forget(&id("gone")).unwrap();

    let mut parent = memory.session(&id("plan")).unwrap();
    parent.record(Message::user("Plan the trip.")).unwrap();
    let item = TodoItem::new(id("tickets"), "Buy the tickets");
    parent.set_todo_list(&TodoList::new(vec![item]).unwrap()).unwrap();
    let mut child = parent.child_session(&id("tickets")).unwrap();
    child.record(Message::user("Buy two tickets.")).unwrap();
    drop(child);
    memory.grants().grant(&id("trip"), &id("tickets"), &[block]).unwrap();

    memory.session(&id("empty")).unwrap();
    memory.park(&id("empty"), &[7; 32], "parked 文").unwrap();
    memory.park(&id("trip"), &[9; 32], "parked").unwrap();
    for n in 0..40_u8 {
        memory.note(&id("trip"), &[n; 8], &format!("note {n}")).unwrap();
    }
    let json = r#"{"role":"user","content":"hello"}"#.to_owned();
    let (tag, messages) = (b"tag".to_vec(), vec![Message::user("hello")]);
    let mut sent = memory.session(&id("sent")).unwrap();
    let one = NewSent { parent: None, tag, json, messages };
    sent.record_sent(foldback_core::SeqNo(0), 0, &[one], &[]).unwrap();
}

/// Everything that a store shows of what it holds.
fn contents(memory: &Memory) -> Vec<String> {
    let mut seen = Vec::new();
    for todo in memory.todos_after(0, 99).unwrap() {
        let (id, budget) = (todo.id(), Budget::default());
        seen.push(format!("{} {id}", todo.no()));
        seen.push(format!("{:?}", memory.conversations().export(id).unwrap()));
        seen.push(format!("{:?}", memory.blocks(id, 0, 99).unwrap()));
        seen.push(format!("{:?}", memory.grants().list(id).unwrap()));
        seen.push(format!("{:?}", memory.sent(id, 0, 9).unwrap()));
        seen.push(format!("{:?}", memory.parked(id, &[[7; 32], [9; 32], [1; 32]]).unwrap()));
        let notes: Vec<_> = (0..41_u8).map(|n| [n; 8]).collect();
        seen.push(format!("{:?}", memory.notes(id, &notes).unwrap()));
        for n in 1..=memory.payloads().last(&todo).unwrap() {
            let meta = memory.payloads().meta(&todo, n).unwrap();
            seen.push(format!("{n} {} {:?} {:?}", meta.check, meta.kind, meta.origin));
            seen.push(String::from_utf8(memory.payloads().get(&todo, n).unwrap()).unwrap());
        }
        let session = memory.session(id).unwrap();
        seen.push(format!("{:?} {:?}", session.todo_list(), session.prompt(&budget).messages));
        let answer = memory.search(id, &SearchRequest::new("the ferry to 神户")).unwrap();
        seen.extend(answer.hits.iter().map(|hit| format!("{:?}", hit.block.header.block_id)));
    }
    seen
}

/// PG14: a store that is filled from another one holds the same, whatever the engine and the encryption of either, and
/// continues with the next number.
#[test]
fn pg14_a_restored_store_holds_the_same() {
    let dirs = tempfile::tempdir().unwrap();
    let dir = |name: &str| dirs.path().join(name);
    let first = Memory::open(&dir("sqlite"), Options::default()).unwrap();
    fill(&first);
    let (expected, secret) = (contents(&first), first.secret());
    assert!(expected.iter().any(|seen| seen.contains("note 39")));
    drop(first);
    let plain = |engine| Options::default().with_engine(engine);
    let sealed = |engine| plain(engine).with_encryption(EncryptionKey::new([3; 32]));
    let steps = [
        ("redb", plain(Engine::Redb)),
        ("sealed", sealed(Engine::Sqlite)),
        ("sealed again", sealed(Engine::Redb)),
        ("last", plain(Engine::Sqlite)),
    ];
    let mut source = (dir("sqlite"), Options::default());
    for (name, options) in steps {
        let read = source.1.clone().with_mode(Mode::ReadOnly);
        let from = Memory::open(&source.0, read).unwrap();
        let restored = restore(&dir(name), options.clone(), &from).unwrap();
        assert_eq!((restored.todos, restored.messages), (5, 9), "{name}");
        drop(from);
        let memory = Memory::open(&dir(name), options.clone()).unwrap();
        assert_eq!(contents(&memory), expected, "{name}");
        assert_eq!(memory.secret(), secret, "{name}");
        assert_eq!(memory.maintenance().doctor().unwrap().findings, [""; 0], "{name}");
        let parent = memory.session(&id("plan")).unwrap().todo_list().clone();
        assert_eq!(parent.items()[0].state, ItemState::Pending, "{name}");
        drop(memory);
        source = (dir(name), options);
    }
    let memory = Memory::open(&source.0, source.1).unwrap();
    let before = memory.todos_after(0, 99).unwrap().last().unwrap().no();
    memory.session(&id("gone")).unwrap();
    assert_eq!(memory.find(&id("gone")).unwrap().no(), before + 1);
}

/// A store, and a copy of it in which a message of the todo `sent` cannot be read.
fn sound_and_damaged(dirs: &Path) -> [Memory; 2] {
    let dir = |name: &str| dirs.join(name);
    let source = Memory::open(&dir("source"), Options::default()).unwrap();
    fill(&source);
    source.maintenance().backup(&dir("damaged")).unwrap();
    let key = Key { space: Space::Message, todo: source.find(&id("sent")).unwrap().no(), n: 0 };
    let value = source.shared.kv.get(key).unwrap().unwrap();
    let file = dir("damaged").join("store.sqlite");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
    bytes[at + value.len() / 2] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let reading = Options::default().with_mode(Mode::ReadOnly);
    [source, Memory::open(&dir("damaged"), reading).unwrap()]
}

/// The names of the files below a folder.
fn walk(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(walk(&entry.path())),
            false => names.push(entry.file_name().to_string_lossy().into_owned()),
        }
    }
    names.retain(|name| name != "lock");
    names
}

/// PG14: a store whose filling was interrupted does not open, and the next attempt begins from the start, from whichever
/// source: nothing of the first one is left.
#[test]
fn pg14_an_interrupted_restore_begins_again() {
    let dirs = tempfile::tempdir().unwrap();
    let [sound, damaged] = sound_and_damaged(dirs.path());
    let (target, key) = (dirs.path().join("target"), EncryptionKey::new([5; 32]));
    for options in
        [Options::default().with_engine(Engine::Redb), Options::default().with_encryption(key)]
    {
        let error = restore(&target, options.clone(), &damaged).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("todo sent"), "{error}");
        for mode in [Mode::ReadOnly, Mode::ReadWrite] {
            let error = Memory::open(&target, options.clone().with_mode(mode)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains("repeat `foldback restore`"), "{error}");
        }
        let files = |dir: &Path| walk(&dir.join("payloads"));
        assert!(!files(&target).is_empty());
        // What was there meanwhile is not there in the end.
        let small = Memory::open(&dirs.path().join("small"), Options::default()).unwrap();
        small.session(&id("trip")).unwrap().record(Message::user("Another trip.")).unwrap();
        assert_eq!(restore(&target, options.clone(), &small).unwrap().todos, 1);
        let memory = Memory::open(&target, options.clone()).unwrap();
        assert_eq!(contents(&memory), contents(&small));
        assert_eq!(memory.maintenance().doctor().unwrap().findings, [""; 0]);
        assert_eq!(files(&target), [""; 0]);
        memory.session(&id("new")).unwrap();
        drop(memory);
        let error = restore(&target, options, &sound).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        std::fs::remove_dir_all(&target).unwrap();
        std::fs::remove_dir_all(dirs.path().join("small")).unwrap();
    }
}

/// PG14: a process that has the new store open makes no todo with a number that is to be filled, and of two that fill one
/// store the later one does.
#[test]
fn pg14_others_do_not_get_between() {
    let dirs = tempfile::tempdir().unwrap();
    let [sound, damaged] = sound_and_damaged(dirs.path());
    let target = dirs.path().join("target");
    let other = Memory::open(&target, Options::default()).unwrap();
    restore(&target, Options::default(), &damaged).unwrap_err();
    other.session(&id("early")).unwrap().record(Message::user("Too early.")).unwrap();
    let made = sound.todos_after(0, 99).unwrap().last().unwrap().no();
    assert_eq!(other.find(&id("early")).unwrap().no(), made + 1);
    let error = restore(&target, Options::default(), &sound).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");

    // The source has more todos than are named at once, so that the first attempt is not at its last write.
    let many = Memory::in_memory(Options::default()).unwrap();
    for n in 0..600 {
        many.session(&id(&format!("t{n}"))).unwrap().record(Message::user("一")).unwrap();
    }
    let (target, options) = (dirs.path().join("twice"), Options::default());
    let is_begun = std::cell::Cell::new(false);
    let first = Memory::restore(&target, options.clone(), &many, |_, _| {
        if !is_begun.replace(true) {
            restore(&target, options.clone(), &sound).unwrap();
        }
    });
    let error = first.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let memory = Memory::open(&target, options).unwrap();
    assert_eq!(contents(&memory), contents(&sound));
    assert_eq!(memory.maintenance().doctor().unwrap().findings, [""; 0]);
}

/// PG14: an attempt that meets what a later one has written leaves it alone.
#[test]
fn pg14_an_earlier_attempt_removes_nothing_of_a_later_one() {
    let dirs = tempfile::tempdir().unwrap();
    let [sound, _] = sound_and_damaged(dirs.path());
    let other = Memory::in_memory(Options::default()).unwrap();
    other.session(&id("trip")).unwrap().record(Message::user("Another trip.")).unwrap();
    let target = dirs.path().join("target");
    restore(&target, Options::default(), &sound).unwrap();
    let memory = Memory::open(&target, Options::default()).unwrap();
    let todo = other.find(&id("trip")).unwrap();
    let copy = TodoCopy { source: &other.shared, target: &memory, todo: &todo, attempt: 1 };
    assert_eq!(copy.run().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(contents(&memory), contents(&sound));
}
