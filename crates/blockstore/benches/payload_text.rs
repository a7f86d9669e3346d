//! The cost of the text of payloads: to index it on disk, before the first hit without an index,
//! and in every search.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use divan::Bencher;
use foldback_blockstore::{
    BlockStore, Commit, Head, IndexConfig, NewMessage, PayloadTexts, SearchRequest, WhyUnsearched,
};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, Check, CloseReason, Message, Offload, PayloadKind,
    Piece, SeqNo, SeqRange, Site, StoredMessage, TodoId, Vectors,
};
use foldback_kv::{Engine, Mode, Registry, Todo};
use std::ops::Range;
use std::sync::Arc;
use tempfile::TempDir;

fn main() {
    divan::main();
}

/// The one payload.
struct Log(Vec<u8>);

impl PayloadTexts for Log {
    fn read(&self, _: &Todo, _: u64, bytes: Range<u64>) -> Result<Vec<u8>, WhyUnsearched> {
        let part = self.0.get(bytes.start as usize..bytes.end as usize);
        part.map(<[u8]>::to_vec).ok_or(WhyUnsearched::Damaged)
    }
}

/// Returns a log of this many MiB whose lines hold numbers, paths and words.
fn log(mib: usize) -> Vec<u8> {
    let mut log = Vec::with_capacity((mib << 20) + 200);
    let mut n = 7_u64;
    while log.len() < mib << 20 {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (a, b, c) = (n >> 33 & 63, n >> 40 & 1_023, n >> 50);
        let line = format!(
            "2026-03-01T02:{a:02}:07Z INFO worker-{b} has read src/part{a}/file_{c}.rs in {b} ms, \
             state word{c} of batch {a}\n"
        );
        log.extend_from_slice(line.as_bytes());
    }
    log.truncate(mib << 20);
    log
}

/// A todo of one block whose payload is a log of this many MiB.
fn opened(mib: usize, index_after_passages: u32) -> (TempDir, BlockStore, Todo) {
    let dir = tempfile::tempdir().unwrap();
    let kv = foldback_kv::open(&dir.path().join("kv"), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let todo = Registry::new(kv.clone()).create(&TodoId::new("bench").unwrap(), b"").unwrap();
    let log = log(mib);
    let offload = Offload {
        site: Site::Content,
        n: 1,
        check: Check::of(&log),
        kind: PayloadKind::Log,
        bytes: log.len() as u64,
        lines: 0,
        tokens: 0,
        preview: String::new(),
    };
    let config = IndexConfig::default().with_index_after_passages(index_after_passages);
    let index = Some(dir.path().join("index"));
    let store = BlockStore::open_with_payloads(kv, Arc::new(Log(log)), index, config).unwrap();
    let message = Message::user("the log");
    let pieces = vec![Piece::Text(message.json().to_owned())];
    let stored = StoredMessage { pieces, offloads: vec![offload], recall: false, recorded_at: 0 };
    let header = BlockHeader {
        block_id: BlockId::new(todo.id().clone(), 1),
        todo_id: todo.id().clone(),
        block_type: BlockType::Chat,
        keywords: vec![],
        core_semantic: String::new(),
        create_time: "2025-01-01 10:00:00".to_owned(),
        data_ids: vec![],
    };
    let range = SeqRange::new(SeqNo(0), SeqNo(0)).unwrap();
    let block = Block { header, range, close_reason: CloseReason::Size };
    let commit = Commit {
        todo: &todo,
        head: Head::default(),
        messages: &[NewMessage { stored, vectors: Vectors::default() }],
        blocks: &[block],
        session: vec![],
        extra: vec![],
        delete: vec![],
    };
    store.commit(commit, "none").unwrap();
    (dir, store, todo)
}

fn search(store: &BlockStore, todo: &Todo) -> usize {
    let request = SearchRequest::new("when has worker-417 read file_9000.rs?");
    store.searcher(todo).unwrap().search(&request).unwrap().len()
}

#[divan::bench(args = [1, 10], sample_count = 5)]
fn index_on_disk(bencher: Bencher<'_, '_>, mib: usize) {
    bencher
        .with_inputs(|| opened(mib, 0))
        .bench_local_refs(|(_, store, todo)| store.maintain(todo).unwrap().indexed);
}

#[divan::bench(args = [1, 2, 10], sample_count = 5)]
fn first_search_without_index(bencher: Bencher<'_, '_>, mib: usize) {
    bencher
        .with_inputs(|| opened(mib, u32::MAX))
        .bench_local_refs(|(_, store, todo)| search(store, todo));
}

#[divan::bench(args = [1, 10])]
fn search_in_memory(bencher: Bencher<'_, '_>, mib: usize) {
    let (_dir, store, todo) = opened(mib, u32::MAX);
    search(&store, &todo);
    bencher.bench_local(|| search(&store, &todo));
}

#[divan::bench(args = [1, 10])]
fn search_on_disk(bencher: Bencher<'_, '_>, mib: usize) {
    let (_dir, store, todo) = opened(mib, 0);
    store.maintain(&todo).unwrap();
    search(&store, &todo);
    bencher.bench_local(|| search(&store, &todo));
}
