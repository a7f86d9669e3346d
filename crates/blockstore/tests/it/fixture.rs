//! A store with one todo, described in lines; and texts enough to fill a large one.

use foldback_blockstore::{BlockStore, Commit, Head, Hit, IndexConfig, NewMessage, SearchRequest};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, Check, CloseReason, EmbedError, Embedder, Escape,
    Message, Offload, PayloadKind, Piece, SeqNo, SeqRange, Site, Source, StoredMessage, Timestamp,
    TodoId, Vectors,
};
use foldback_kv::{Engine, Kv, Mode, Registry, Todo};
pub(crate) use foldback_testkit::Random;
use std::path::Path;
use std::sync::Arc;

pub(crate) const DIM: usize = 48;

/// A bag of words, each a few fixed random directions: texts that share words are alike.
pub(crate) struct Bag(pub(crate) &'static str);

impl Embedder for Bag {
    fn model_id(&self) -> &str {
        self.0
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn same_topic(&self) -> f32 {
        0.5
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let mut values = Vec::new();
        for text in texts {
            let mut sum = [0.0f32; DIM];
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
                let mut random =
                    Random::new(word.bytes().fold(7, |h, b| h.wrapping_mul(31) + u64::from(b)));
                sum.iter_mut().for_each(|value| *value += random.unit() - 0.5);
            }
            let norm = sum.iter().map(|v| v * v).sum::<f32>().sqrt();
            values.extend(sum.map(|value| if norm > 0.0 { value / norm } else { 0.0 }));
        }
        Ok(Vectors::new(DIM, values).unwrap())
    }
}

pub(crate) const MODEL: Bag = Bag("bag-48");

/// A todo that is being written.
pub(crate) struct Writer {
    pub(crate) store: BlockStore,
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) todo: Todo,
    head: Head,
    blocks: u32,
    open_from: u64,
    messages: Vec<NewMessage>,
    closed: Vec<Block>,
    pub(crate) embedder: Option<Bag>,
    pub(crate) minute: i64,
}

impl Writer {
    /// In memory, without indexes.
    pub(crate) fn in_memory() -> Self {
        Self::on(foldback_kv::memory(), None, IndexConfig::default(), "t")
    }

    /// In memory, with indexes in `dir` from the first block on.
    pub(crate) fn indexed(dir: &Path) -> Self {
        Self::on(foldback_kv::memory(), Some(dir), eager(), "t")
    }

    /// On disk, with indexes beside the store.
    pub(crate) fn on_disk(dir: &Path, config: IndexConfig) -> Self {
        let kv = foldback_kv::open(&dir.join("kv"), Engine::Sqlite, Mode::ReadWrite).unwrap();
        Self::on(kv, Some(&dir.join("index")), config, "t")
    }

    pub(crate) fn on(kv: Arc<dyn Kv>, dir: Option<&Path>, config: IndexConfig, id: &str) -> Self {
        let todo = Registry::new(kv.clone()).create(&TodoId::new(id).unwrap(), b"").unwrap();
        let store = BlockStore::open(kv.clone(), dir.map(Into::into), config).unwrap();
        let head = store.head(&todo).unwrap();
        let last = store.last_block(&todo).unwrap();
        let (blocks, open_from) = match last {
            Some(last) => (last.header.block_id.n(), last.range.last().0 + 1),
            None => (0, 0),
        };
        let (messages, closed) = (Vec::new(), Vec::new());
        let embedder = Some(MODEL);
        Self { store, kv, todo, head, blocks, open_from, messages, closed, embedder, minute: 0 }
    }

    /// The same store with another view of its indexes.
    pub(crate) fn reader(&self, dir: Option<&Path>, config: IndexConfig) -> BlockStore {
        BlockStore::open(self.kv.clone(), dir.map(Into::into), config).unwrap()
    }

    pub(crate) fn say(&mut self, text: &str) -> &mut Self {
        self.add(Message::user(text))
    }

    pub(crate) fn add(&mut self, message: Message) -> &mut Self {
        let vectors = match &self.embedder {
            Some(embedder) => embedder.embed(&[&message.text()]).unwrap(),
            None => Vectors::default(),
        };
        self.messages.push(NewMessage { stored: stored(&message), vectors });
        self
    }

    /// A tool's result that is stored outside as the payload `n`; its first line is its preview.
    pub(crate) fn payload(&mut self, n: u64, text: &str) -> &mut Self {
        let kind = if text.contains('\0') { PayloadKind::Binary } else { PayloadKind::Log };
        let offload = Offload {
            site: Site::Content,
            n,
            check: Check::of(text.as_bytes()),
            kind,
            bytes: text.len() as u64,
            lines: text.lines().count() as u64,
            tokens: 0,
            preview: text.lines().next().unwrap_or_default().to_owned(),
        };
        let hole =
            Piece::Hole { source: Source::Payload(n), range: None, layers: vec![Escape::Minimal] };
        let before = r#"{"role":"tool","tool_call_id":"c","content":""#.to_owned();
        let pieces = vec![Piece::Text(before), hole, Piece::Text(r#""}"#.to_owned())];
        let offloads = vec![offload];
        let stored = StoredMessage { pieces, offloads, recall: false, recorded_at: 0 };
        self.messages.push(NewMessage { stored, vectors: Vectors::default() });
        self
    }

    /// Closes what is open as a block, and commits it when there is much to commit.
    pub(crate) fn close(&mut self) -> &mut Self {
        self.close_as(BlockType::Chat, &[])
    }

    pub(crate) fn close_as(&mut self, block_type: BlockType, keywords: &[&str]) -> &mut Self {
        let end = self.head.messages + self.messages.len() as u64;
        self.blocks += 1;
        self.minute += 1;
        let range = SeqRange::new(SeqNo(self.open_from), SeqNo(end - 1)).unwrap();
        self.closed.push(block(&self.todo, self.blocks, range, block_type, keywords, self.minute));
        self.open_from = end;
        if self.messages.len() >= 500 { self.commit() } else { self }
    }

    pub(crate) fn commit(&mut self) -> &mut Self {
        let commit = Commit {
            todo: &self.todo,
            head: self.head,
            messages: &self.messages,
            blocks: &self.closed,
            session: b"state".to_vec(),
            extra: vec![],
            delete: vec![],
        };
        let model = self.embedder.as_ref().map_or("none", |embedder| embedder.0);
        self.store.commit(commit, model).unwrap();
        self.head = self.head.after(self.messages.len());
        self.messages.clear();
        self.closed.clear();
        self
    }

    /// One block for each line, committed.
    pub(crate) fn lines(&mut self, lines: &[&str]) -> &mut Self {
        for line in lines {
            self.say(line).close();
        }
        self.commit()
    }

    /// Blocks of one to three lines of made-up text, until there are `messages` more, committed.
    pub(crate) fn fill(&mut self, seed: u64, messages: usize) -> &mut Self {
        let mut random = Random::new(seed);
        let mut left = messages;
        while left > 0 {
            let len = (1 + random.below(3)).min(left);
            for _ in 0..len {
                let words = 4 + random.below(9);
                self.say(&random.line(words));
            }
            left -= len;
            self.close();
        }
        self.commit()
    }
}

/// A configuration that indexes everything at once.
pub(crate) fn eager() -> IndexConfig {
    IndexConfig::default().with_index_after_blocks(0).with_batch_blocks(1)
}

pub(crate) fn stored(message: &Message) -> StoredMessage {
    StoredMessage {
        pieces: vec![Piece::Text(message.json().to_owned())],
        offloads: vec![],
        recall: false,
        recorded_at: 0,
    }
}

pub(crate) fn block(
    todo: &Todo,
    n: u32,
    range: SeqRange,
    block_type: BlockType,
    keywords: &[&str],
    minute: i64,
) -> Block {
    Block {
        header: BlockHeader {
            block_id: BlockId::new(todo.id().clone(), n),
            todo_id: todo.id().clone(),
            block_type,
            keywords: keywords.iter().map(|k| (*k).to_owned()).collect(),
            core_semantic: String::new(),
            create_time: Timestamp(minute * 60_000).to_string(),
            data_ids: vec![],
        },
        range,
        close_reason: CloseReason::Loop,
    }
}

/// Searches by words and by meaning.
pub(crate) fn ask(store: &BlockStore, todo: &Todo, query: &str, k: usize) -> Vec<Hit> {
    let vector = MODEL.embed(&[query]).unwrap();
    let request = SearchRequest::new(query).k(k).vector(&MODEL, vector.row(0).unwrap());
    store.searcher(todo).unwrap().search(&request).unwrap()
}

/// The numbers of the blocks that were found.
pub(crate) fn numbers(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| hit.block.header.block_id.n()).collect()
}
