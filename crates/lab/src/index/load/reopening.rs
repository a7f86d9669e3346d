//! A process that ended with unindexed blocks: how soon does the next one answer, and what does
//! rebuilding the indexes cost?

use crate::index::again::Again;
use crate::index::cold::ColdStart;
use crate::index::ladder::{self, ASKED};
use crate::index::part::Part;
use crate::index::table::Column;
use crate::index::words::Random;
use foldback::embedder::StaticEmbedder;
use foldback::{IndexConfig, Memory, Options, SearchRequest};
use foldback_bench::BenchError;
use foldback_core::{EmbedError, Embedder, Vectors};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The number of indexed blocks in the todo.
const INDEXED: u32 = 1_000;
const QUESTION: u64 = 2 << 40;
/// The goal: this many milliseconds, and this many more for each unindexed block.
const GOAL: (f64, f64) = (200.0, 0.05);

/// A store that was opened after its process ended. Times are in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Reopened {
    blocks: u64,
    /// The number of unindexed blocks.
    unindexed: u64,
    open_ms: f64,
    open_first_hit_ms: f64,
    goal_ms: f64,
    /// Blocks per second while all indexes were built from nothing.
    rebuild_per_s: f64,
    /// The number of texts that were embedded while the store was opened and its indexes were built.
    embedded: u64,
    findings: Vec<String>,
}

pub(super) fn step(unindexed: u32, dir: &Path, again: &Again) -> Result<Reopened, BenchError> {
    let store = dir.join(unindexed.to_string());
    let part = Part::Unindexed { indexed: INDEXED, blocks: unindexed, store: store.clone() };
    let _: u64 = again.run(&part)?;
    again.run(&Part::Reopened { store })
}

/// Fills a store, indexes it, adds blocks that are not indexed, and leaves it open: the process ends
/// like one that is killed. Returns the number of its messages.
pub(in crate::index) fn leave(indexed: u32, unindexed: u32, dir: &Path) -> Result<u64, BenchError> {
    let todo = ladder::todo(0)?;
    let memory = Memory::open(dir, ladder::options())?;
    ladder::fill(&mut memory.session(&todo)?, indexed, 0)?;
    memory.maintenance().index()?;
    drop(memory);
    // No index catches up with this.
    let index = IndexConfig::default().with_batch_blocks(u32::MAX);
    let memory = Memory::open(dir, Options::default().with_index(index))?;
    let mut session = memory.session(&todo)?;
    let blocks = session.blocks() + unindexed;
    ladder::fill(&mut session, blocks, 1)?;
    let messages = session.len();
    // Nothing is closed: no log is written back, and no index catches up.
    std::mem::forget((session, memory));
    Ok(messages)
}

/// Opens that store with nothing of it in memory, searches it, and builds its indexes from nothing.
pub(in crate::index) fn measure(dir: &Path) -> Result<Reopened, BenchError> {
    let todo = ladder::todo(0)?;
    let counting = Arc::new(Counting::default());
    let options = || ladder::options().with_embedder(counting.clone() as Arc<dyn Embedder>);
    let (mut embedded, mut checkup) = (0, None);
    let open = || Ok(Memory::open(dir, options())?);
    let search = |memory: &Memory, _| {
        embedded += counting.texts.load(Ordering::Relaxed);
        let text = Random::new(QUESTION).text(ASKED);
        memory.search(&todo, &SearchRequest::new(&text))?;
        Ok(())
    };
    let started = ColdStart::measure(dir, open, search, 0)?;
    let memory = open()?;
    let found = memory.maintenance().doctor()?;
    checkup.replace(found);
    drop(memory);
    let index = dir.join("index");
    std::fs::remove_dir_all(&index).map_err(|source| BenchError::Io {
        what: format!("{} could not be removed", index.display()),
        source,
    })?;
    let memory = open()?;
    let before = counting.texts.load(Ordering::Relaxed);
    let begin = Instant::now();
    memory.maintenance().index()?;
    let seconds = begin.elapsed().as_secs_f64();
    embedded += counting.texts.load(Ordering::Relaxed) - before;
    let found = checkup.unwrap_or_default();
    let mut findings = found.findings;
    findings.extend(memory.maintenance().doctor()?.findings);
    Ok(Reopened {
        blocks: found.blocks,
        unindexed: found.index_lag,
        open_ms: started.open_ms,
        open_first_hit_ms: started.first_hit_ms,
        goal_ms: GOAL.0 + GOAL.1 * found.index_lag as f64,
        rebuild_per_s: found.blocks as f64 / seconds,
        embedded,
        findings,
    })
}

/// The built-in embedder, counting what it embeds.
#[derive(Default)]
struct Counting {
    embedder: StaticEmbedder,
    texts: AtomicU64,
}

impl Embedder for Counting {
    fn model_id(&self) -> &str {
        self.embedder.model_id()
    }

    fn dim(&self) -> usize {
        self.embedder.dim()
    }

    fn same_topic(&self) -> f32 {
        self.embedder.same_topic()
    }

    fn answering(&self) -> f32 {
        self.embedder.answering()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        self.texts.fetch_add(texts.len() as u64, Ordering::Relaxed);
        self.embedder.embed(texts)
    }

    fn embed_question(&self, question: &str) -> Result<Vectors, EmbedError> {
        self.texts.fetch_add(1, Ordering::Relaxed);
        self.embedder.embed_question(question)
    }

    fn embed_for_topics(&self, texts: &[&str]) -> Option<Vectors> {
        self.embedder.embed_for_topics(texts)
    }

    fn knows(&self, text: &str) -> f32 {
        self.embedder.knows(text)
    }

    fn windows<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        self.embedder.windows(text, limit)
    }
}

pub(super) const TITLE: &str = "Reopened after its process ended: milliseconds, nothing in memory";

pub(super) const NOTE: &str = "A todo of 1,000 indexed blocks and more unindexed ones; the process that wrote them ends \
    without closing anything, as a killed one does. The goal is 200 ms and 0.05 ms for each unindexed block. \
    \"rebuild\" is blocks per second while the folder of all indexes is built from nothing, including that of the search over \
    all todos; \"embedded\" is the texts that were embedded while the store was opened and its indexes were built.";

pub(super) const COLUMNS: [Column<Reopened>; 8] = [
    ("blocks", |row| row.blocks.to_string()),
    ("unindexed", |row| row.unindexed.to_string()),
    ("open", |row| format!("{:.1}", row.open_ms)),
    ("first hit", |row| format!("{:.1}", row.open_first_hit_ms)),
    ("goal", |row| format!("{:.0}", row.goal_ms)),
    ("rebuild /s", |row| format!("{:.0}", row.rebuild_per_s)),
    ("embedded", |row| row.embedded.to_string()),
    ("findings", |row| row.findings.len().to_string()),
];
