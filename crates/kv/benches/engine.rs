//! Measures the cost of a durable commit on each engine, and that of reading and opening.
//!
//! The baseline of a commit is `fsync`: as many bytes, appended to a file and synced, which no durable
//! engine can avoid. A test counts the syncs (`cargo test -p foldback-kv p1_ -- --nocapture`), another one
//! measures the disk (`cargo test -p foldback-kv r7_ -- --nocapture`). How many syncs a commit takes when 64
//! threads commit at once (P2) is counted by `strace`, if it is installed: `cargo bench -p foldback-kv
//! --bench engine -- 64_writers`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot continue stops")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, OnceLock};

use divan::Bencher;
use divan::counter::ItemsCount;
use foldback_kv::{Batch, Delete, Engine, Expect, Key, Kv, Mode, Space, open};
use tempfile::TempDir;

const ENGINES: [Engine; 3] = [Engine::Sqlite, Engine::Redb, Engine::Sled];

/// How many messages the filled store has.
const MESSAGES: u64 = 10_000;
/// The bytes of a message's record.
const MESSAGE_BYTES: usize = 600;
/// The bytes of a session's saved state, written with every message.
const STATE_BYTES: usize = 2_000;

/// Threads that commit at once, each into a todo of its own, and the commits of each.
const WRITERS: u32 = 64;
const COMMITS: u64 = 50;

/// Set for a process whose syncs are counted: an engine, its folder, and the commits of each thread.
const TRACED: &str = "FOLDBACK_KV_BENCH_TRACED";

fn main() {
    if let Ok(traced) = std::env::var(TRACED) {
        let [engine, commits, dir] = traced.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let kv = open(Path::new(dir), engine.parse::<Engine>().unwrap(), Mode::ReadWrite).unwrap();
        return commit_beside_each_other(&*kv, commits.parse().unwrap());
    }
    let mut filters = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    if filters.next().is_none_or(|filter| "commit_by_64_writers".contains(&filter)) {
        for engine in ENGINES {
            match syncs(engine, COMMITS).zip(syncs(engine, 0)) {
                Some((all, opening)) => println!(
                    "{engine}: {:.3} syncs a commit when {WRITERS} threads commit at once",
                    (all - opening) as f64 / (u64::from(WRITERS) * COMMITS) as f64
                ),
                None => println!("{engine}: syncs not counted (no strace)"),
            }
        }
    }
    divan::main();
}

/// Counts the syncs of a process in which that many threads each commit that often.
fn syncs(engine: Engine, commits: u64) -> Option<u64> {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let store = dir.path().join("store");
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,msync", "-e", "signal=none", "-o"])
        .args([trace.as_path(), &std::env::current_exe().unwrap()])
        .env(TRACED, format!("{engine} {commits} {}", store.display()))
        .status();
    traced.ok().filter(ExitStatus::success)?;
    let calls = std::fs::read_to_string(trace).unwrap();
    // A call that another thread interrupts appears twice: begun and resumed.
    Some(calls.lines().filter(|line| !line.contains("resumed>")).count() as u64)
}

fn commit_beside_each_other(kv: &dyn Kv, commits: u64) {
    std::thread::scope(|scope| {
        for todo in 1..=WRITERS {
            scope.spawn(move || {
                (0..commits).for_each(|head| kv.commit(append(todo, head, 1)).unwrap());
            });
        }
    });
}

/// Bytes that no engine can compress, the same in every run.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// The batch that recording `count` messages at once commits.
fn append(todo: u32, head: u64, count: u64) -> Batch {
    let message = |n| (Key { space: Space::Message, todo, n }, bytes(n, MESSAGE_BYTES));
    let state = (Key { space: Space::Session, todo, n: 0 }, bytes(!head, STATE_BYTES));
    Batch {
        expect: Some(Expect { todo, head, next: head + count }),
        put: (head..head + count).map(message).chain([state]).collect(),
        delete: Vec::new(),
    }
}

/// A store of [`MESSAGES`] messages, made once for each engine.
fn filled(engine: Engine) -> &'static Path {
    static STORES: OnceLock<Mutex<Vec<(Engine, &'static TempDir)>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap();
    if let Some((_, dir)) = stores.iter().find(|(of, _)| *of == engine) {
        return dir.path();
    }
    let dir: &'static TempDir = Box::leak(Box::new(tempfile::tempdir().unwrap()));
    let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
    for head in (0..MESSAGES).step_by(10) {
        kv.commit(append(1, head, 10)).unwrap();
    }
    stores.push((engine, dir));
    dir.path()
}

fn filled_and_open(engine: Engine) -> Arc<dyn Kv> {
    open(filled(engine), engine, Mode::ReadWrite).unwrap()
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn fsync(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let mut file = File::create(dir.path().join("file")).unwrap();
    let value = bytes(1, MESSAGE_BYTES + STATE_BYTES);
    bencher.bench_local(|| {
        file.write_all(&value).unwrap();
        file.sync_data().unwrap();
    });
}

fn commit_to_new(bencher: Bencher<'_, '_>, engine: Engine, count: u64) {
    let dir = tempfile::tempdir().unwrap();
    commit(bencher, &*open(dir.path(), engine, Mode::ReadWrite).unwrap(), count);
}

fn commit(bencher: Bencher<'_, '_>, kv: &dyn Kv, count: u64) {
    let mut head = 0;
    bencher
        .counter(ItemsCount::new(count))
        .with_inputs(|| {
            let batch = append(1, head, count);
            head += count;
            batch
        })
        .bench_local_values(|batch| kv.commit(batch).unwrap());
}

/// One message and the session's state, durable.
#[divan::bench(args = ENGINES, sample_count = 200, sample_size = 1)]
fn commit_one(bencher: Bencher<'_, '_>, engine: Engine) {
    commit_to_new(bencher, engine, 1);
}

/// The same with 500 messages.
#[divan::bench(args = ENGINES, sample_count = 20, sample_size = 1)]
fn commit_500(bencher: Bencher<'_, '_>, engine: Engine) {
    commit_to_new(bencher, engine, 500);
}

/// One message and a session's state in each of 3,200 commits, durable, by 64 threads at once.
#[divan::bench(args = ENGINES, sample_count = 10, sample_size = 1)]
fn commit_by_64_writers(bencher: Bencher<'_, '_>, engine: Engine) {
    let store = || {
        let dir = tempfile::tempdir().unwrap();
        (open(dir.path(), engine, Mode::ReadWrite).unwrap(), dir)
    };
    let commits = u64::from(WRITERS) * COMMITS;
    bencher.counter(ItemsCount::new(commits)).with_inputs(store).bench_local_values(|(kv, dir)| {
        commit_beside_each_other(&*kv, COMMITS);
        (kv, dir)
    });
}

/// A payload of 48 KiB with its records; above 64 KiB it would be a file.
fn payload(n: u64) -> Batch {
    let record = |space, len| (Key { space, todo: 1, n }, bytes(n, len));
    let put = vec![
        record(Space::Payload, 120),
        record(Space::PayloadBytes, 48 << 10),
        record(Space::PayloadHash, 40),
    ];
    Batch { put, ..Batch::default() }
}

/// Putting such a payload aside, durable.
#[divan::bench(args = ENGINES, sample_count = 200, sample_size = 1)]
fn commit_payload(bencher: Bencher<'_, '_>, engine: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
    let mut numbers = 0..;
    bencher
        .with_inputs(|| payload(numbers.next().unwrap()))
        .bench_local_values(|batch| kv.commit(batch).unwrap());
}

/// One message and the session's state, in a store with 2,000 such payloads.
#[divan::bench(args = ENGINES, sample_count = 200, sample_size = 1)]
fn commit_one_beside_payloads(bencher: Bencher<'_, '_>, engine: Engine) {
    let dir = tempfile::tempdir().unwrap();
    let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
    (0..2_000).for_each(|n| kv.commit(payload(n)).unwrap());
    commit(bencher, &*kv, 1);
}

#[divan::bench(args = ENGINES)]
fn get(bencher: Bencher<'_, '_>, engine: Engine) {
    let kv = filled_and_open(engine);
    let mut n = 0;
    bencher.bench_local(|| {
        n = (n + 7_919) % MESSAGES;
        kv.get(Key { space: Space::Message, todo: 1, n }).unwrap().unwrap()
    });
}

#[divan::bench(args = ENGINES)]
fn scan_1000(bencher: Bencher<'_, '_>, engine: Engine) {
    let kv = filled_and_open(engine);
    let mut from = 0;
    bencher.counter(ItemsCount::new(1_000_u64)).bench_local(|| {
        from = (from + 1_237) % (MESSAGES - 1_000);
        kv.scan(Space::Message, 1, from..from + 1_000, 1_000).unwrap()
    });
}

/// Opening the filled store and reading its last message, without closing it.
#[divan::bench(args = ENGINES, sample_count = 20, sample_size = 1)]
fn open_10k(bencher: Bencher<'_, '_>, engine: Engine) {
    let dir = filled(engine);
    bencher.bench_local(|| {
        let kv = open(dir, engine, Mode::ReadWrite).unwrap();
        assert_eq!(kv.last(Space::Message, 1).unwrap().unwrap().0, MESSAGES - 1);
        kv
    });
}

/// The same of a store whose process was killed: a copy of the files of one in use.
#[divan::bench(args = ENGINES, sample_count = 20, sample_size = 1)]
fn open_10k_after_a_crash(bencher: Bencher<'_, '_>, engine: Engine) {
    let from = filled(engine);
    let kv = open(from, engine, Mode::ReadWrite).unwrap();
    (MESSAGES..MESSAGES + 100).for_each(|head| kv.commit(append(1, head, 1)).unwrap());
    let copy = || {
        let dir = tempfile::tempdir().unwrap();
        // By another process: closing a file of an open SQLite store here would drop its locks.
        let copied = Command::new("cp").arg("-r").arg(from.join(".")).arg(dir.path()).status();
        assert!(copied.unwrap().success());
        dir
    };
    bencher.with_inputs(copy).bench_local_values(|dir| {
        let kv = open(dir.path(), engine, Mode::ReadWrite).unwrap();
        assert_eq!(kv.last(Space::Message, 1).unwrap().unwrap().0, MESSAGES + 99);
        (kv, dir)
    });
    drop(kv);
    // As it was before.
    let kv = open(from, engine, Mode::ReadWrite).unwrap();
    let delete = vec![Delete { space: Space::Message, todo: 1, range: MESSAGES..Key::N_END }];
    let expect = Some(Expect { todo: 1, head: MESSAGES + 100, next: MESSAGES });
    kv.commit(Batch { expect, put: Vec::new(), delete }).unwrap();
}
