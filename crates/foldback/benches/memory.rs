//! What does a message cost on its way in, a prompt on its way out, and a search over a todo of 100,
//! 1,000 and 10,000 blocks? What does a process pay before its first hit, in a large todo and in a
//! small one beside it?
//!
//! The baseline of an append is one fsync (`strace -f -c -e trace=fsync,fdatasync` counts them).
//! Messages are made up by a fixed rule, so that runs compare.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use divan::Bencher;
use foldback::{Audit, AuditEvent, Memory, Options, Session};
use foldback_core::{Budget, Message, TodoId, ToolCall, ToolCallId};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;

fn main() {
    divan::main();
}

fn todo() -> TodoId {
    TodoId::new("bench").unwrap()
}

fn sentence(n: usize) -> String {
    const WORDS: [&str; 24] = [
        "harbor", "ledger", "lantern", "orchard", "glacier", "violin", "quarry", "saddle",
        "copper", "meadow", "signal", "anchor", "barrel", "candle", "dragon", "engine", "forest",
        "garden", "hammer", "island", "jacket", "kettle", "ladder", "magnet",
    ];
    let word = |k: usize| WORDS[(n * 31 + k * k * 17 + k * n) % WORDS.len()];
    let words: Vec<_> = (0..40).map(word).collect();
    format!("Entry {n} ref-{:x}: {}.", n * 2_654_435_761 % 1_000_003, words.join(" "))
}

fn message(n: usize) -> Message {
    if n.is_multiple_of(2) { Message::user(&sentence(n)) } else { Message::assistant(&sentence(n)) }
}

/// A store on disk with at least so many blocks, made once.
fn filled(blocks: u32) -> (&'static TempDir, Memory) {
    static STORES: OnceLock<Mutex<Vec<(u32, &'static TempDir)>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap();
    if let Some((_, dir)) = stores.iter().find(|(n, _)| *n == blocks) {
        return (dir, Memory::open(dir.path(), Options::default()).unwrap());
    }
    let dir: &'static TempDir = Box::leak(Box::new(tempfile::tempdir().unwrap()));
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    let mut session = memory.session(&todo()).unwrap();
    let mut n = 0;
    while session.blocks() < blocks {
        session.record_all((n..n + 256).map(message).collect()).unwrap();
        n += 256;
    }
    memory.maintenance().index().unwrap();
    stores.push((blocks, dir));
    (dir, memory)
}

/// One durable message of about 280 bytes.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn append(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    let session = Mutex::new(memory.session(&todo()).unwrap());
    let next = AtomicUsize::new(0);
    bencher
        .with_inputs(|| message(next.fetch_add(1, Ordering::Relaxed)))
        .bench_values(|message| session.lock().unwrap().record(message).unwrap());
}

/// The same in a transaction of 256.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn append_256(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    let session = Mutex::new(memory.session(&todo()).unwrap());
    let next = AtomicUsize::new(0);
    bencher
        .with_inputs(|| {
            let n = next.fetch_add(256, Ordering::Relaxed);
            (n..n + 256).map(message).collect::<Vec<_>>()
        })
        .bench_values(|messages| session.lock().unwrap().record_all(messages).unwrap());
}

/// A tool result of 40 KB, offloaded on arrival.
#[divan::bench(sample_count = 100, sample_size = 1)]
fn append_large_result(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::open(dir.path(), Options::default()).unwrap();
    let session = Mutex::new(memory.session(&todo()).unwrap());
    let next = AtomicUsize::new(0);
    bencher
        .with_inputs(|| {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let call = ToolCall::new(&format!("c{n}"), "read", "{}");
            session.lock().unwrap().record(Message::calls("", vec![call])).unwrap();
            let text: String = (0..140).map(|k| sentence(n * 1_000 + k) + "\n").collect();
            Message::tool_result(&ToolCallId::new(&format!("c{n}")), &text)
        })
        .bench_values(|message| session.lock().unwrap().record(message).unwrap());
}

#[divan::bench(args = [10, 10_000])]
fn prompt(bencher: Bencher<'_, '_>, blocks: u32) {
    let (_, memory) = filled(blocks);
    let session: Session = memory.session(&todo()).unwrap();
    bencher.bench_local(|| session.prompt(&Budget::default()));
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn search(bencher: Bencher<'_, '_>, blocks: u32) {
    let (_, memory) = filled(blocks);
    let queries: Vec<String> =
        (0..50).map(|n| sentence(n * 37 + 5).chars().take(60).collect()).collect();
    let request = |n: usize| foldback::SearchRequest::new(&queries[n % queries.len()]).k(10);
    memory.search(&todo(), &request(0)).unwrap();
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        memory.search(&todo(), &request(n)).unwrap()
    });
}

/// From nothing open to the first hit, files in the page cache.
#[divan::bench(args = [100, 10_000], sample_count = 20, sample_size = 1)]
fn cold_open_to_first_hit(bencher: Bencher<'_, '_>, blocks: u32) {
    let (dir, memory) = filled(blocks);
    drop(memory);
    bencher.bench_local(|| {
        let memory = Memory::open(dir.path(), Options::default()).unwrap();
        memory.search(&todo(), &foldback::SearchRequest::new("harbor ledger").k(1)).unwrap()
    });
}

/// The same for a todo of 100 blocks in a store that holds one of 10,000 too.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn cold_open_of_a_small_todo(bencher: Bencher<'_, '_>) {
    let (dir, memory) = filled(10_000);
    let small = TodoId::new("small").unwrap();
    let mut session = memory.session(&small).unwrap();
    let mut n = 0;
    while session.blocks() < 100 {
        session.record_all((n..n + 50).map(message).collect()).unwrap();
        n += 50;
    }
    drop(session);
    drop(memory);
    bencher.bench_local(|| {
        let memory = Memory::open(dir.path(), Options::default()).unwrap();
        memory.search(&small, &foldback::SearchRequest::new("harbor ledger").k(1)).unwrap()
    });
}

/// A line of the audit log, as a search writes it. Nothing is synced.
#[divan::bench]
fn audit_event(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().with_audit(Audit::new("bench"));
    let memory = Memory::open(dir.path(), options).unwrap();
    let (todo, given) = (todo(), ["b_bench_001", "b_bench_002", "b_bench_003"].map(str::to_owned));
    bencher.bench(|| {
        let event = AuditEvent {
            todo: Some(&todo),
            what: "search_block",
            query: Some("which port does the staging server use?"),
            given: &given,
            ..AuditEvent::default()
        };
        memory.audit().note(&event).unwrap();
    });
}
