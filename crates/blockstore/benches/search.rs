//! How long is a search, at 100, 1,000 and 10,000 blocks of one message, vectors given?
//!
//! The goals are 0.15, 0.3 and 0.8 ms for words and meaning together (median, a quiet machine).
//! Asked of memory, and from 1,000 blocks on of the index on disk as well; and how long the first
//! search after a block has closed is, and one in a store that was just opened. And how long does
//! the index take to come back, from the truth alone? The goal is 5,000 blocks a second and core.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use divan::Bencher;
use foldback_blockstore::{BlockStore, Commit, IndexConfig, NewMessage, SearchRequest};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, CloseReason, EmbedError, Embedder, Message, Piece,
    SeqNo, SeqRange, StoredMessage, TodoId, Vectors,
};
use foldback_kv::{Engine, Mode, Registry, Todo};
use tempfile::TempDir;

fn main() {
    divan::main();
}

const DIM: usize = 256;

/// Names the model; vectors are given.
struct Given;

impl Embedder for Given {
    fn model_id(&self) -> &str {
        "given-256"
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn same_topic(&self) -> f32 {
        0.5
    }

    fn embed(&self, _: &[&str]) -> Result<Vectors, EmbedError> {
        Ok(Vectors::default())
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn unit(&mut self) -> f32 {
        (self.next() % 1_000_000) as f32 / 1_000_000.0
    }

    /// Words whose frequencies fall as in language.
    fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        for _ in 0..words {
            let mut rank = (20_000f32.powf(self.unit()) - 1.0) as usize;
            for _ in 0..3 {
                text.push_str(
                    [
                        "ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "cha", "pe",
                        "do", "fi", "gre", "hu", "jo", "ny", "qui", "wa", "xe", "yl", "sto", "bri",
                        "cle", "dan", "mer",
                    ][rank % 27],
                );
                rank /= 27;
            }
            text.push(' ');
        }
        text
    }

    fn vector(&mut self) -> Vec<f32> {
        let values: Vec<f32> = (0..DIM).map(|_| self.unit() + self.unit() - 1.0).collect();
        let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
        values.iter().map(|v| v / norm).collect()
    }
}

struct Place {
    dir: TempDir,
    store: BlockStore,
    todo: Todo,
    random: Random,
    blocks: u32,
}

impl Place {
    fn new(blocks: usize, index_after_blocks: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, todo) = open(&dir, index_after_blocks);
        let mut place = Self { dir, store, todo, random: Random(7), blocks: 0 };
        for _ in 0..blocks.div_ceil(500) {
            place.add(blocks.min(500));
        }
        place.store.maintain(&place.todo).unwrap();
        place
    }

    /// Blocks of one message of about 420 bytes.
    fn add(&mut self, count: usize) {
        let head = self.store.head(&self.todo).unwrap();
        let (mut messages, mut blocks) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let seq = SeqNo(u64::from(self.blocks));
            self.blocks += 1;
            let message = Message::user(&self.random.text(70));
            let stored = StoredMessage {
                pieces: vec![Piece::Text(message.json().to_owned())],
                offloads: vec![],
                recall: false,
                recorded_at: 0,
            };
            let vectors = Vectors::new(DIM, self.random.vector()).unwrap();
            messages.push(NewMessage { stored, vectors });
            let header = BlockHeader {
                block_id: BlockId::new(self.todo.id().clone(), self.blocks),
                todo_id: self.todo.id().clone(),
                block_type: BlockType::Chat,
                keywords: vec![],
                core_semantic: String::new(),
                create_time: "2025-01-01 10:00:00".to_owned(),
                data_ids: vec![],
            };
            let range = SeqRange::new(seq, seq).unwrap();
            blocks.push(Block { header, range, close_reason: CloseReason::Size });
        }
        let commit = Commit {
            todo: &self.todo,
            head,
            messages: &messages,
            blocks: &blocks,
            session: vec![],
            extra: vec![],
            delete: vec![],
        };
        self.store.commit(commit, Given.model_id()).unwrap();
    }
}

fn open(dir: &TempDir, index_after_blocks: u32) -> (BlockStore, Todo) {
    let kv = foldback_kv::open(&dir.path().join("kv"), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let todo = Registry::new(kv.clone()).create(&TodoId::new("bench").unwrap(), b"").unwrap();
    let config = IndexConfig { index_after_blocks, batch_blocks: 256, ..IndexConfig::default() };
    (BlockStore::open(kv, Some(dir.path().join("index")), config).unwrap(), todo)
}

fn search(store: &BlockStore, todo: &Todo, text: &str, vector: &[f32]) -> usize {
    let request = SearchRequest::new(text).k(10).vector(&Given, vector);
    store.searcher(todo).unwrap().search(&request).unwrap().len()
}

fn run(bencher: Bencher<'_, '_>, place: Place) {
    let Place { store, todo, .. } = &place;
    let mut random = Random(99);
    search(store, todo, "bababa", &random.vector());
    bencher
        .with_inputs(|| (random.text(6), random.vector()))
        .bench_local_refs(|(text, vector)| search(store, todo, text, vector));
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn in_memory(bencher: Bencher<'_, '_>, blocks: usize) {
    run(bencher, Place::new(blocks, u32::MAX));
}

#[divan::bench(args = [1_000, 10_000])]
fn on_disk(bencher: Bencher<'_, '_>, blocks: usize) {
    run(bencher, Place::new(blocks, 256));
}

#[divan::bench(args = [1_000, 10_000])]
fn by_words_on_disk(bencher: Bencher<'_, '_>, blocks: usize) {
    let Place { store, todo, dir: _dir, .. } = &Place::new(blocks, 256);
    let mut random = Random(99);
    bencher.with_inputs(|| random.text(6)).bench_local_refs(|text| {
        store.searcher(todo).unwrap().search(&SearchRequest::new(text).k(10)).unwrap().len()
    });
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 30)]
fn after_a_block_has_closed(bencher: Bencher<'_, '_>, blocks: usize) {
    let place = std::cell::RefCell::new(Place::new(blocks, 256));
    let mut random = Random(99);
    bencher
        .with_inputs(|| {
            place.borrow_mut().add(1);
            (random.text(6), random.vector())
        })
        .bench_local_refs(|(text, vector)| {
            let place = place.borrow();
            search(&place.store, &place.todo, text, vector)
        });
}

#[divan::bench(args = [100, 1_000, 10_000], sample_count = 20)]
fn cold_open(bencher: Bencher<'_, '_>, blocks: usize) {
    let place = Place::new(blocks, 256);
    let mut random = Random(99);
    bencher.with_inputs(|| (random.text(6), random.vector())).bench_local_refs(|(text, vector)| {
        let (store, todo) = open(&place.dir, 256);
        search(&store, &todo, text, vector)
    });
}

#[divan::bench(args = [10_000], sample_count = 5)]
fn rebuild(bencher: Bencher<'_, '_>, blocks: usize) {
    let place = Place::new(blocks, 256);
    bencher
        .with_inputs(|| {
            std::fs::remove_dir_all(place.dir.path().join("index")).unwrap();
            open(&place.dir, 256)
        })
        .bench_local_refs(|(store, todo)| store.maintain(todo).unwrap());
}
