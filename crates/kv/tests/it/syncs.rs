//! How often an engine asks the disk to make things durable, counted by strace.

use std::path::Path;
use std::process::Command;

use foldback_kv::{Batch, Engine, Expect, Key, Mode, Space, open};

use crate::folder::engines;
use foldback_testkit::alone;

const COMMITS: &str = "FOLDBACK_KV_TEST_COMMITS";
const WRITERS: &str = "FOLDBACK_KV_TEST_WRITERS";
const ENGINE: &str = "FOLDBACK_KV_TEST_ENGINE";
const STORE: &str = "FOLDBACK_KV_TEST_STORE";

/// Commits as a child; returns whether this process is a child.
fn commits_as_told() -> bool {
    let (Ok(commits), Ok(engine)) = (std::env::var(COMMITS), std::env::var(ENGINE)) else {
        return false;
    };
    let store = std::env::var(STORE).unwrap();
    let kv = open(Path::new(&store), engine.parse::<Engine>().unwrap(), Mode::ReadWrite).unwrap();
    let writers: u32 = std::env::var(WRITERS).unwrap().parse().unwrap();
    let commits: u64 = commits.parse().unwrap();
    let commit = |todo, head| {
        let key = |space, n| Key { space, todo, n };
        kv.commit(Batch {
            expect: Some(Expect { todo, head, next: head + 1 }),
            put: vec![
                (key(Space::Message, head), vec![head as u8; 600]),
                (key(Space::Session, 0), vec![head as u8; 2_000]),
            ],
            delete: Vec::new(),
        })
    };
    std::thread::scope(|scope| {
        for todo in 1..=writers {
            scope.spawn(move || (0..commits).for_each(|head| commit(todo, head).unwrap()));
        }
    });
    true
}

/// Counts the fsyncs and fdatasyncs of a process that creates a store, commits that often from each of that many
/// threads, and closes it; `None` if processes cannot be traced.
fn syncs(engine: Engine, writers: u64, commits: u64) -> Option<u64> {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let child = alone("syncs::p1_a_commit_is_one_sync");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o"])
        .arg(&trace)
        .arg(child.get_program())
        .args(child.get_args())
        .env(COMMITS, commits.to_string())
        .env(WRITERS, writers.to_string())
        .env(ENGINE, engine.name())
        .env(STORE, dir.path().join("store"))
        .output()
        .ok()?;
    let calls = std::fs::read_to_string(trace).ok()?;
    // A call that others interrupt takes two lines.
    let calls = calls.lines().filter(|line| !line.contains("resumed>")).count() as u64;
    (output.status.success() && calls > 0).then_some(calls)
}

/// P1: at most 1.1 syncs a durable commit, and at least one.
#[test]
fn p1_a_commit_is_one_sync() {
    if commits_as_told() {
        return;
    }
    for engine in engines() {
        let (Some(none), Some(many)) = (syncs(engine, 1, 0), syncs(engine, 1, 400)) else {
            eprintln!("SKIPPED: strace is not here, or may not trace");
            return;
        };
        let each = (many - none) as f64 / 400.0;
        eprintln!("{engine}: {each:.3} syncs a commit, {none} to make, open and close a store");
        assert!((1.0..=1.1).contains(&each), "{engine}: {each:.3} syncs a commit");
    }
}

/// P2: 64 threads that commit at once share their syncs: at most a tenth of one for each commit.
#[test]
fn p2_commits_at_once_share_their_syncs() {
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Sled) {
        let (Some(none), Some(many)) = (syncs(engine, 64, 0), syncs(engine, 64, 25)) else {
            eprintln!("SKIPPED: strace is not here, or may not trace");
            return;
        };
        let each = (many - none) as f64 / (64.0 * 25.0);
        eprintln!("{engine}: {each:.3} syncs a commit of 64 threads");
        assert!(each <= 0.1, "{engine}: {each:.3} syncs a commit");
    }
}
