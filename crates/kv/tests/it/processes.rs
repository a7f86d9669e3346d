//! Several processes on one SQLite store, and one after the other on a store of redb and of sled. The children run
//! the first of these tests; the environment says what they do in it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use foldback_kv::{
    Batch, EncryptionKey, Engine, Error, Expect, Key, Kv, Mode, Space, open, open_with,
};
use foldback_testkit::alone;

const ROLE: &str = "FOLDBACK_KV_TEST_ROLE";
const STORE: &str = "FOLDBACK_KV_TEST_STORE";

fn child(role: &str, store: &Path) -> Child {
    alone("processes::r10_four_processes_write_one_todo_and_two_read_it")
        .env(ROLE, role)
        .env(STORE, store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A child's output on the lines that begin with `>`.
fn said(child: Child) -> Vec<String> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.strip_prefix('>')).map(str::to_owned).collect()
}

/// Plays a child's role; returns whether this process is a child.
fn plays_a_role() -> bool {
    let (Ok(role), Ok(store)) = (std::env::var(ROLE), std::env::var(STORE)) else { return false };
    let store = Path::new(&store);
    // The harness writes its own words before ours on the line.
    println!();
    let (role, rest) = role.split_once(' ').unwrap_or((&role, ""));
    match role {
        "create" | "create-sealed" => {
            while !store.with_extension("go").exists() {
                std::hint::spin_loop();
            }
            let key = (role == "create-sealed").then(key);
            let kv = open_with(store, Engine::Sqlite, Mode::ReadWrite, key.as_ref()).unwrap();
            append(&*kv, 1, rest.as_bytes());
        }
        "append" => {
            let (who, count) = rest.split_once(' ').unwrap();
            let kv = open(store, Engine::Sqlite, Mode::ReadWrite).unwrap();
            for i in 0..count.parse::<u64>().unwrap() {
                append(&*kv, 1, format!("{who} {i}").as_bytes());
            }
        }
        "forever" | "forever-sealed" => {
            let key = (role == "forever-sealed").then(key);
            let kv = open_with(store, Engine::Sqlite, Mode::ReadWrite, key.as_ref()).unwrap();
            loop {
                let seq = append(&*kv, 1, b"x");
                println!(">{seq}");
            }
        }
        "churn" => {
            let kv = open(store, rest.parse::<Engine>().unwrap(), Mode::ReadWrite).unwrap();
            loop {
                // Some of the values are so large that sled gives them files of their own.
                let value = churned(kv.head(1).unwrap());
                let seq = append(&*kv, 1, &value);
                println!(">{seq}");
                if seq % 9 == 8 {
                    kv.compact().unwrap();
                }
            }
        }
        "read" => {
            let kv = open(store, Engine::Sqlite, Mode::ReadOnly).unwrap();
            // Each counter is asked before the head it goes with, so a commit that shows in a later
            // head came after it.
            let mut seen = kv.changed().unwrap();
            let mut last = kv.head(1).unwrap();
            while last < rest.parse().unwrap() {
                let asked = kv.changed().unwrap();
                let head = kv.head(1).unwrap();
                assert!(head >= last, "a reader went back in time");
                if head > last {
                    assert_ne!(kv.changed().unwrap(), seen, "the counter missed a commit");
                    let found = kv.scan(Space::Message, 1, last..head, 1000).unwrap();
                    assert_eq!(found.len() as u64, head - last, "a gap");
                }
                (seen, last) = (asked, head);
            }
        }
        other => panic!("{other:?} is no role"),
    }
    true
}

/// Appends to a todo, and retries whenever others come first. Returns its number.
fn append(kv: &dyn Kv, todo: u32, value: &[u8]) -> u64 {
    loop {
        let head = kv.head(todo).unwrap();
        let put = vec![(Key { space: Space::Message, todo, n: head }, value.to_vec())];
        let expect = Some(Expect { todo, head, next: head + 1 });
        match kv.commit(Batch { expect, put, delete: Vec::new() }) {
            Ok(()) => return head,
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn r10_four_processes_write_one_todo_and_two_read_it() {
    if plays_a_role() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let kv = open(&store, Engine::Sqlite, Mode::ReadWrite).unwrap();
    let readers = [child("read 400", &store), child("read 400", &store)];
    let writers: Vec<Child> =
        (0..4).map(|who| child(&format!("append {who} 100"), &store)).collect();
    for child in writers.into_iter().chain(readers) {
        said(child);
    }
    assert_eq!(kv.head(1).unwrap(), 400);
    let all = kv.scan(Space::Message, 1, 0..1000, 1000).unwrap();
    assert!(all.iter().zip(0..).all(|((n, _), expected)| *n == expected));
    for who in 0..4 {
        let own: Vec<String> = all
            .iter()
            .map(|(_, value)| String::from_utf8(value.clone()).unwrap())
            .filter(|text| text.starts_with(&format!("{who} ")))
            .collect();
        assert_eq!(own, (0..100).map(|i| format!("{who} {i}")).collect::<Vec<_>>());
    }
    assert_eq!(kv.check().unwrap(), []);
}

#[test]
fn eight_processes_create_one_store() {
    for round in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let children: Vec<Child> =
            (0..8).map(|who| child(&format!("create {who}"), &store)).collect();
        std::thread::sleep(Duration::from_millis(100));
        std::fs::write(store.with_extension("go"), "").unwrap();
        children.into_iter().for_each(|child| drop(said(child)));
        let kv = open(&store, Engine::Sqlite, Mode::ReadOnly).unwrap();
        assert_eq!(kv.head(1).unwrap(), 8, "round {round}");
    }
}

fn key() -> EncryptionKey {
    EncryptionKey::new([7; 32])
}

/// S14: as many processes make and open an encrypted store at once.
#[test]
fn s14_eight_processes_create_one_encrypted_store() {
    for round in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let children: Vec<Child> =
            (0..8).map(|who| child(&format!("create-sealed {who}"), &store)).collect();
        std::thread::sleep(Duration::from_millis(100));
        std::fs::write(store.with_extension("go"), "").unwrap();
        children.into_iter().for_each(|child| drop(said(child)));
        let kv = open_with(&store, Engine::Sqlite, Mode::ReadOnly, Some(&key())).unwrap();
        assert_eq!(kv.head(1).unwrap(), 8, "round {round}");
        assert_eq!(kv.check().unwrap(), []);
    }
}

/// S14: a writer that is killed at any time, even while it creates the store, loses nothing, and every ledger is right.
#[test]
fn s14_a_killed_writer_of_an_encrypted_store_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for cycle in 0..16_u64 {
        // Every fourth store is a new one.
        let store = dir.path().join(format!("store-{}", cycle / 4));
        let mut child = child("forever-sealed", &store);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let enough = if cycle % 4 == 0 { 0 } else { 3 + cycle % 7 };
        let seqs = |line: std::io::Result<String>| line.ok()?.strip_prefix('>')?.parse().ok();
        let mut acknowledged: Option<u64> =
            lines.by_ref().filter_map(seqs).take(enough as usize).last();
        std::thread::sleep(Duration::from_micros(cycle * 1_331 % 9_000));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = lines.filter_map(seqs).last().or(acknowledged);
        let kv = open_with(&store, Engine::Sqlite, Mode::ReadWrite, Some(&key())).unwrap();
        let head = kv.head(1).unwrap();
        assert!(acknowledged.is_none_or(|seq| head > seq), "cycle {cycle}: {head}");
        assert_eq!(kv.check().unwrap(), [], "cycle {cycle}");
    }
}

/// S14: a store whose folder does not say that it is encrypted still opens only with its key.
#[test]
fn s14_a_store_that_lost_its_mark_opens_with_its_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    for engine in [Engine::Sqlite, Engine::Redb] {
        let store = dir.path().join(engine.name());
        let open = |mode, key: Option<&EncryptionKey>| open_with(&store, engine, mode, key);
        append(&*open(Mode::ReadWrite, Some(&key())).unwrap(), 1, b"one");
        let format = store.join("FORMAT");
        let text = std::fs::read_to_string(&format).unwrap();
        let plain = text.replace("version 5", "version 4").replace("\nencrypted", "");
        assert_ne!(plain, text);
        std::fs::write(&format, plain).unwrap();
        for mode in [Mode::ReadOnly, Mode::ReadWrite] {
            assert!(matches!(open(mode, None), Err(Error::NoKey { .. })));
        }
        assert_eq!(open(Mode::ReadWrite, Some(&key())).unwrap().head(1).unwrap(), 1);
        assert_eq!(std::fs::read_to_string(&format).unwrap(), text, "it says so again");
    }
}

#[test]
fn r1_r10_a_killed_writer_loses_nothing_and_blocks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let kv = open(&store, Engine::Sqlite, Mode::ReadWrite).unwrap();
    for cycle in 0..10_u64 {
        let mut child = child("forever", &store);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = None;
        let enough = 3 + (cycle * 7) % 20;
        let mut count = 0;
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(seq) = line.strip_prefix('>') {
                acknowledged = seq.parse::<u64>().ok();
                count += 1;
                if count == enough {
                    break;
                }
            }
        }
        std::thread::sleep(Duration::from_micros(cycle * 331 % 4_000));
        child.kill().unwrap();
        child.wait().unwrap();
        // Its output between our last read and its end counts as well.
        for line in lines.map_while(Result::ok) {
            acknowledged = line.strip_prefix('>').and_then(|seq| seq.parse().ok()).or(acknowledged);
        }
        // A lock that was left would be an error.
        let mine = append(&*kv, 1, b"mine");
        assert!(mine > acknowledged.unwrap(), "an acknowledged commit is gone");
    }
    let head = kv.head(1).unwrap();
    assert_eq!(kv.scan(Space::Message, 1, 0..head, usize::MAX).unwrap().len() as u64, head);
    assert_eq!(kv.check().unwrap(), []);
}

/// A value that depends on its number: small, medium or very large.
fn churned(n: u64) -> Vec<u8> {
    let size = [40, 3_000, 40, 200_000][n as usize % 4];
    (0..size).map(|i| (i + n * 31) as u8).collect()
}

#[cfg(feature = "redb")]
#[test]
fn r1_a_killed_redb_writer_loses_nothing_and_blocks_nobody() {
    kill_writers(Engine::Redb);
}

#[cfg(feature = "sled")]
#[test]
fn r1_a_killed_sled_writer_loses_nothing_and_blocks_nobody() {
    kill_writers(Engine::Sled);
}

#[cfg(any(feature = "redb", feature = "sled"))]
fn kill_writers(engine: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut acknowledged = 0;
    for cycle in 0..30_u64 {
        let mut child = child(&format!("churn {engine}"), &store);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = |line: String| line.strip_prefix('>').and_then(|seq| seq.parse::<u64>().ok());
        let enough = acknowledged + 1 + cycle % 10;
        while acknowledged < enough {
            let line = lines.next().unwrap().unwrap();
            acknowledged = said(line).map_or(acknowledged, |seq| seq + 1);
        }
        std::thread::sleep(Duration::from_micros(cycle * 1_331 % 12_000));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged =
            lines.map_while(Result::ok).filter_map(said).last().map_or(acknowledged, |seq| seq + 1);

        // In turn, so that a reader after a kill does not find a store that a writer has already repaired.
        let mode = if cycle % 2 == 0 { Mode::ReadOnly } else { Mode::ReadWrite };
        // A lock that was left would be an error.
        let kv = open(&store, engine, mode).unwrap();
        let head = kv.head(1).unwrap();
        assert!(head >= acknowledged, "cycle {cycle}: {acknowledged} acknowledged, {head} held");
        let all = kv.scan(Space::Message, 1, 0..Key::N_END, usize::MAX).unwrap();
        assert_eq!(all.len() as u64, head, "cycle {cycle}");
        assert!(all.iter().all(|(n, value)| *value == churned(*n)), "cycle {cycle}");
        assert_eq!(kv.check().unwrap(), [], "cycle {cycle}");
    }
}

/// A store whose writer was killed in its work, and how many commits were acknowledged.
pub(crate) fn churned_and_killed(engine: Engine, store: &Path) -> u64 {
    let mut child = child(&format!("churn {engine}"), store);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = lines.filter_map(|line| line.strip_prefix('>')?.parse::<u64>().ok());
    let acknowledged = said.nth(13).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    said.last().unwrap_or(acknowledged) + 1
}
