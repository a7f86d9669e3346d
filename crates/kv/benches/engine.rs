//! What does a durable commit cost on each engine, what do reading and opening cost?
//!
//! The baseline of a commit is `fsync`: as many bytes, written behind a file's end and synced, which
//! is what no durable engine does without. A test counts the syncs
//! (`cargo test -p foldback-kv p1_ -- --nocapture`), another one measures the disk
//! (`cargo test -p foldback-kv r7_ -- --nocapture`).

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
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

fn main() {
    divan::main();
}

/// Bytes that no engine can make smaller, and the same in every run.
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

fn message(n: u64) -> (Key, Vec<u8>) {
    (Key { space: Space::Message, todo: 1, n }, bytes(n, MESSAGE_BYTES))
}

/// What recording `count` messages at once commits.
fn append(head: u64, count: u64) -> Batch {
    let state = (Key { space: Space::Session, todo: 1, n: 0 }, bytes(!head, STATE_BYTES));
    Batch {
        expect: Some(Expect { todo: 1, head, next: head + count }),
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
        kv.commit(append(head, 10)).unwrap();
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
            let batch = append(head, count);
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

/// A payload of 48 KiB, with what is kept of it; larger than 64 KiB it would be a file.
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

/// One message and the session's state, beside 2,000 such payloads.
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

/// Opening the filled store and reading its last message; closing is not in it.
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
    (MESSAGES..MESSAGES + 100).for_each(|head| kv.commit(append(head, 1)).unwrap());
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
