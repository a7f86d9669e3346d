//! How long is a search, at 100, 1,000, 10,000 and 100,000 blocks, vectors given?
//!
//! The goals are 0.15, 0.3, 0.8 and 5 ms for words and meaning together (median, a quiet machine).
//! Blocks have one vector each, or 3.5 as `conversation`. Measured in memory, and from 1,000 blocks
//! on in the index on disk as well; also the first search after a block has closed, the first one
//! in a store that was just opened, and the rebuilding of the index from the truth alone. The goal
//! for the last is 5,000 blocks a second and core.
//!
//! The space that a store takes, and how far the slowest search is from the others: `footprint.rs`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

mod workload;

use divan::Bencher;
use foldback_blockstore::{IndexConfig, SearchRequest};
use foldback_testkit::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;
use workload::{Place, question};

fn main() {
    divan::main();
}

/// Two blocks have this many vectors, if each has one, and as in conversations.
const ONE: usize = 2;
const CONVERSATION: usize = 7;

/// A folder with a store of this many blocks, created once.
fn filled(blocks: u32, vectors_of_two: usize) -> PathBuf {
    static STORES: OnceLock<Mutex<BTreeMap<(u32, usize), TempDir>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap();
    let dir = stores.entry((blocks, vectors_of_two)).or_insert_with(|| {
        let dir = tempfile::tempdir().unwrap();
        Place::open(dir.path(), IndexConfig::default(), vectors_of_two).fill(blocks, 500);
        dir
    });
    dir.path().to_owned()
}

fn open(blocks: u32, vectors_of_two: usize, config: IndexConfig) -> Place {
    Place::open(&filled(blocks, vectors_of_two), config, vectors_of_two)
}

fn never() -> IndexConfig {
    IndexConfig::default().with_index_after_blocks(u32::MAX)
}

fn run(bencher: Bencher<'_, '_>, place: &Place) {
    let mut random = Random::new(99);
    place.search(&question(&mut random));
    bencher
        .with_inputs(|| question(&mut random))
        .bench_local_refs(|question| place.search(question));
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn in_memory(bencher: Bencher<'_, '_>, blocks: u32) {
    run(bencher, &open(blocks, ONE, never()));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn on_disk(bencher: Bencher<'_, '_>, blocks: u32) {
    run(bencher, &open(blocks, ONE, IndexConfig::default()));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn conversation_on_disk(bencher: Bencher<'_, '_>, blocks: u32) {
    run(bencher, &open(blocks, CONVERSATION, IndexConfig::default()));
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn by_words_on_disk(bencher: Bencher<'_, '_>, blocks: u32) {
    let place = open(blocks, ONE, IndexConfig::default());
    let mut random = Random::new(99);
    place.search(&question(&mut random));
    bencher.with_inputs(|| random.words(6)).bench_local_refs(|text| {
        place.searcher().search(&SearchRequest::new(text).k(10)).unwrap().len()
    });
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 30)]
fn after_a_block_has_closed(bencher: Bencher<'_, '_>, blocks: u32) {
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place::open(dir.path(), IndexConfig::default(), ONE);
    place.fill(blocks, 500);
    let place = RefCell::new(place);
    let mut random = Random::new(99);
    bencher
        .with_inputs(|| {
            place.borrow_mut().add(1);
            question(&mut random)
        })
        .bench_local_refs(|question| place.borrow().search(question));
}

#[divan::bench(args = [100, 1_000, 10_000, 100_000], sample_count = 20)]
fn cold_open(bencher: Bencher<'_, '_>, blocks: u32) {
    filled(blocks, ONE);
    let mut random = Random::new(99);
    bencher
        .with_inputs(|| question(&mut random))
        .bench_local_refs(|question| open(blocks, ONE, IndexConfig::default()).search(question));
}

#[divan::bench(args = [10_000], sample_count = 5)]
fn rebuild(bencher: Bencher<'_, '_>, blocks: u32) {
    let dir = tempfile::tempdir().unwrap();
    Place::open(dir.path(), IndexConfig::default(), ONE).fill(blocks, 500);
    bencher
        .with_inputs(|| {
            std::fs::remove_dir_all(dir.path().join("index")).unwrap();
            Place::open(dir.path(), IndexConfig::default(), ONE)
        })
        .bench_local_refs(|place| place.store.maintain(&place.todo).unwrap());
}
