//! The resources and results of a store of 100 to 100,000 blocks: one table, with counts beside
//! times.
//!
//! ```text
//! cargo bench -p foldback-blockstore --bench footprint             the table
//! cargo bench -p foldback-blockstore --bench footprint -- 10000    one of its steps
//! cargo bench -p foldback-blockstore --bench footprint -- graph    scan and graph, side by side
//! ```
//!
//! - bulk: blocks a second, vectors given, 500 in a transaction: durable and searchable.
//! - search: words and meaning together, the median and the 99th of 100 searches; and the mean of
//!   the processor's time, which says more on a machine that has other things to do.
//! - recall: of the ten best by meaning alone, against all vectors as the store keeps them.
//! - cold: from nothing open to the first hit, in a process of its own, after `dd iflag=nocache
//!   count=0` has taken the store's files out of the page cache; the median of five.
//! - memory: what that process grows by until it has searched 50 times; its own memory, and pages
//!   of mapped files, which the system can take back.
//! - disk: all files of the store and its index, against texts and vectors in single precision.
//! - adds: the median search after 200 and after 10,000 blocks more, each in a transaction of its
//!   own, with upkeep after every 256; against a store of as many blocks that was indexed at once.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

mod workload;

use foldback_blockstore::{IndexConfig, SearchRequest};
use foldback_core::SeqNo;
use foldback_testkit::Random;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use workload::{DIM, Given, Place, question, vector};

/// How many vectors two blocks have together: one each, and as in conversations.
const SHAPES: [usize; 2] = [2, 7];

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["cold", dir, shape] => cold(Path::new(dir), shape.parse().unwrap()),
        ["graph"] => graph(),
        [] => table(&[100, 1_000, 10_000, 100_000]),
        rungs => table(&rungs.iter().map(|rung| rung.parse().unwrap()).collect::<Vec<_>>()),
    }
}

fn table(rungs: &[u32]) {
    println!(
        "{:>7} {:>7}  {:>7}  {:>8} {:>8} {:>8}  {:>6}  {:>8}  {:>8} {:>8}  {:>6} {:>6} {:>6}",
        "blocks",
        "vectors",
        "bulk /s",
        "p50 ms",
        "p99 ms",
        "cpu ms",
        "recall",
        "cold ms",
        "own MB",
        "file MB",
        "store",
        "index",
        "ratio"
    );
    for blocks in rungs {
        for shape in SHAPES {
            rung(*blocks, shape);
        }
    }
    if rungs.len() > 1 {
        println!("\n{:>7}  {:>8}  {:>8}  {:>8}", "blocks", "adds", "p50 ms", "at once");
        single_adds(10_000, 200);
        single_adds(1_000, 10_000);
    }
}

fn rung(blocks: u32, shape: usize) {
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::open(dir.path(), IndexConfig::default(), shape);
    place.fill(blocks, 500);
    let Times { p50, p99, processor } = times(&place);
    let recall = recall(&place, &stored(&place), 40);
    let vectors = place.block_of.len();
    let raw = place.text_bytes + vectors * DIM * 4;
    let bulk = f64::from(blocks) / place.committing.as_secs_f64();
    drop(place);
    let opened: Vec<Opened> = (0..5).map(|_| open_cold(dir.path(), shape)).collect();
    let middle = |of: fn(&Opened) -> f64| {
        let mut all: Vec<f64> = opened.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let store = bytes_of(&dir.path().join("kv"));
    let index = bytes_of(&dir.path().join("index"));
    println!(
        "{blocks:>7} {vectors:>7}  {bulk:>7.0}  {p50:>8.3} {p99:>8.3} {processor:>8.3}  {recall:>6.4}  {:>8.2}  {:>8.1} {:>8.1}  {:>6.2} {:>6.2} {:>6.2}",
        middle(|opened| opened.first_hit),
        middle(|opened| opened.own),
        middle(|opened| opened.mapped),
        store as f64 / raw as f64,
        index as f64 / raw as f64,
        (store + index) as f64 / raw as f64,
    );
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// How long 100 searches took.
struct Times {
    p50: f64,
    p99: f64,
    /// The mean of the processor's time.
    processor: f64,
}

fn times(place: &Place) -> Times {
    let mut random = Random::new(99);
    place.search(&question(&mut random));
    let questions: Vec<_> = (0..100).map(|_| question(&mut random)).collect();
    let before = processor();
    let mut times: Vec<Duration> = questions
        .iter()
        .map(|question| {
            let begin = Instant::now();
            std::hint::black_box(place.search(question));
            begin.elapsed()
        })
        .collect();
    let processor = (processor() - before) / 100.0;
    times.sort_unstable();
    Times { p50: ms(times[50]), p99: ms(times[98]), processor }
}

/// How many milliseconds of a processor this thread has had.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Every vector as the store keeps it, in half precision: row after row.
fn stored(place: &Place) -> Vec<f32> {
    let mut rows = Vec::with_capacity(place.block_of.len() * DIM);
    for seq in 0..place.block_of.len() as u64 {
        let stored = place.store.vectors(&place.todo, SeqNo(seq)).unwrap().unwrap();
        rows.extend_from_slice(stored.vectors.row(0).unwrap());
    }
    rows
}

/// How many of the ten best blocks by meaning are found, of those that all vectors give.
fn recall(place: &Place, vectors: &[f32], questions: usize) -> f64 {
    let searcher = place.searcher();
    let mut random = Random::new(5);
    let (mut same, mut all) = (0, 0);
    for _ in 0..questions {
        let vector = vector(&mut random);
        let mut best: Vec<(f32, u32)> = vectors
            .chunks_exact(DIM)
            .zip(&place.block_of)
            .map(|(row, n)| (row.iter().zip(&vector).map(|(a, b)| a * b).sum(), *n))
            .collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut exact: Vec<u32> = Vec::new();
        for (_, n) in best {
            if !exact.contains(&n) {
                exact.push(n);
            }
            if exact.len() == 10 {
                break;
            }
        }
        let request = SearchRequest::new("").k(10).lexical_weight(0.0).vector(&Given, &vector);
        let found = searcher.search(&request).unwrap();
        let found: Vec<u32> = found.iter().map(|hit| hit.block.header.block_id.n()).collect();
        same += exact.iter().filter(|n| found.contains(n)).count();
        all += exact.len();
    }
    same as f64 / all as f64
}

/// The report of a process that opened a store.
struct Opened {
    first_hit: f64,
    own: f64,
    mapped: f64,
}

fn open_cold(dir: &Path, shape: usize) -> Opened {
    for file in files(dir) {
        std::fs::File::open(&file).unwrap().sync_all().unwrap();
        let input = format!("if={}", file.display());
        let dropped = Command::new("dd")
            .args([input.as_str(), "iflag=nocache", "count=0", "status=none"])
            .status();
        assert!(dropped.unwrap().success(), "dd of coreutils takes files out of the page cache");
    }
    let program = std::env::current_exe().unwrap();
    let shape = shape.to_string();
    let output = Command::new(program).arg("cold").arg(dir).arg(shape).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
    Opened { first_hit: numbers[0], own: numbers[1], mapped: numbers[2] }
}

/// The process that [`open_cold`] starts.
fn cold(dir: &Path, shape: usize) {
    let mut random = Random::new(99);
    let before = resident();
    let first = question(&mut random);
    let begin = Instant::now();
    let place = Place::open(dir, IndexConfig::default(), shape);
    let hits = place.search(&first);
    let first_hit = ms(begin.elapsed());
    assert!(!hits.is_empty());
    for _ in 0..50 {
        place.search(&question(&mut random));
    }
    let after = resident();
    println!("{first_hit} {} {}", after.0 - before.0, after.1 - before.1);
}

/// The process's own memory and its mapped pages, in megabytes.
fn resident() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    };
    (of("RssAnon:"), of("RssFile:"))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A small todo has no index.
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn bytes_of(dir: &Path) -> u64 {
    files(dir).iter().map(|file| file.metadata().unwrap().len()).sum()
}

fn single_adds(blocks: u32, adds: u32) {
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::open(dir.path(), IndexConfig::default(), 2);
    place.fill(blocks, 500);
    for n in 1..=adds {
        place.add(1);
        if n.is_multiple_of(256) {
            place.store.maintain(&place.todo).unwrap();
        }
    }
    let grown = times(&place).p50;
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::open(dir.path(), IndexConfig::default(), 2);
    place.fill(blocks + adds, 500);
    let clean = times(&place).p50;
    println!("{blocks:>7}  {adds:>8}  {grown:>8.3}  {clean:>8.3}");
}

/// The time of a search, and its recall, when vectors are scanned and when a graph proposes them.
fn graph() {
    println!(
        "{:>8}  {:>8} {:>6}  {:>8} {:>6}  {:>8} {:>8}",
        "vectors", "scan ms", "recall", "graph ms", "recall", "build s", "load ms"
    );
    for blocks in [20_000, 100_000, 250_000] {
        let dir = tempfile::tempdir().unwrap();
        let scan = IndexConfig::default().with_hnsw_after_vectors(usize::MAX);
        let mut place = Place::open(dir.path(), scan, 2);
        place.fill(blocks, 500);
        let vectors = stored(&place);
        let (scanned, exact) = (times(&place).p50, recall(&place, &vectors, 40));
        let block_of = std::mem::take(&mut place.block_of);
        drop(place);
        let config = IndexConfig::default().with_hnsw_after_vectors(0);
        let place = Place::open(dir.path(), config.clone(), 2);
        let begin = Instant::now();
        assert!(place.store.build_graph(&place.todo).unwrap().graph_built);
        let build = begin.elapsed();
        drop(place);
        let mut place = Place::open(dir.path(), config, 2);
        place.block_of = block_of;
        let searcher = place.searcher();
        let begin = Instant::now();
        assert_eq!(searcher.load_graph(), blocks as usize);
        let load = begin.elapsed();
        let (proposed, found) = (times(&place).p50, recall(&place, &vectors, 40));
        println!(
            "{blocks:>8}  {scanned:>8.3} {exact:>6.4}  {proposed:>8.3} {found:>6.4}  {:>8.1} {:>8.0}",
            build.as_secs_f64(),
            ms(load)
        );
    }
}
