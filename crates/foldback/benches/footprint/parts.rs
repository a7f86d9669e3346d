//! The parts of the benchmark; each prints a few lines.

use crate::machine::{self, Times};
use crate::messages::{chat, large_result};
use foldback::core::{Budget, Embedder as _, Message, TodoId, TokenCounter as _};
use foldback::{EncryptionKey, Memory, Options, SearchRequest, Session};
use foldback_embedder::StaticEmbedder;
use foldback_testkit::Random;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Runs one part.
pub(crate) fn run(part: &str, arguments: &[String]) {
    match part {
        "append" => append(Options::default()),
        "append-encrypted" => append(encrypted()),
        "append-only" => append_only(count(arguments), Options::default()),
        "append-only-encrypted" => append_only(count(arguments), encrypted()),
        "bulk" => bulk(&Options::default()),
        "bulk-encrypted" => bulk(&encrypted()),
        "cold" => cold(),
        "cold-open" => cold_open(Path::new(arguments.first().unwrap())),
        "payload" => payload(),
        "prompt" => [10, 10_000].into_iter().for_each(prompt),
        "prompt-100k" => prompt(100_000),
        "embed" => embed(),
        other => unreachable!("no part {other}"),
    }
}

fn count(arguments: &[String]) -> usize {
    arguments.first().and_then(|n| n.parse().ok()).unwrap()
}

fn todo() -> TodoId {
    TodoId::new("bench").unwrap()
}

fn encrypted() -> Options {
    Options::default().with_encryption(EncryptionKey::new([7; 32]))
}

fn session(dir: &Path) -> (Memory, Session) {
    session_with(dir, Options::default())
}

fn session_with(dir: &Path, options: Options) -> (Memory, Session) {
    let memory = Memory::open(dir, options).unwrap();
    let session = memory.session(&todo()).unwrap();
    (memory, session)
}

/// P1: one durable message.
fn append(options: Options) {
    const COUNT: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let (_memory, mut session) = session_with(dir.path(), options);
    let mut messages = chat(COUNT + 100).into_iter();
    messages.by_ref().take(100).for_each(|message| drop(session.record(message).unwrap()));
    let before = machine::written();
    let times = Times::of(COUNT, |_| drop(session.record(messages.next().unwrap()).unwrap()));
    let bytes = (machine::written() - before) / COUNT as u64;
    println!("  append, searchable at once  {times}; {bytes} bytes written each");
    // The cost of opening and closing is the same in both.
    let (few, many) =
        (machine::syncs("append-only", &["100"]), machine::syncs("append-only", &["1100"]));
    match few.zip(many) {
        Some((few, many)) => {
            println!("  syncs of an append          {:.3}", (many - few) as f64 / 1_000.0);
        }
        None => println!("  syncs of an append          not counted (no strace)"),
    }
}

fn append_only(count: usize, options: Options) {
    let dir = tempfile::tempdir().unwrap();
    let (_memory, mut session) = session_with(dir.path(), options);
    chat(count).into_iter().for_each(|message| drop(session.record(message).unwrap()));
}

/// P3: many messages, one transaction for every 256.
fn bulk(options: &Options) {
    for (name, count) in [("short", 20_000), ("420 bytes", 20_000)] {
        let dir = tempfile::tempdir().unwrap();
        let (memory, mut session) = session_with(dir.path(), options.clone());
        let messages = match name {
            "short" => (0..count).map(short).collect(),
            _ => chat(count),
        };
        let start = Instant::now();
        for batch in messages.chunks(256) {
            session.record_all(batch.to_vec()).unwrap();
        }
        let took = start.elapsed().as_secs_f64();
        let start = Instant::now();
        memory.maintenance().index().unwrap();
        let indexed = start.elapsed().as_secs_f64();
        println!(
            "  {name:<10} {:>7.0} messages/s durable and searchable, {} blocks; {indexed:.2} s later \
             all are in the index",
            count as f64 / took,
            session.blocks(),
        );
    }
}

fn short(n: usize) -> Message {
    if n.is_multiple_of(2) {
        Message::user(&format!("What is the price of lamp L{n}?"))
    } else {
        Message::assistant(&format!("Lamp L{n} costs {} EUR.", n % 90))
    }
}

/// Closes this many blocks in a new todo; returns the bytes of their messages.
fn fill(session: &mut Session, blocks: u32, text: usize) -> u64 {
    let mut random = Random::new(9);
    let mut raw = 0;
    while session.blocks() < blocks {
        let from = session.len() as usize;
        let message = |n: usize| {
            let text = random.text(text);
            raw += text.len() as u64;
            if n.is_multiple_of(2) { Message::user(&text) } else { Message::assistant(&text) }
        };
        let batch = (from..from + 256).map(message).collect();
        session.record_all(batch).unwrap();
    }
    raw
}

/// P7, P8, P9: a todo of 10,000 blocks opened anew.
fn cold() {
    let dir = tempfile::tempdir().unwrap();
    let (memory, mut session) = session(dir.path());
    let text = fill(&mut session, 10_000, 420);
    memory.maintenance().index().unwrap();
    let messages = session.len();
    let dim = StaticEmbedder::new().dim() as u64;
    drop(session);
    memory.maintenance().compact().unwrap();
    drop(memory);
    let raw = text + messages * dim * 4;
    let disk = machine::size(dir.path());
    println!(
        "  10,000 blocks of {messages} messages: {:.1} MB on disk, {:.2} of text and f32 vectors \
         ({:.1} MB)",
        disk as f64 / 1e6,
        disk as f64 / raw as f64,
        raw as f64 / 1e6
    );
    for _ in 0..5 {
        machine::evict(dir.path());
        let path = dir.path().to_str().unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--part", "cold-open", path])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

fn cold_open(dir: &Path) {
    // The embedder's table is part of the program and not of the measurement.
    black_box(StaticEmbedder::new().embed(&["warm"]).unwrap());
    let before = machine::resident();
    let start = Instant::now();
    let memory = Memory::open(dir, Options::default()).unwrap();
    let hits = memory.search(&todo(), &SearchRequest::new("gazo besu ritemo").k(3)).unwrap().hits;
    let took = start.elapsed();
    assert!(!hits.is_empty());
    let mut random = Random::new(77);
    for _ in 0..200 {
        let query = random.text(40);
        black_box(memory.search(&todo(), &SearchRequest::new(&query).k(10)).unwrap());
    }
    let after = machine::resident();
    let mega = |after: u64, before: u64| after.saturating_sub(before) as f64 / 1e6;
    println!(
        "  open to first hit, files evicted: {took:.1?}; after 200 searches {:.1} MB of own memory and \
         {:.1} MB of mapped files",
        mega(after.0, before.0),
        mega(after.1, before.1)
    );
}

/// P10: a large result recorded, and its payload read back.
fn payload() {
    const COUNT: usize = 50;
    let dir = tempfile::tempdir().unwrap();
    let (memory, mut session) = session(dir.path());
    let todo = memory.find(&todo()).unwrap();
    for (name, bytes, first) in [("40 KB", 40_000, 1), ("1 MB", 1_000_000, 1 + COUNT)] {
        let inputs: Vec<_> = (0..COUNT).map(|n| large_result(n + bytes, bytes)).collect();
        let mut inputs = inputs.into_iter();
        let times = Times::of(COUNT, |_| {
            session.record_all(inputs.next().unwrap().to_vec()).unwrap();
        });
        println!("  record a result of {name:<7}  {times}");
        let times = Times::of(COUNT, |n| {
            let bytes = memory.payloads().get(&todo, (first + n) as u64).unwrap();
            black_box(bytes);
        });
        println!("  read it back, verified      {times}");
    }
}

/// P11: the prompt of the next call.
fn prompt(blocks: u32) {
    let dir = tempfile::tempdir().unwrap();
    let (_memory, mut session) = session(dir.path());
    fill(&mut session, blocks, 60);
    let times = Times::of(10_000, |_| drop(black_box(session.prompt(&Budget::default()))));
    println!("  prompt at {blocks:>7} blocks       {times}");
    let mut messages = chat(400).into_iter();
    let first = (0..200).map(|_| {
        session.record(messages.next().unwrap()).unwrap();
        let start = Instant::now();
        drop(black_box(session.prompt(&Budget::default())));
        start.elapsed()
    });
    println!("  the first behind a message     {}", Times::new(first.collect()));
}

/// P12: a block of 420 bytes embedded and its tokens counted.
fn embed() {
    let embedder = StaticEmbedder::new();
    let texts: Vec<String> = {
        let mut random = Random::new(5);
        (0..5_000).map(|_| random.text(420)).collect()
    };
    black_box(embedder.embed(&["warm"]).unwrap());
    let times = Times::of(texts.len(), |n| {
        let text = &texts[n];
        black_box(embedder.embed(&embedder.windows(text, 8)).unwrap());
        black_box(foldback::core::Estimate.count(text));
    });
    println!("  embed and count 420 bytes    {times}");
}
