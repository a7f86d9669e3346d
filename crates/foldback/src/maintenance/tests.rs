//! What maintenance finds and repairs.

use crate::{Close, ErrorKind, Memory, Options};
use foldback_core::{Message, TodoId, ToolCall, ToolCallId};
use foldback_kv::{Batch, Key, Mode, Space};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A result that is large enough for a file of its own.
fn result(n: usize) -> String {
    (0..9_000).map(|line| format!("row {line} of table {n}: {}\n", line * 7919 + n)).collect()
}

fn exchange(n: usize) -> [Message; 3] {
    let id = format!("call_{n}");
    [
        Message::user(&format!("Read table {n}.")),
        Message::calls("", vec![ToolCall::new(&id, "read_table", "{}")]),
        Message::tool_result(&ToolCallId::new(&id), &result(n)),
    ]
}

fn open(dir: &Path, mode: Mode) -> Memory {
    Memory::open(dir, Options::default().with_mode(mode)).unwrap()
}

fn record(memory: &Memory, id: &TodoId, n: usize) {
    memory.session(id).unwrap().record_all(exchange(n).to_vec()).unwrap();
}

/// The payload files of a store, by path.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.join("payloads")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() != "lock" {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn bs6_a_damaged_payload_record_is_one_finding_and_the_rest_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let id = TodoId::new("tables").unwrap();
    let memory = open(dir.path(), Mode::ReadWrite);
    (0..3).for_each(|n| record(&memory, &id, n));
    let todo = memory.find(&id).unwrap();
    assert!(memory.maintenance().verify().unwrap().is_clean());
    let key = Key { space: Space::Payload, todo: todo.no(), n: 1 };
    let value = memory.shared.kv.get(key).unwrap().unwrap();
    let third = memory.shared.payloads.meta(&todo, 3).unwrap().hash;
    drop(memory);
    let file = dir.path().join("store.sqlite");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
    bytes[at + value.len() / 2] ^= 1;
    fs::write(&file, bytes).unwrap();
    let third: String = third.iter().map(|byte| format!("{byte:02x}")).collect();
    let third = files(dir.path()).into_iter().find(|path| path.ends_with(&third)).unwrap();
    fs::remove_file(third).unwrap();

    let memory = open(dir.path(), Mode::ReadWrite);
    let checkup = memory.maintenance().verify().unwrap();
    assert_eq!((checkup.todos, checkup.messages), (1, 9));
    assert_eq!(checkup.findings.len(), 2, "{:?}", checkup.findings);
    assert!(checkup.findings[0].starts_with("tables: payload 1: the record payload 1/1"));
    assert_eq!(checkup.findings[1], "tables: payload 3: its file is missing");
    // A doctor gets to its end too, and takes no file whose record cannot be read.
    let before = files(dir.path());
    assert_eq!(memory.maintenance().doctor().unwrap().findings, checkup.findings);
    let repaired = memory.maintenance().repair().unwrap().findings;
    assert_eq!(repaired[..2], checkup.findings);
    assert!(repaired[2].starts_with("tables: no payload file is removed: "), "{repaired:?}");
    assert_eq!(files(dir.path()), before);
}

/// Options under which every block is indexed on disk at once.
fn eager(mode: Mode) -> Options {
    let mut options = Options::default().with_mode(mode);
    options.index.index_after_blocks = 0;
    options.index.batch_blocks = 1;
    options.index.hnsw_after_vectors = 1;
    options
}

/// Every file below a folder and what it holds, except locks.
fn contents(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(contents(&entry.path()));
        } else {
            found.push((entry.path(), fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn s9_a_todo_that_could_not_be_forgotten_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let id = TodoId::new("tables").unwrap();
    let memory = Memory::open(dir.path(), eager(Mode::ReadWrite)).unwrap();
    record(&memory, &id, 0);
    memory.session(&id).unwrap().close(Close::End).unwrap();
    memory.maintenance().index().unwrap();
    drop(memory);
    let index = dir.path().join("index");
    let before = contents(&index);
    assert!(index.join("1/tantivy/meta.json").exists());
    // A read-only store keeps its indexes as they are, whatever is asked of it.
    let reader = Memory::open(dir.path(), eager(Mode::ReadOnly)).unwrap();
    let refused = |done: Result<(), crate::Error>| done.unwrap_err().kind() == ErrorKind::ReadOnly;
    assert!(refused(reader.maintenance().forget(&id)));
    assert!(refused(reader.maintenance().index()));
    assert!(refused(reader.maintenance().repair().map(drop)));
    assert!(contents(&index) == before, "the index is another one");
    assert_eq!(reader.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    drop(reader);

    let memory = open(dir.path(), Mode::ReadWrite);
    assert_eq!(files(dir.path()).len(), 1);
    memory.maintenance().forget(&id).unwrap();
    assert_eq!(files(dir.path()).len(), 0);
    // Of the index over all todos the list of its volumes is left, which names none.
    let left: Vec<_> = contents(&index).into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [index.join("all/catalogue"), index.join("all/lock")]);
    assert_eq!(memory.find(&id).unwrap_err().kind(), ErrorKind::NotFound);
}

/// What is written and indexed during a check is not a finding.
#[test]
fn a_check_beside_a_busy_writer_has_no_findings() {
    let dir = tempfile::tempdir().unwrap();
    let id = TodoId::new("busy").unwrap();
    let memory = Memory::open(dir.path(), eager(Mode::ReadWrite)).unwrap();
    let checker = Memory::open(dir.path(), eager(Mode::ReadWrite)).unwrap();
    record(&memory, &id, 0);
    let stop = AtomicBool::new(false);
    let mut found = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = memory.session(&id).unwrap();
            for n in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let text = format!("Entry {n} of the log, 第{n}条。");
                session.record_all(vec![Message::user(&text)]).unwrap();
                session.record_all(vec![Message::assistant("Noted.")]).unwrap();
                session.close(Close::End).unwrap();
            }
        });
        let (mut turn, mut blocks) = (0, 0);
        while turn < 20 || blocks < 60 {
            turn += 1;
            let checkup = match turn % 4 {
                0 => checker.maintenance().repair(),
                _ => checker.maintenance().doctor(),
            };
            let checkup = checkup.unwrap();
            blocks = checkup.blocks;
            found.extend(checkup.findings);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(found, Vec::<String>::new());
}

/// R4: how many blocks a todo has is known without its saved state, which may be damaged.
#[test]
fn r4_blocks_are_counted_without_a_saved_state() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let id = TodoId::new("quay").unwrap();
    let mut session = memory.session(&id).unwrap();
    session.record(Message::user("第一")).unwrap();
    assert_eq!(memory.closed_blocks(&id).unwrap(), 0);
    for text in ["第二", "第三"] {
        session.close(Close::End).unwrap();
        session.record(Message::user(text)).unwrap();
    }
    assert_eq!(memory.closed_blocks(&id).unwrap(), session.blocks());
    let key = Key { space: Space::Session, todo: memory.find(&id).unwrap().no(), n: 0 };
    memory.shared.kv.commit(Batch { put: vec![(key, vec![0xc1])], ..Batch::default() }).unwrap();
    assert!(memory.session(&id).is_err());
    assert_eq!(memory.closed_blocks(&id).unwrap(), 2);
}
