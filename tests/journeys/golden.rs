//! R9: a store of each format that was ever written opens.

use crate::story::workspace_root;
use crate::story::{exchange, open, todo};
use foldback::Close;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

fn golden() -> PathBuf {
    workspace_root().join("tests/golden/v1")
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

/// What the golden store holds: small, offloaded and filed results, and a block of Chinese.
fn history() -> Vec<foldback_core::Message> {
    let mut messages = Vec::new();
    for n in 0..8 {
        let lines = [1, 300, 1, 9_000][n % 4];
        messages.extend(exchange(n, "golden", &format!("row {n} 数据\n").repeat(lines)));
    }
    messages
}

#[test]
fn r9_the_first_format_opens() {
    let dir = tempdir().unwrap();
    copy(&golden(), dir.path());
    let memory = open(dir.path());
    let id = todo("golden");
    assert_eq!(memory.export(&id).unwrap().messages, history());
    assert!(memory.doctor(false).unwrap().is_clean());
    let found = memory.recall(&id, "search_block", r#"{"query":"golden step 3"}"#).unwrap();
    assert!(!found.is_error && found.text.contains("golden"), "{}", found.text);
    // And it goes on.
    let mut session = memory.session(&id).unwrap();
    let recorded = session.record(foldback_core::Message::user("more")).unwrap();
    assert_eq!(recorded.seq.0, history().len() as u64);
}

#[test]
fn r9_a_store_of_the_future_is_refused_by_its_version() {
    let dir = tempdir().unwrap();
    copy(&golden(), dir.path());
    let path = dir.path().join("FORMAT");
    let format = std::fs::read_to_string(&path).unwrap();
    let future = format.replacen('1', "999", 1);
    assert_ne!(format, future);
    std::fs::write(&path, future).unwrap();
    let error = foldback::Memory::open(dir.path(), crate::story::options()).err().unwrap();
    assert!(error.to_string().contains("999"), "{error}");
}

/// Writes the golden store. Run once for each new format, by hand:
/// `cargo test -p foldback-tests golden::write -- --ignored`.
#[test]
#[ignore = "writes the fixture of a new format"]
fn write() {
    let _ = std::fs::remove_dir_all(golden());
    let memory = open(&golden());
    let mut session = memory.session(&todo("golden")).unwrap();
    session.record_all(history()).unwrap();
    session.close(Close::End).unwrap();
}
