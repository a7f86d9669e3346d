//! How the assembled memory grows: blocks in one todo, and todos in one store.

use super::again::Again;
use super::cold::ColdStart;
use super::machine::{self, MB, Times};
use super::part::{Part, between_marks};
use super::table::{Column, table};
use super::words::Random;
use foldback::{IndexConfig, Memory, Options, SearchRequest, Session};
use foldback_bench::{BenchError, Sheet};
use foldback_core::TodoId;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// The number of blocks in a todo if there are many todos.
pub const BLOCKS_EACH: u32 = 3;
/// The approximate number of messages in a block, and the number after the last one.
const BLOCK: u32 = 4;
const TAIL: u32 = 4;
/// The maximum number of messages in a transaction while a store is filled.
const BATCH: u32 = 256;
/// The number of messages that are appended one by one, and of questions.
pub(super) const TIMED: u64 = 100;
/// The number of words in a question.
pub(super) const ASKED: usize = 6;
/// The number of messages whose syncs are counted.
const SYNCED: u64 = 50;
/// The number of processes that open the store cold.
const OPENED: usize = 3;
/// Seeds of the questions and of appended messages; those of the todos count from 1.
const WARM: u64 = 1 << 40;
const COLD: u64 = 2 << 40;
const APPENDED: u64 = 3 << 40;

/// A step of a ladder: a number of todos with a number of blocks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// The number of todos in the store.
    pub todos: u32,
    /// The minimum number of blocks in each.
    pub blocks_each: u32,
}

/// A note on the ladders' figures.
pub const LADDER_NOTE: &str = "No graph over vectors is built: in a todo with enough vectors for \
    one, building it takes minutes, and searches scan until it exists.";

/// Returns the steps of both ladders from 10 to `max`: blocks in one todo, then todos of three blocks.
#[must_use]
pub fn rungs(max: u32) -> Vec<Rung> {
    let steps = || (1..10).map(|power| 10_u32.pow(power)).take_while(move |step| *step <= max);
    let blocks = steps().map(|step| Rung { todos: 1, blocks_each: step });
    blocks.chain(steps().map(|step| Rung { todos: step, blocks_each: BLOCKS_EACH })).collect()
}

/// The figures of a store at one step of a ladder. Times are in milliseconds; what the system does not
/// report is left out.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Figures from while the store was filled and used.
    #[serde(flatten)]
    pub(super) filled: Filled,
    /// Opening the store with nothing of it in memory.
    open_ms: f64,
    /// From the same start to the first hit.
    pub(super) open_first_hit_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fsyncs_per_append: Option<f64>,
    /// The files of the closed store, and their bytes.
    pub(super) files: u64,
    pub(super) disk_mb: f64,
    /// The number of descriptors of the open store, after the searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) descriptors: Option<u64>,
    /// The growth of a process that opened and searched the store: in total, and without file pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rss_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) own_mb: Option<f64>,
}

/// Figures from while a store was filled, searched and appended to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Filled {
    /// The number of todos in the store.
    pub(super) todos: u32,
    /// The total number of their blocks when it was filled.
    pub(super) blocks: u64,
    /// The total number of their messages then.
    messages: u64,
    /// The bytes of all messages as JSON, including the appended ones.
    pub(super) raw_mb: f64,
    /// What the process had written to disk by the time the store was filled and indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) written_mb: Option<f64>,
    /// Messages per second while the store was filled: embedded, cut, durable and searchable.
    bulk_per_s: f64,
    /// Resuming a todo's session.
    pub(super) resume_p50: f64,
    /// Recording one message, durable and searchable.
    pub(super) append_p50: f64,
    append_p99: f64,
    /// Embedding and answering a question, each about another todo.
    pub(super) search_p50: f64,
    search_p99: f64,
}

/// Measures a step of a ladder, in a separate store in the system's folder for temporary files.
///
/// # Errors
/// When no store can be created there, or the memory fails.
pub fn climb(rung: Rung, again: &Again) -> Result<Step, BenchError> {
    let stores = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "no store could be created in the folder for temporary files".to_owned(),
        source,
    })?;
    let store = stores.path().join("store");
    let filled: Filled = again.run(&Part::Climb { rung, store: store.clone() })?;
    let files = machine::store_files(&store)?;
    let disk_mb = machine::size(&files) as f64 / MB;
    let part = Part::ClimbOpen { rung, store: store.clone() };
    let cold = (0..OPENED).map(|_| again.run(&part)).collect::<Result<Vec<_>, _>>()?;
    let cold = ColdStart::median(&cold);
    let marks = stores.path().to_owned();
    let syncs = again.syncs(&Part::ClimbAppends { rung, store, marks }, stores.path())?;
    Ok(Step {
        filled,
        open_ms: cold.open_ms,
        open_first_hit_ms: cold.first_hit_ms,
        fsyncs_per_append: syncs.map(|syncs| syncs as f64 / SYNCED as f64),
        files: files.len() as u64,
        disk_mb,
        descriptors: cold.descriptors,
        rss_mb: cold.rss_mb,
        own_mb: cold.own_mb,
    })
}

/// Returns the default options, without a graph over vectors: see [`LADDER_NOTE`].
pub(super) fn options() -> Options {
    let index = IndexConfig::default().with_hnsw_after_vectors(usize::MAX);
    Options::default().with_index(index)
}

/// Fills a store, searches it, and appends to it.
pub(super) fn measure(rung: Rung, dir: &Path) -> Result<Filled, BenchError> {
    let memory = Memory::open(dir, options())?;
    let begin = Instant::now();
    let (mut blocks, mut messages, mut bytes) = (0, 0, 0);
    for n in 0..rung.todos {
        let mut session = memory.session(&todo(n)?)?;
        bytes += fill(&mut session, rung.blocks_each, n)?;
        blocks += u64::from(session.blocks());
        messages += session.len();
    }
    let bulk_per_s = messages as f64 / begin.elapsed().as_secs_f64();
    memory.maintenance().index()?;
    let written_mb = machine::written_mb();

    let mut random = Random::new(WARM);
    let mut searches = Times::default();
    for at in 0..=TIMED {
        let (todo, text) = (some_todo(rung, at)?, random.text(ASKED));
        let search = || Ok(memory.search(&todo, &SearchRequest::new(&text))?);
        // The first one finds nothing in memory yet; the cold start is measured separately.
        if at == 0 {
            search()?
        } else {
            searches.of(search)?
        };
    }
    let (mut resumes, mut appends) = (Times::default(), Times::default());
    for at in 0..TIMED {
        let todo = some_todo(rung, at)?;
        let mut session = resumes.of(|| Ok(memory.session(&todo)?))?;
        let message = random.message(session.len());
        bytes += message.json().len() as u64;
        appends.of(|| Ok(session.record(message)?))?;
    }
    Ok(Filled {
        todos: rung.todos,
        blocks,
        messages,
        raw_mb: bytes as f64 / MB,
        written_mb,
        bulk_per_s,
        resume_p50: resumes.p50(),
        append_p50: appends.p50(),
        append_p99: appends.p99(),
        search_p50: searches.p50(),
        search_p99: searches.p99(),
    })
}

/// Records messages until a todo has this many blocks, and returns their bytes as JSON.
pub(super) fn fill(session: &mut Session, blocks: u32, seed: u32) -> Result<u64, BenchError> {
    let mut random = Random::new(u64::from(seed) + 1);
    let mut bytes = 0;
    while session.blocks() < blocks {
        let missing = blocks - session.blocks();
        let count = missing.saturating_mul(BLOCK).saturating_add(TAIL).min(BATCH);
        let first = session.len();
        let batch: Vec<_> =
            (first..first + u64::from(count)).map(|at| random.message(at)).collect();
        bytes += batch.iter().map(|message| message.json().len() as u64).sum::<u64>();
        session.record_all(batch)?;
    }
    Ok(bytes)
}

/// Measures from a closed store, with nothing of it in memory, to the first hit; then runs more
/// searches.
pub(super) fn open(rung: Rung, dir: &Path) -> Result<ColdStart, BenchError> {
    let mut random = Random::new(COLD);
    let search = |memory: &Memory, at| {
        let text = random.text(ASKED);
        memory.search(&some_todo(rung, at)?, &SearchRequest::new(&text))?;
        Ok(())
    };
    ColdStart::measure(dir, || Ok(Memory::open(dir, options())?), search, TIMED)
}

/// Appends single messages, each to another todo if there are many.
pub(super) fn appends(rung: Rung, dir: &Path, marks: &Path) -> Result<(), BenchError> {
    let memory = Memory::open(dir, options())?;
    let mut random = Random::new(APPENDED);
    between_marks(marks, || {
        for at in 0..SYNCED {
            let mut session = memory.session(&some_todo(rung, at)?)?;
            session.record(random.message(session.len()))?;
        }
        Ok(())
    })
}

pub(super) fn todo(n: u32) -> Result<TodoId, BenchError> {
    TodoId::new(&format!("todo-{n}")).map_err(|error| BenchError::Memory(error.into()))
}

/// Visits the todos in leaps, so that neighbours in the store do not follow each other.
pub(super) fn some_todo(rung: Rung, at: u64) -> Result<TodoId, BenchError> {
    let n = at * 7_919 % u64::from(rung.todos.max(1));
    todo(u32::try_from(n).unwrap_or_default())
}

const SIZES: [Column<Step>; 3] = [
    ("todos", |step| step.filled.todos.to_string()),
    ("blocks", |step| step.filled.blocks.to_string()),
    ("messages", |step| step.filled.messages.to_string()),
];

const TIMES: [Column<Step>; 8] = [
    ("bulk /s", |step| format!("{:.0}", step.filled.bulk_per_s)),
    ("resume", |step| format!("{:.2}", step.filled.resume_p50)),
    ("append", |step| format!("{:.2}", step.filled.append_p50)),
    ("append p99", |step| format!("{:.2}", step.filled.append_p99)),
    ("search", |step| format!("{:.2}", step.filled.search_p50)),
    ("search p99", |step| format!("{:.2}", step.filled.search_p99)),
    ("open", |step| format!("{:.1}", step.open_ms)),
    ("first hit", |step| format!("{:.1}", step.open_first_hit_ms)),
];

const COUNTS: [Column<Step>; 8] = [
    ("syncs", |step| machine::told(step.fsyncs_per_append, 2)),
    ("files", |step| step.files.to_string()),
    ("disk MB", |step| format!("{:.2}", step.disk_mb)),
    ("raw MB", |step| format!("{:.2}", step.filled.raw_mb)),
    ("written MB", |step| machine::told(step.filled.written_mb, 2)),
    ("descriptors", |step| machine::told(step.descriptors.map(|count| count as f64), 0)),
    ("memory MB", |step| machine::told(step.rss_mb, 1)),
    ("own MB", |step| machine::told(step.own_mb, 1)),
];

/// Returns the times of the ladders' steps, a row for each.
#[must_use]
pub fn ladder_times(steps: &[Step]) -> Sheet {
    let title =
        "Growth: messages per second in bulk; then milliseconds (median), the last two cold";
    table(title, &[&SIZES, &TIMES], steps)
}

/// Returns the counts of the ladders' steps, a row for each.
#[must_use]
pub fn ladder_counts(steps: &[Step]) -> Sheet {
    let title = "Growth: syncs per message, files and bytes on disk, and memory of an open store";
    table(title, &[&SIZES, &COUNTS], steps)
}

/// Returns times and counts in one table.
#[must_use]
pub fn ladder_sheet(steps: &[Step]) -> Sheet {
    table("Growth", &[&SIZES, &TIMES, &COUNTS], steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ladders_go_up_to_the_limit() {
        let of = |max| rungs(max).iter().map(|r| (r.todos, r.blocks_each)).collect::<Vec<_>>();
        assert_eq!(of(100), [(1, 10), (1, 100), (10, BLOCKS_EACH), (100, BLOCKS_EACH)]);
        assert_eq!(of(9), []);
        assert_eq!(of(99_999).len(), 8);
        assert_eq!(of(u32::MAX).len(), 18);
    }
}
