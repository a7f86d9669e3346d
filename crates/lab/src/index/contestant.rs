//! foldback's block store as workload W1 drives it.

use super::workload::Workload;
use foldback_bench::BenchError;
use foldback_blockstore::{BlockStore, Commit, IndexConfig, NewMessage, Ranking, SearchRequest};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, CloseReason, EmbedError, Embedder, Message, Piece,
    SeqNo, SeqRange, StoredMessage, TodoId, ToolCallId, Vectors,
};
use foldback_kv::{Engine, Mode, Registry};
use std::ops::Range;
use std::path::Path;

/// The block store in a folder, with its defaults: SQLite, every commit synced, indexes on disk.
pub(super) struct Contestant {
    store: BlockStore,
    registry: Registry,
    model: GivenVectors,
}

/// An embedder that only names the model of the given vectors.
struct GivenVectors {
    id: String,
    dim: usize,
}

impl Embedder for GivenVectors {
    fn model_id(&self) -> &str {
        &self.id
    }

    fn dim(&self) -> usize {
        self.dim
    }

    /// It determines how relevance is shown, and does not affect the order of hits.
    fn same_topic(&self) -> f32 {
        0.5
    }

    fn embed(&self, _: &[&str]) -> Result<Vectors, EmbedError> {
        let message = "the vectors of a workload are given".to_owned();
        Err(EmbedError { model: self.id.clone(), message })
    }
}

impl Contestant {
    pub(super) fn open(dir: &Path, dim: usize) -> Result<Self, BenchError> {
        let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadWrite).map_err(kv_failed)?;
        let registry = Registry::new(kv.clone());
        let store = BlockStore::open(kv, Some(dir.join("index")), IndexConfig::default())
            .map_err(failed)?;
        Ok(Self { store, registry, model: GivenVectors { id: format!("given-{dim}"), dim } })
    }

    /// Adds the blocks of these lines, each of one message, in one transaction per todo, durable when
    /// this returns.
    pub(super) fn add(&self, workload: &Workload, lines: Range<usize>) -> Result<(), BenchError> {
        for (todo, lines) in workload.by_todo(lines) {
            self.add_to(workload, todo, &lines)?;
        }
        Ok(())
    }

    fn add_to(&self, workload: &Workload, id: &TodoId, lines: &[usize]) -> Result<(), BenchError> {
        let todo = self.registry.create(id, b"").map_err(kv_failed)?;
        let head = self.store.head(&todo).map_err(failed)?;
        let (mut messages, mut blocks) = (Vec::new(), Vec::new());
        for (seq, line) in (head.messages..).zip(lines) {
            let Some(given) = workload.blocks.get(*line) else { break };
            let (message, block_type) = message(&given.kind, &given.text);
            let row = workload.vector(*line).to_vec();
            messages.push(NewMessage {
                stored: StoredMessage {
                    pieces: vec![Piece::Text(message.json().to_owned())],
                    offloads: Vec::new(),
                    recall: false,
                    recorded_at: 0,
                },
                vectors: Vectors::new(self.model.dim, row).unwrap_or_default(),
            });
            let n = u32::try_from(seq + 1).unwrap_or(u32::MAX);
            blocks.push(block(id, n, block_type)?);
        }
        let commit = Commit {
            todo: &todo,
            head,
            messages: &messages,
            blocks: &blocks,
            session: Vec::new(),
            extra: Vec::new(),
            delete: Vec::new(),
        };
        self.store.commit(commit, &self.model.id).map_err(failed)
    }

    /// Waits for the index of each todo to catch up.
    pub(super) fn maintain<'t>(
        &self,
        todos: impl IntoIterator<Item = &'t TodoId>,
    ) -> Result<(), BenchError> {
        for id in todos {
            if let Some(todo) = self.registry.find(id).map_err(kv_failed)? {
                self.store.maintain(&todo).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Returns the blocks nearest to a vector, as lines of the workload. Their messages are read too,
    /// as an agent gets them.
    pub(super) fn by_meaning(
        &self,
        workload: &Workload,
        todo: &TodoId,
        vector: &[f32],
        k: usize,
    ) -> Result<Vec<usize>, BenchError> {
        let request = SearchRequest::new("").ranking(Ranking::Meaning);
        self.search(workload, todo, request.vector(&self.model, vector).k(k))
    }

    /// Returns the best blocks by BM25.
    pub(super) fn by_words(
        &self,
        workload: &Workload,
        todo: &TodoId,
        text: &str,
        k: usize,
    ) -> Result<Vec<usize>, BenchError> {
        self.search(workload, todo, SearchRequest::new(text).ranking(Ranking::Words).k(k))
    }

    /// Returns the best blocks as foldback ranks them.
    pub(super) fn fused(
        &self,
        workload: &Workload,
        todo: &TodoId,
        text: &str,
        vector: &[f32],
        k: usize,
    ) -> Result<Vec<usize>, BenchError> {
        self.search(workload, todo, SearchRequest::new(text).vector(&self.model, vector).k(k))
    }

    fn search(
        &self,
        workload: &Workload,
        id: &TodoId,
        request: SearchRequest<'_>,
    ) -> Result<Vec<usize>, BenchError> {
        let Some(todo) = self.registry.find(id).map_err(kv_failed)? else { return Ok(Vec::new()) };
        let hits = self.store.searcher(&todo).map_err(failed)?.search(&request).map_err(failed)?;
        let mut lines = Vec::with_capacity(hits.len());
        for hit in hits {
            let body = self.store.messages(&todo, hit.block.range.as_u64()).map_err(failed)?;
            if body.is_empty() {
                let block = hit.block.header.block_id;
                return Err(BenchError::Input(format!(
                    "the block {block} was found without a body"
                )));
            }
            lines.extend(workload.line(id, hit.block.header.block_id.n()));
        }
        Ok(lines)
    }
}

/// Returns the message of a block, and the resulting block.
fn message(kind: &str, text: &str) -> (Message, BlockType) {
    match kind {
        "user" => (Message::user(text), BlockType::Chat),
        kind if kind.starts_with("tool_result") => {
            (Message::tool_result(&ToolCallId::new("call"), text), BlockType::ToolCall)
        }
        "tool_call" => (Message::assistant(text), BlockType::ToolCall),
        _ => (Message::assistant(text), BlockType::Chat),
    }
}

/// Returns the block `n`, of the message with the same number.
fn block(todo: &TodoId, n: u32, block_type: BlockType) -> Result<Block, BenchError> {
    let seq = SeqNo(u64::from(n).saturating_sub(1));
    let range = SeqRange::new(seq, seq)
        .ok_or_else(|| BenchError::Input(format!("the block {n} of {todo} has no message")))?;
    let header = BlockHeader {
        block_id: BlockId::new(todo.clone(), n),
        todo_id: todo.clone(),
        block_type,
        keywords: Vec::new(),
        core_semantic: String::new(),
        create_time: "2026-03-01 12:00:00".to_owned(),
        data_ids: Vec::new(),
    };
    Ok(Block { header, range, close_reason: CloseReason::Size })
}

fn failed(error: foldback_blockstore::Error) -> BenchError {
    BenchError::Memory(error.into())
}

fn kv_failed(error: foldback_kv::Error) -> BenchError {
    BenchError::Memory(error.into())
}
