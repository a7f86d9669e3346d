//! What is logged, and how a changed log is recognised.

use crate::core::{Message, Timestamp, TodoId, ToolCall};
use crate::{
    Audit, AuditFilter, AuditLine, AuditReport, ErrorKind, Memory, Mode, Options, SearchRequest,
};
use foldback_kv::{Batch, Delete, Engine, Key, Space};
use std::fs;
use std::path::Path;

fn todo(name: &str) -> TodoId {
    TodoId::new(name).unwrap()
}

fn open(dir: &Path, door: &str) -> Memory {
    Memory::open(dir, Options::default().with_audit(Audit::new(door))).unwrap()
}

fn lines(memory: &Memory, filter: &AuditFilter) -> (Vec<AuditLine>, AuditReport) {
    let mut lines = Vec::new();
    let report = memory.audit().read(filter, |line| lines.push(line)).unwrap();
    (lines, report)
}

/// A store in which something was recorded, and looked up `times` times.
fn used(dir: &Path, times: usize) -> Memory {
    let memory = open(dir, "test");
    memory
        .session(&todo("trip"))
        .unwrap()
        .record(Message::user("Pier eight opens at 六点."))
        .unwrap();
    for n in 0..times {
        let query = format!("{{\"query\": \"pier {n}\"}}");
        memory.recall(&todo("trip"), "search_block", &query).unwrap();
    }
    memory
}

/// What is no file is refused at once: a pipe would be waited for.
#[cfg(unix)]
#[test]
fn s16_a_pipe_in_place_of_the_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    let log = dir.path().join("audit.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&log).status().unwrap().success());
    let refused = memory.audit().read(&AuditFilter::default(), |_| {}).unwrap_err();
    assert!(refused.sentence().contains("not a regular file"), "{}", refused.sentence());
    drop(memory);
    let options = Options::default().with_audit(Audit::new("test"));
    let refused = Memory::open(dir.path(), options).err().unwrap();
    assert!(refused.sentence().contains("not a regular file"), "{}", refused.sentence());
}

#[test]
fn s16_every_look_up_is_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let memory = used(dir.path(), 1);
    let trip = todo("trip");
    let mut session = memory.session(&trip).unwrap();
    session.close(crate::Close::End).unwrap();
    session.call(&ToolCall::new("c", "load", r#"{"ref": "b_trip_001"}"#)).unwrap();
    session.call(&ToolCall::new("d", "load", r#"{"ref": "b_trip_009"}"#)).unwrap();
    memory.search(&trip, &SearchRequest::new("pier")).unwrap();
    memory.call_tool(&trip, "record", r#"{"text": "a note"}"#).unwrap();
    memory.session(&todo("other")).unwrap().record(Message::user("x")).unwrap();
    memory.grants().grant(&trip, &todo("other"), &["b_trip_001".parse().unwrap()]).unwrap();
    memory.owner().recall("search_block", r#"{"query": "pier"}"#).unwrap();
    memory.references().write(&trip, &"b_trip_001".parse().unwrap(), std::io::sink()).unwrap();
    let (lines, report) = lines(&memory, &AuditFilter::default());
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line.todo.as_deref(),
                line.what.as_str(),
                line.asked.join(" "),
                line.given.join(" "),
                line.error,
            )
        })
        .collect();
    let one = "b_trip_001".to_owned();
    let none = String::new;
    assert_eq!(
        told,
        [
            (Some("trip"), "search_block", none(), one.clone(), false),
            (Some("trip"), "load", one.clone(), one.clone(), false),
            (Some("trip"), "load", "b_trip_009".to_owned(), none(), true),
            (Some("trip"), "search", none(), one.clone(), false),
            (Some("trip"), "record", none(), none(), false),
            (Some("trip"), "grant", one.clone(), none(), false),
            (None, "search_block", none(), one.clone(), false),
            (Some("trip"), "read", one.clone(), one, false),
        ]
    );
    assert_eq!(report, AuditReport { lines: 8, broken: None });
    // No word of what was asked or said.
    let text = fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    assert!(!text.contains("pier") && !text.contains("note"), "{text}");
    let filter = AuditFilter { query: Some("pier 0".to_owned()), ..AuditFilter::default() };
    assert_eq!(self::lines(&memory, &filter).0.len(), 1);
    let filter = AuditFilter { todo: Some(todo("other")), ..AuditFilter::default() };
    assert_eq!(self::lines(&memory, &filter).0.len(), 0);
    let filter = AuditFilter { since: Some(Timestamp(i64::MAX)), ..AuditFilter::default() };
    assert_eq!(self::lines(&memory, &filter).0.len(), 0);
}

#[cfg(unix)]
#[test]
fn s16_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let _memory = used(dir.path(), 1);
    let mode = fs::metadata(dir.path().join("audit.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Each line is changed in each byte, removed, doubled or moved: the first broken one is reported.
#[test]
fn s16_any_change_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    drop(used(dir.path(), 6));
    let path = dir.path().join("audit.jsonl");
    let whole = fs::read(&path).unwrap();
    let memory = open(dir.path(), "test");
    let broken = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        lines(&memory, &AuditFilter::default()).1.broken.map(|(line, _)| line)
    };
    assert_eq!(broken(&whole), None);
    let line_of = |at: usize| whole[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert_eq!(broken(&changed), Some(line_of(at)), "byte {at}");
    }
    let all: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for n in 0..all.len() {
        let mut without = all.clone();
        without.remove(n);
        // Also the last: the store knows of it.
        assert_eq!(broken(&without.concat()), Some(n as u64 + 1), "line {n} is gone");
        let mut twice = all.clone();
        twice.insert(n, all[n]);
        assert_eq!(broken(&twice.concat()), Some(n as u64 + 2), "line {n} is there twice");
        if n + 1 < all.len() {
            let mut moved = all.clone();
            moved.swap(n, n + 1);
            assert_eq!(broken(&moved.concat()), Some(n as u64 + 1), "line {n} is moved");
        }
    }
    assert_eq!(broken(&[]), Some(1));
    fs::remove_file(&path).unwrap();
    assert_eq!(lines(&memory, &AuditFilter::default()).1.broken.map(|(line, _)| line), Some(1));
}

/// A log of another store, or one made with another secret, is not accepted.
#[test]
fn s16_a_log_of_another_store_is_broken() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop((used(one.path(), 3), used(other.path(), 3)));
    fs::copy(one.path().join("audit.jsonl"), other.path().join("audit.jsonl")).unwrap();
    let report = lines(&open(other.path(), "test"), &AuditFilter::default()).1;
    assert_eq!(report.broken.map(|(line, _)| line), Some(1));
}

/// A log is deleted, moved, truncated or replaced by an older one while a process continues: the process writes to the
/// file that has the name now, begins with a line that says that others are gone, and that stays known.
#[test]
fn s16_a_log_that_is_taken_away_is_named_by_the_line_behind_it() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("deleted", |log| fs::remove_file(log).unwrap()),
        ("moved", |log| fs::rename(log, log.with_extension("old")).unwrap()),
        ("cut", |log| {
            let first = fs::read_to_string(log).unwrap().lines().next().unwrap().to_owned();
            fs::write(log, first + "\n").unwrap();
        }),
        ("replaced", |log| {
            let first = fs::read_to_string(log).unwrap().lines().next().unwrap().to_owned();
            fs::remove_file(log).unwrap();
            fs::write(log, first + "\n").unwrap();
        }),
    ];
    for (what, harm) in harms {
        for is_running in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("audit.jsonl");
            let mut memory = used(dir.path(), 5);
            let before = fs::read_to_string(&path).unwrap();
            if !is_running {
                drop(memory);
                harm(&path);
                memory = open(dir.path(), "test");
            } else {
                harm(&path);
            }
            let left = lines(&memory, &AuditFilter::default()).1.lines;
            for _ in 0..70 {
                memory.recall(&todo("trip"), "list_blocks", "{}").unwrap();
            }
            drop(memory);
            let memory = open(dir.path(), "test");
            let (found, report) = lines(&memory, &AuditFilter::default());
            let (broken, why) = report.broken.unwrap();
            assert_eq!((broken, report.lines), (left + 1, left + 71), "{what}: {why}");
            let lost = &found[left as usize];
            assert_eq!((lost.n, lost.what.as_str(), lost.error), (6, "lines_lost", true), "{what}");
            assert_eq!(found.last().unwrap().n, 76, "{what}");
            // With the removed lines the log is complete.
            let now = fs::read_to_string(&path).unwrap();
            let kept: String = now.split_inclusive('\n').skip(left as usize).collect();
            fs::write(&path, before + &kept).unwrap();
            let report = lines(&memory, &AuditFilter::default()).1;
            assert_eq!(report, AuditReport { lines: 76, broken: None }, "{what}");
        }
    }
}

/// A store whose secret is gone can neither check its log nor add to it when it is only read, and says that.
#[test]
fn s16_without_its_secret_a_log_is_not_called_changed() {
    let dir = tempfile::tempdir().unwrap();
    drop(used(dir.path(), 3));
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let secret = Key { space: Space::Meta, todo: 0, n: 4 };
    kv.commit(Batch { delete: vec![Delete::one(secret)], ..Batch::default() }).unwrap();
    drop(kv);
    let reading = || Options::default().with_mode(Mode::ReadOnly);
    let memory = Memory::open(dir.path(), reading()).unwrap();
    let (line, why) = lines(&memory, &AuditFilter::default()).1.broken.unwrap();
    assert!(line == 1 && why.contains("secret"), "{line}: {why}");
    drop(memory);
    let refused = Memory::open(dir.path(), reading().with_audit(Audit::new("test"))).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    // Opened for writing, the store has another secret, with which it continues; the earlier lines stay in doubt.
    let memory = open(dir.path(), "test");
    memory.recall(&todo("trip"), "list_blocks", "{}").unwrap();
    assert_eq!(lines(&memory, &AuditFilter::default()).1.broken.unwrap().0, 1);
}

/// A line that was being written when a process died is reported, and what follows is kept.
#[test]
fn s16_a_line_that_was_begun_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(used(dir.path(), 3));
    let path = dir.path().join("audit.jsonl");
    let whole = fs::read(&path).unwrap();
    let torn = [&whole[..], b"{\"n\":4,\"at\":\"20"].concat();
    fs::write(&path, &torn).unwrap();
    let memory = open(dir.path(), "test");
    memory.recall(&todo("trip"), "list_blocks", "{}").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 5);
    assert!(text.lines().last().unwrap().starts_with("{\"n\":4,"));
    assert_eq!(lines(&memory, &AuditFilter::default()).1.broken.map(|(line, _)| line), Some(4));
}

#[test]
fn s16_several_memories_add_to_one_log() {
    let dir = tempfile::tempdir().unwrap();
    drop(used(dir.path(), 0));
    std::thread::scope(|scope| {
        for n in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                let door = format!("door-{n}");
                let options = Options::default().with_audit(Audit::new(&door));
                let mode = if n % 2 == 0 { Mode::ReadOnly } else { Mode::ReadWrite };
                let memory = Memory::open(dir, options.with_mode(mode)).unwrap();
                for _ in 0..100 {
                    memory.recall(&todo("trip"), "search_block", r#"{"query": "pier"}"#).unwrap();
                }
            });
        }
    });
    let memory = open(dir.path(), "test");
    let (lines, report) = lines(&memory, &AuditFilter::default());
    assert_eq!(report, AuditReport { lines: 400, broken: None });
    for n in 0..4 {
        let door = format!("door-{n}");
        assert_eq!(lines.iter().filter(|line| line.door == door).count(), 100);
    }
}

/// What cannot be logged is not returned.
#[test]
fn s16_without_a_folder_there_is_no_log() {
    let options = Options::default().with_audit(Audit::new("test"));
    let error = Memory::in_memory(options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn s16_upkeep_names_a_broken_line() {
    let dir = tempfile::tempdir().unwrap();
    let memory = used(dir.path(), 3);
    assert!(memory.maintenance().verify().unwrap().is_clean());
    let path = dir.path().join("audit.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("search_block", "list_blocks", 2)).unwrap();
    let findings = memory.maintenance().verify().unwrap().findings;
    assert!(findings.len() == 1 && findings[0].contains("line 1"), "{findings:?}");
    assert_eq!(memory.maintenance().doctor().unwrap().findings.len(), 1);
}

/// A copy of a store has its log.
#[test]
fn s16_a_copy_has_the_log() {
    let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(used(dir.path(), 70));
    let copy = to.path().join("copy");
    open(dir.path(), "test").maintenance().backup(&copy).unwrap();
    let report = lines(&open(&copy, "test"), &AuditFilter::default()).1;
    assert_eq!(report, AuditReport { lines: 70, broken: None });
}

#[test]
fn s16_it_is_off_by_default() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    memory.session(&todo("trip")).unwrap().record(Message::user("x")).unwrap();
    memory.recall(&todo("trip"), "search_block", r#"{"query": "x"}"#).unwrap();
    assert!(!dir.path().join("audit.jsonl").exists());
    assert_eq!(lines(&memory, &AuditFilter::default()).1, AuditReport::default());
}
