//! A store of made-up blocks, the same on every run: texts whose words fall in frequency as in
//! language, and vectors that gather around topics as those of texts do.

use foldback_blockstore::{
    BlockStore, Commit, Hit, IndexConfig, NewMessage, SearchRequest, Searcher,
};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, CloseReason, EmbedError, Embedder, Message, Piece,
    SeqNo, SeqRange, StoredMessage, TodoId, Vectors,
};
use foldback_kv::{Engine, Mode, Registry, Todo};
use foldback_testkit::Random;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const DIM: usize = 256;

/// A block's text has about this many bytes, in however many messages.
const WORDS: usize = 70;

/// How many topics vectors gather around.
const TOPICS: usize = 300;

/// The name of the model; vectors are given.
pub(crate) struct Given;

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

/// A unit vector that is as far from its topic as a text is.
pub(crate) fn vector(random: &mut Random) -> Vec<f32> {
    let mut topic = Random::new(1_000_000 + random.below(TOPICS) as u64);
    let mut noise = || random.unit() + random.unit() - 1.0;
    let mut near = || 0.7 * (topic.unit() + topic.unit() - 1.0) + noise();
    let values: Vec<f32> = (0..DIM).map(|_| near()).collect();
    let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
    values.iter().map(|v| v / norm).collect()
}

/// The store in a folder, open.
pub(crate) struct Place {
    pub(crate) store: BlockStore,
    pub(crate) todo: Todo,
    random: Random,
    /// How many vectors two blocks have together; each is of a message of its own.
    vectors_of_two: usize,
    blocks: u32,
    /// The bytes of the texts.
    pub(crate) text_bytes: usize,
    /// How long the commits took.
    pub(crate) committing: Duration,
    /// The number of each message's block; each message has one vector.
    pub(crate) block_of: Vec<u32>,
}

impl Place {
    pub(crate) fn open(dir: &Path, config: IndexConfig, vectors_of_two: usize) -> Self {
        let kv = foldback_kv::open(&dir.join("kv"), Engine::Sqlite, Mode::ReadWrite).unwrap();
        let todo = Registry::new(kv.clone()).create(&TodoId::new("bench").unwrap(), b"").unwrap();
        let store = BlockStore::open(kv, Some(dir.join("index")), config).unwrap();
        let random = Random::new(7);
        Self {
            store,
            todo,
            random,
            vectors_of_two,
            blocks: 0,
            text_bytes: 0,
            committing: Duration::ZERO,
            block_of: vec![],
        }
    }

    /// Adds blocks until there are `blocks`, this many in a transaction, and indexes them.
    pub(crate) fn fill(&mut self, blocks: u32, at_once: u32) {
        while self.blocks < blocks {
            self.add(at_once.min(blocks - self.blocks));
        }
        self.store.maintain(&self.todo).unwrap();
    }

    /// Adds blocks in one transaction.
    pub(crate) fn add(&mut self, count: u32) {
        let head = self.store.head(&self.todo).unwrap();
        let mut next = head.messages;
        let (mut messages, mut blocks) = (Vec::new(), Vec::new());
        for _ in 0..count {
            self.blocks += 1;
            let len = (self.vectors_of_two + self.blocks as usize % 2) / 2;
            for _ in 0..len {
                messages.push(self.message(WORDS / len));
            }
            let header = BlockHeader {
                block_id: BlockId::new(self.todo.id().clone(), self.blocks),
                todo_id: self.todo.id().clone(),
                block_type: BlockType::Chat,
                keywords: vec![],
                core_semantic: String::new(),
                create_time: "2025-01-01 10:00:00".to_owned(),
                data_ids: vec![],
            };
            let range = SeqRange::new(SeqNo(next), SeqNo(next + len as u64 - 1)).unwrap();
            next += len as u64;
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
        let begin = Instant::now();
        self.store.commit(commit, Given.model_id()).unwrap();
        self.committing += begin.elapsed();
    }

    fn message(&mut self, words: usize) -> NewMessage {
        let text = self.random.words(words);
        self.text_bytes += text.len();
        let message = Message::user(&text);
        let stored = StoredMessage {
            pieces: vec![Piece::Text(message.json().to_owned())],
            offloads: vec![],
            recall: false,
            recorded_at: 0,
        };
        let vector = vector(&mut self.random);
        self.block_of.push(self.blocks);
        NewMessage { stored, vectors: Vectors::new(DIM, vector).unwrap() }
    }

    pub(crate) fn searcher(&self) -> Searcher {
        self.store.searcher(&self.todo).unwrap()
    }

    pub(crate) fn search(&self, (text, vector): &(String, Vec<f32>)) -> Vec<Hit> {
        let request = SearchRequest::new(text).k(10).vector(&Given, vector);
        self.searcher().search(&request).unwrap()
    }
}

/// A question by words and by meaning.
pub(crate) fn question(random: &mut Random) -> (String, Vec<f32>) {
    (random.words(6), vector(random))
}
