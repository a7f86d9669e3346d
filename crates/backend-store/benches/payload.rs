//! Measures the cost of storing a payload of a megabyte, reading it back, and reading a part of it.
//! (P10: a put at most one fsync and 2 ms, a get at most 1 ms.)
//!
//! The baseline of a put is `fsyncs`: a file of the same size, written and synced, and its folder
//! synced, which no durable store can avoid. Records go to memory here, so that the figures are
//! those of this crate alone.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot continue stops")]

use divan::{Bencher, counter::BytesCount};
use foldback_backend_store::{BackendConfig, BackendStore, kind_of, preview};
use foldback_core::{Estimate, TodoId};
use foldback_kv::{Batch, Kv, Registry, Todo};
use std::{fs::File, io::Write, sync::Arc};

fn main() {
    divan::main();
}

#[divan::bench]
fn fsyncs(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let mut seed = 0;
    bencher.counter(BytesCount::new(MEGABYTE)).with_inputs(|| log(&mut seed)).bench_local_values(
        |bytes| {
            let mut file = File::create(dir.path().join("payload")).unwrap();
            file.write_all(&bytes).unwrap();
            file.sync_all().unwrap();
            File::open(dir.path()).unwrap().sync_all().unwrap();
        },
    );
}

#[divan::bench]
fn put(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let mut seed = 0;
    bencher
        .counter(BytesCount::new(MEGABYTE))
        .with_inputs(|| log(&mut seed))
        .bench_local_values(|bytes| world.put(&bytes));
}

/// Bytes that the todo already holds.
#[divan::bench]
fn put_again(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let bytes = log(&mut 0);
    world.put(&bytes);
    bencher.counter(BytesCount::new(MEGABYTE)).bench_local(|| world.put(&bytes));
}

#[divan::bench]
fn get(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let n = world.put(&log(&mut 0));
    bencher
        .counter(BytesCount::new(MEGABYTE))
        .bench_local(|| world.store.get(&world.todo, n).unwrap());
}

/// 64 KiB from the middle.
#[divan::bench]
fn range(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let n = world.put(&log(&mut 0));
    let range = 500_000..500_000 + (64 << 10);
    bencher
        .counter(BytesCount::new(64_u64 << 10))
        .bench_local(|| world.store.read_range(&world.todo, n, range.clone()).unwrap());
}

/// A search through everything that finds nothing.
#[divan::bench]
fn matching(bencher: Bencher<'_, '_>) {
    let world = World::new();
    let n = world.put(&log(&mut 0));
    bencher.counter(BytesCount::new(MEGABYTE)).bench_local(|| {
        world.store.matching(&world.todo, n, "(?i)fatal|panicked", 2, 2000, 1).unwrap()
    });
}

#[divan::bench]
fn kind_and_preview(bencher: Bencher<'_, '_>) {
    let bytes = log(&mut 0);
    bencher
        .counter(BytesCount::new(MEGABYTE))
        .bench_local(|| preview(&bytes, kind_of(&bytes), 200, &Estimate));
}

const MEGABYTE: u64 = 1 << 20;

/// A megabyte of a log, different each time.
fn log(seed: &mut u64) -> Vec<u8> {
    *seed += 1;
    let line = |i: u64| {
        let id = (i + *seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "10:{:02}:{:02} INFO GET /item/{i} took {} us id={id:x}\n",
            i / 60 % 60,
            i % 60,
            id % 999
        )
    };
    let mut bytes: Vec<u8> = (0..25_000).flat_map(|i| line(i).into_bytes()).collect();
    bytes.truncate(MEGABYTE as usize);
    bytes
}

struct World {
    kv: Arc<dyn Kv>,
    store: BackendStore,
    todo: Todo,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let kv = foldback_kv::memory();
        let todo = Registry::new(kv.clone()).create(&TodoId::new("bench").unwrap(), b"").unwrap();
        let config = BackendConfig::default();
        let store =
            BackendStore::open(kv.clone(), Some(dir.path().join("payloads")), config).unwrap();
        Self { kv, store, todo, _dir: dir }
    }

    fn put(&self, bytes: &[u8]) -> u64 {
        let mut pending = self.store.begin(&self.todo).unwrap();
        let prepared = self.store.prepare(&mut pending, bytes).unwrap();
        self.kv.commit(Batch { put: pending.into_puts(), ..Batch::default() }).unwrap();
        prepared.meta.n
    }
}
