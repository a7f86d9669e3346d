//! S9: grants are removed with either todo.

use super::{check_loads, work};
use crate::story::{engines, open, open_on, todo};
use foldback::{Engine, ErrorKind, Mode};
use foldback_core::Message;
use foldback_kv::{Batch, Key, Space};
use std::path::Path;
use std::time::Duration;

/// S9, TD2: granted content is removed with either todo, down to the bytes.
#[test]
fn s9_grants_go_with_a_forgotten_todo() {
    for (from, to) in [("canaryzq77", "stays"), ("stays", "canaryzq77")] {
        let dir = tempfile::tempdir().unwrap();
        let memory = open(dir.path());
        let own = work(&mut memory.session(&todo(from)).unwrap(), "数据");
        memory.session(&todo(to)).unwrap().record(Message::user("你好")).unwrap();
        memory.grants().grant(&todo(from), &todo(to), &own).unwrap();
        check_loads(&memory, &todo(to), &own);
        memory.maintenance().forget(&todo("canaryzq77")).unwrap();
        memory.maintenance().compact().unwrap();
        assert_eq!(memory.grants().list(&todo("stays")).unwrap(), []);
        drop(memory);
        check_no_canary(dir.path());
    }
}

/// S9: a parent's name is removed with the parent, from its children too.
#[test]
fn s9_a_forgotten_parent_is_named_nowhere() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open_on(engine, dir.path());
        let mut parent = memory.session(&todo("canaryzq77")).unwrap();
        parent.record(Message::user("你好")).unwrap();
        let mut child = parent.child_session(&todo("stays")).unwrap();
        child.record(Message::user("好")).unwrap();
        drop(parent);
        memory.maintenance().forget(&todo("canaryzq77")).unwrap();
        assert_eq!(child.parent().unwrap(), None);
        // Nor is a todo that takes its name mistaken for it.
        memory.session(&todo("canaryzq77")).unwrap();
        assert_eq!(child.parent().unwrap(), None);
        memory.maintenance().forget(&todo("canaryzq77")).unwrap();
        drop(child);
        memory.maintenance().compact().unwrap();
        drop(memory);
        check_no_canary(dir.path());
    }
}

/// S9: grants and returns made during a forgetting are removed too, whichever comes first.
#[test]
fn s9_nothing_is_granted_beside_a_forgetting() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let stays = todo("stays");
    memory.session(&stays).unwrap().record(Message::user("你好")).unwrap();
    for n in 0..40_u64 {
        let canary = todo(&format!("canaryzq77-{n}"));
        let own = work(&mut memory.session(&canary).unwrap(), "数据");
        let others = work(&mut memory.session(&stays).unwrap(), "数据");
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let granting = scope.spawn(|| {
                start.wait();
                std::thread::sleep(Duration::from_micros(n * 60));
                for (from, to, what) in
                    [(&canary, &stays, &own[..]), (&stays, &canary, &others[..1])]
                {
                    // Which comes first depends on the machine.
                    match memory.grants().grant(from, to, what) {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
                    }
                }
            });
            start.wait();
            memory.maintenance().forget(&canary).unwrap();
            granting.join().unwrap();
        });
    }
    memory.maintenance().compact().unwrap();
    assert_eq!(memory.grants().list(&todo("stays")).unwrap(), []);
    drop(memory);
    check_no_canary(dir.path());
}

/// S9: the remains of a grant from a killed process are removed when the store is repaired.
#[test]
fn s9_grants_of_todos_that_are_gone_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let own = work(&mut memory.session(&todo("canaryzq77")).unwrap(), "数据");
    memory.session(&todo("stays")).unwrap().record(Message::user("你好")).unwrap();
    memory.grants().grant(&todo("canaryzq77"), &todo("stays"), &own).unwrap();
    let no = memory.find(&todo("canaryzq77")).unwrap().no();
    let stays = memory.find(&todo("stays")).unwrap().no();
    drop(memory);
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let kept = |todo| kv.scan(Space::Grant, todo, 0..Key::N_END, 99).unwrap();
    let records: Vec<_> = [no, stays]
        .into_iter()
        .flat_map(|todo| {
            let key = move |n| Key { space: Space::Grant, todo, n };
            kept(todo).into_iter().map(move |(n, bytes)| (key(n), bytes))
        })
        .collect();
    assert_eq!(records.len(), 4);
    open(dir.path()).maintenance().forget(&todo("canaryzq77")).unwrap();
    assert_eq!((kept(no).len(), kept(stays).len()), (0, 0));
    // As if they had been written a moment later.
    kv.commit(Batch { put: records, ..Batch::default() }).unwrap();
    let memory = open(dir.path());
    assert_eq!(memory.grants().list(&todo("stays")).unwrap(), [], "they hold no more");
    assert_eq!(memory.maintenance().repair().unwrap().findings, Vec::<String>::new());
    assert_eq!((kept(no).len(), kept(stays).len()), (0, 0));
    memory.maintenance().compact().unwrap();
    drop((memory, kv));
    check_no_canary(dir.path());
}

fn check_no_canary(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            check_no_canary(&entry.path());
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let found = bytes.windows(10).any(|window| window == b"canaryzq77");
        assert!(!found, "{:?} still names it", entry.path());
    }
}
