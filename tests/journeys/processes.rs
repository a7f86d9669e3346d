//! R10: several processes on one store.

use crate::crash::spawn;
use crate::story::{exchange, open, todo};
use foldback_core::TodoId;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tempfile::tempdir;

/// Exchanges that each writer records.
const EXCHANGES: usize = 30;

#[test]
fn r10_two_processes_write_and_search_one_store() {
    let dir = tempdir().unwrap();
    drop(open(dir.path()));
    let children = [spawn("processes::peer", dir.path()), spawn("processes::peer", dir.path())];
    for mut child in children {
        let lines: Vec<String> =
            BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success(), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("peer done")), "{lines:?}");
    }
    let memory = open(dir.path());
    // Both wrote the shared todo, taking turns; nothing is lost or doubled.
    let shared = memory.export(&todo("shared")).unwrap();
    assert_eq!(shared.messages.len(), 2 * EXCHANGES * 4);
    let mut texts: Vec<_> = shared.messages.iter().map(|m| m.json().to_owned()).collect();
    texts.sort();
    let mut expected: Vec<_> = memory
        .todos(None, 10)
        .unwrap()
        .iter()
        .filter(|id| id.as_str() != "shared")
        .flat_map(said)
        .collect();
    expected.sort();
    assert_eq!(texts, expected);
    let checkup = memory.doctor(false).unwrap();
    assert_eq!(checkup.findings, Vec::<String>::new());
}

fn said(own: &TodoId) -> Vec<String> {
    (0..EXCHANGES)
        .flat_map(|n| exchange(n, own.as_str(), own.as_str()))
        .map(|message| message.json().to_owned())
        .collect()
}

/// Writes a todo of its own and a shared one, and searches what it wrote. Runs only as a child.
#[test]
fn peer() {
    let Some(dir) = std::env::var_os("FOLDBACK_TEST_STORE") else { return };
    let memory = open(Path::new(&dir));
    let own = todo(&format!("peer-{}", std::process::id()));
    let mut session = memory.session(&own).unwrap();
    let mut shared = memory.session(&todo("shared")).unwrap();
    for n in 0..EXCHANGES {
        for message in exchange(n, own.as_str(), own.as_str()) {
            session.record(message.clone()).unwrap();
            shared.record(message).unwrap();
        }
        // What the newest block says, and nothing else, finds that block at once.
        let Some(block) = memory.blocks(&own, session.blocks().saturating_sub(1), 1).unwrap().pop()
        else {
            continue;
        };
        let n = block.range.last().0 / 4;
        let query = serde_json::json!({ "query": format!("step {n}"), "k": 3 }).to_string();
        let found = memory.recall(&own, "search_block", &query).unwrap();
        let id = block.header.block_id.to_string();
        assert!(found.text.contains(&id), "{id} is not found by step {n}: {}", found.text);
    }
    session.close(foldback::Close::Switch).unwrap();
    shared.close(foldback::Close::Switch).unwrap();
    println!("peer done");
}
