//! R9: a store of each format that was ever written opens.

use crate::crash::{child_store, spawn};
use crate::story::{exchange, open, options, todo, workspace_root};
use foldback::core::{ItemState, SeqNo, TodoId, TodoItem, TodoList};
use foldback::{Close, Memory, Mode, NewSent, Outcome, Session};
use foldback_core::Message;
use foldback_kv::FORMAT_VERSION;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::tempdir;

/// The golden store of a format version.
fn golden(version: u64) -> PathBuf {
    workspace_root().join(format!("tests/golden/v{version}"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The contents of the golden store: small, offloaded and filed results, and a block of Chinese.
fn history() -> Vec<Message> {
    let mut messages = Vec::new();
    for n in 0..8 {
        let lines = [1, 300, 1, 9_000][n % 4];
        messages.extend(exchange(n, "golden", &format!("row {n} 数据\n").repeat(lines)));
    }
    messages
}

/// Checks everything in the history, and that it can be continued.
#[track_caller]
fn check_holds(memory: &Memory, what: &str) {
    let id = todo("golden");
    assert_eq!(
        memory.conversations().export(&id).unwrap().messages[..history().len()],
        history(),
        "{what}"
    );
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new(), "{what}");
    let found = memory.recall(&id, "search_block", r#"{"query":"golden step 3"}"#).unwrap();
    assert!(!found.is_error && found.text.contains("golden"), "{what}: {}", found.text);
    // S5: the origin of a stored part is given even for one that was stored before origins were
    // recorded.
    let blocks = memory.blocks(&id, 0, 9).unwrap();
    let stored = blocks.iter().flat_map(|block| &block.header.data_ids);
    let stored: Vec<_> = stored.filter(|name| name.starts_with("store://")).collect();
    assert!(!stored.is_empty(), "{what}");
    for stored in stored {
        let asked = serde_json::json!({ "ref": stored, "lines": "1-2" }).to_string();
        let loaded = memory.recall(&id, "load", &asked).unwrap().text;
        let whose = [(5, 6), (13, 14), (21, 22), (29, 30)].map(|(call, result)| {
            format!(" from=\"#{result} tool(read_file) of #{call}\" trust=\"untrusted\">\n")
        });
        assert!(whose.iter().any(|whose| loaded.contains(whose)), "{what}: {loaded}");
    }
}

/// R9: a store of every format opens, is read and searched, is written to, and supports later features.
#[test]
fn r9_every_format_opens() {
    for version in 1..=FORMAT_VERSION {
        let dir = tempdir().unwrap();
        copy(&golden(version), dir.path());
        let what = format!("version {version}");
        let id = todo("golden");
        let read_only = options().with_mode(Mode::ReadOnly);
        let reader = Memory::open(dir.path(), read_only).unwrap();
        check_holds(&reader, &what);
        // S5: it had no secret for its marks. Until it is opened for writing, each reader has its own.
        let secret = |mode| {
            let options = options().with_mode(mode).with_secret(None::<[u8; 32]>);
            Memory::open(dir.path(), options).unwrap().secret()
        };
        assert_ne!(secret(Mode::ReadOnly), secret(Mode::ReadOnly), "{what}");
        let items = usize::from(version >= 2);
        assert_eq!(reader.todo_list(&id).unwrap().items().len(), items, "{what}");
        assert_eq!(reader.grants().list(&id).unwrap().len(), items, "{what}");
        assert_eq!(sent(&reader, &id), Vec::<String>::new(), "{what}");
        drop(reader);

        let own = secret(Mode::ReadWrite);
        assert_eq!((secret(Mode::ReadOnly), secret(Mode::ReadWrite)), (own, own), "{what}");
        let memory = open(dir.path());
        check_holds(&memory, &what);
        let mut session = memory.session(&id).unwrap();
        assert_eq!(session.todo_list().items().len(), items, "{what}");
        let recorded = session.record(Message::user("more")).unwrap();
        assert_eq!(recorded.seq.0, history().len() as u64);
        sub_task(&mut session, &memory, "later");
        send(&mut session);
        drop((session, memory));
        let memory = open(dir.path());
        check_holds(&memory, &what);
        assert_eq!(memory.grants().list(&id).unwrap().len(), items + 1, "{what}");
        assert_eq!(sent(&memory, &id), ["{ \"role\": \"user\" }"], "{what}");
        let held = sent(&memory, &todo("client"));
        assert_eq!(held.len(), usize::from(version >= 3), "{what}");
        let loaded = memory.recall(&id, "load", r#"{"ref":"b_later_001"}"#).unwrap();
        assert!(loaded.text.contains("子任务"), "{}", loaded.text);
    }
}

/// R9: an upgrade that is interrupted after any step is repeated and loses nothing.
#[test]
fn r9_a_half_finished_upgrade_opens_and_loses_nothing() {
    let format = std::fs::read(golden(1).join("FORMAT")).unwrap();
    for (step, new) in [
        ("nothing is done", None),
        ("the tables are made", Some(&b""[..])),
        ("a part of the format file is written", Some(&b"foldback sto"[..])),
        ("the format file waits for its name", Some(&b"foldback store\nversion 3\n"[..])),
    ] {
        let dir = tempdir().unwrap();
        copy(&golden(1), dir.path());
        if let Some(new) = new {
            drop(open(dir.path()));
            std::fs::write(dir.path().join("FORMAT"), &format).unwrap();
            std::fs::write(dir.path().join("FORMAT.new"), new).unwrap();
        }
        let read_only = options().with_mode(Mode::ReadOnly);
        check_holds(&Memory::open(dir.path(), read_only).unwrap(), step);
        let memory = open(dir.path());
        check_holds(&memory, step);
        sub_task(&mut memory.session(&todo("golden")).unwrap(), &memory, "later");
        assert_eq!(memory.grants().list(&todo("golden")).unwrap().len(), 1, "{step}");
    }
}

/// R9, R1: a process that is killed while it brings a store up to the present format.
#[test]
fn r9_an_upgrade_that_is_killed_is_done_again() {
    if let Some(store) = child_store() {
        println!("opening");
        let _memory = open(&store);
        // Nothing is left for long of a process whose test has failed.
        return std::thread::sleep(Duration::from_secs(30));
    }
    for cycle in 0..20_u64 {
        let dir = tempdir().unwrap();
        copy(&golden(1), dir.path());
        let mut opener = spawn("golden::r9_an_upgrade_that_is_killed_is_done_again", dir.path());
        let mut lines = BufReader::new(opener.stdout.take().unwrap()).lines();
        // The test harness prints a line before it runs the test.
        assert!(lines.any(|line| line.unwrap().contains("opening")));
        std::thread::sleep(Duration::from_micros(cycle * 701));
        opener.kill().unwrap();
        opener.wait().unwrap();
        check_holds(&open(dir.path()), "after a kill");
    }
}

#[test]
fn r9_a_store_of_the_future_is_refused_by_its_version() {
    let dir = tempdir().unwrap();
    copy(&golden(FORMAT_VERSION), dir.path());
    let path = dir.path().join("FORMAT");
    let format = std::fs::read_to_string(&path).unwrap();
    let future = format.replacen(&FORMAT_VERSION.to_string(), "999", 1);
    assert_ne!(format, future);
    std::fs::write(&path, future).unwrap();
    let error = foldback::Memory::open(dir.path(), options()).err().unwrap();
    assert!(error.to_string().contains("999"), "{error}");
}

/// Records a message as a client sent it.
fn send(session: &mut Session) {
    let json = "{ \"role\": \"user\" }".to_owned();
    let messages = vec![Message::user("港口 as it was sent")];
    let new = NewSent { parent: None, tag: vec![7], json, messages };
    session.record_sent(SeqNo(session.len()), 0, &[new], &[]).unwrap();
}

/// What clients sent in a todo; nothing if there is none.
fn sent(memory: &Memory, todo: &TodoId) -> Vec<String> {
    let sent = memory.sent(todo, 0, 9).unwrap_or_default();
    sent.into_iter().map(|one| one.json).collect()
}

/// Does one sub-task in a separate todo and returns its block.
fn sub_task(session: &mut Session, memory: &Memory, name: &str) {
    let id = todo(name);
    let mut items = session.todo_list().items().to_vec();
    items.push(TodoItem::new(id.clone(), "子任务"));
    session.set_todo_list(&TodoList::new(items).unwrap()).unwrap();
    let mut child = session.child_session(&id).unwrap();
    child.record(Message::user("子任务：读一行")).unwrap();
    child.close(Close::End).unwrap();
    let block = memory.blocks(&id, 0, 1).unwrap().remove(0).header.block_id;
    let references = vec![block.into()];
    let outcome = Outcome { state: ItemState::Completed, result: None, references };
    session.finish_item(&id, &outcome).unwrap();
}

/// Writes the golden store. Run once for each new format, by hand:
/// `cargo test -p foldback-tests golden::write -- --ignored`.
#[test]
#[ignore = "writes the fixture of a new format"]
fn write() {
    let to = golden(FORMAT_VERSION);
    assert!(!to.exists(), "{} is already there; a released fixture stays", to.display());
    let memory = open(&to);
    let mut session = memory.session(&todo("golden")).unwrap();
    session.record_all(history()).unwrap();
    session.close(Close::End).unwrap();
    sub_task(&mut session, &memory, "sub-task");
    send(&mut memory.session(&todo("client")).unwrap());
}
