//! How the search over all todos grows: todos of a hundred messages each, in English and in Chinese.

use crate::index::again::Again;
use crate::index::machine::{self, MB, Times};
use crate::index::part::Part;
use crate::index::table::Column;
use crate::index::talk::Talk;
use foldback::{AllTodosRequest, Close, Memory, Mode, Options, SearchRequest};
use foldback_bench::BenchError;
use foldback_core::TodoId;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// The number of messages in a todo.
const MESSAGES: u64 = 100;
/// The number of timed questions, and of those also answered exactly, which takes a second each if
/// there are many todos.
const TIMED: u64 = 100;
const COMPARED: u64 = 20;
/// The number of hits requested for a question.
const HITS: usize = 10;
/// The number of processes that ask one question.
const STARTED: usize = 5;
/// The seed of the questions; those of the todos count from 1.
const ASKED: u64 = 1 << 40;

/// A note on the figures.
pub(super) const NOTE: &str = "A question consists of words from one message of one todo; every second is \
    Chinese. Times are in milliseconds, medians except p99. \"exact\" compares a question with every \
    vector of the records; recall@10 is the share of its ten hits that the index finds. \"process\" is a \
    separate process from opening the store to the hits, \"from disk\" the same with nothing of the \
    store in memory. Memory is that of a process that has searched, without pages of files.";

/// The cost and quality of the search over all todos in a store with this many todos.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AllTodosStep {
    #[serde(flatten)]
    filled: Filled,
    /// One question in a separate process; the system has read the files before, or has not.
    process_ms: f64,
    from_disk_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_mb: Option<f64>,
}

/// Figures from while the store was filled, indexed and searched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Filled {
    todos: u32,
    messages: u64,
    blocks: u64,
    /// Building the index from nothing, and its bytes.
    build_s: f64,
    index_mb: f64,
    /// All files of the store.
    store_mb: f64,
    search_p50: f64,
    search_p99: f64,
    exact_p50: f64,
    recall_at_10: f64,
}

/// A question asked by a separate process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Started {
    first_hit_ms: f64,
    own_mb: Option<f64>,
}

/// Grows the store in `dir` to this many todos, and measures it.
pub(super) fn step(todos: u32, dir: &Path, again: &Again) -> Result<AllTodosStep, BenchError> {
    let store = dir.join("store");
    let filled: Filled = again.run(&Part::AllTodos { todos, store: store.clone() })?;
    let start = |evicted| -> Result<(f64, Option<f64>), BenchError> {
        let mut times = Times::default();
        let mut own = None;
        for at in 0..STARTED as u64 {
            let part = Part::AllTodosAsk { todos, at, evicted, store: store.clone() };
            let started: Started = again.run(&part)?;
            times.push(started.first_hit_ms);
            own = started.own_mb.or(own);
        }
        Ok((times.p50(), own))
    };
    let (process_ms, own_mb) = start(false)?;
    let (from_disk_ms, _) = start(true)?;
    Ok(AllTodosStep { filled, process_ms, from_disk_ms, own_mb })
}

/// Fills the store up to this many todos, builds the index from nothing, and searches it.
pub(in crate::index) fn measure(todos: u32, dir: &Path) -> Result<Filled, BenchError> {
    let memory = Memory::open(dir, Options::default())?;
    let held = u32::try_from(memory.todos(None, usize::MAX)?.len()).unwrap_or(u32::MAX);
    for n in held..todos {
        let mut talk = Talk::of(u64::from(n) + 1);
        let mut session = memory.session(&todo(n)?)?;
        session.record_all((0..MESSAGES).map(|at| talk.message(at)).collect())?;
        session.close(Close::End)?;
    }
    // What a background thread has built of the index so far is removed, so that all of it is timed.
    drop(memory);
    let index = dir.join("index").join("all");
    if index.exists() {
        std::fs::remove_dir_all(&index).map_err(|source| BenchError::Io {
            what: format!("{} could not be removed", index.display()),
            source,
        })?;
    }
    let memory = Memory::open(dir, Options::default())?;
    let begin = Instant::now();
    memory.owner().index(|_, _| {})?;
    let build_s = begin.elapsed().as_secs_f64();

    let (mut searches, mut exact) = (Times::default(), Times::default());
    let (mut found, mut wanted, mut blocks) = (0, 0, 0);
    for at in 0..=TIMED {
        let question = question(todos, at);
        let request = AllTodosRequest::new(SearchRequest::new(&question).k(HITS));
        let search = || Ok(memory.owner().search(&request)?);
        // The first one opens the index.
        let answer = if at == 0 { search()? } else { searches.of(search)? };
        blocks = answer.blocks;
        if at < COMPARED {
            let request = request.exhaustive();
            let truth = exact.of(|| Ok(memory.owner().search(&request)?))?;
            let ids = |hit: &foldback::Hit| hit.block.header.block_id.clone();
            let ids: (Vec<_>, Vec<_>) =
                (answer.hits.iter().map(ids).collect(), truth.hits.iter().map(ids).collect());
            found += ids.1.iter().filter(|id| ids.0.contains(id)).count();
            wanted += ids.1.len();
        }
    }
    drop(memory);
    Ok(Filled {
        todos,
        messages: u64::from(todos) * MESSAGES,
        blocks,
        build_s,
        index_mb: machine::size(&machine::files(&index)?) as f64 / MB,
        store_mb: machine::size(&machine::files(dir)?) as f64 / MB,
        search_p50: searches.p50(),
        search_p99: searches.p99(),
        exact_p50: exact.p50(),
        recall_at_10: found as f64 / wanted.max(1) as f64,
    })
}

/// Opens the store for reading, and asks one question.
pub(in crate::index) fn ask(
    todos: u32,
    at: u64,
    evicted: bool,
    dir: &Path,
) -> Result<Started, BenchError> {
    if evicted {
        machine::evict(dir)?;
    }
    let resident = machine::resident();
    let begin = Instant::now();
    let memory = Memory::open(dir, Options::default().with_mode(Mode::ReadOnly))?;
    let question = question(todos, TIMED + 1 + at);
    memory.owner().search(&AllTodosRequest::new(SearchRequest::new(&question).k(HITS)))?;
    let first_hit_ms = machine::ms(begin);
    let grown = machine::resident().zip(resident);
    Ok(Started { first_hit_ms, own_mb: grown.map(|(after, before)| after.own - before.own) })
}

/// Returns some words of a message of some todo.
fn question(todos: u32, at: u64) -> String {
    let n = at * 7_919 % u64::from(todos.max(1));
    // Chinese and English todos alternate, and so do questions with even and odd numbers.
    let n = if n % 2 == at % 2 { n } else { (n + 1) % u64::from(todos.max(1)) };
    Talk::of(n + 1).question(ASKED + at, MESSAGES)
}

fn todo(n: u32) -> Result<TodoId, BenchError> {
    TodoId::new(&format!("talk-{n}")).map_err(|error| BenchError::Memory(error.into()))
}

pub(super) const TITLE: &str = "The search over all todos";

pub(super) const COLUMNS: [Column<AllTodosStep>; 13] = [
    ("todos", |step| step.filled.todos.to_string()),
    ("messages", |step| step.filled.messages.to_string()),
    ("blocks", |step| step.filled.blocks.to_string()),
    ("build s", |step| format!("{:.1}", step.filled.build_s)),
    ("index MB", |step| format!("{:.1}", step.filled.index_mb)),
    ("store MB", |step| format!("{:.1}", step.filled.store_mb)),
    ("own MB", |step| machine::told(step.own_mb, 1)),
    ("search", |step| format!("{:.1}", step.filled.search_p50)),
    ("p99", |step| format!("{:.1}", step.filled.search_p99)),
    ("process", |step| format!("{:.0}", step.process_ms)),
    ("from disk", |step| format!("{:.0}", step.from_disk_ms)),
    ("exact", |step| format!("{:.0}", step.filled.exact_p50)),
    ("recall@10", |step| format!("{:.3}", step.filled.recall_at_10)),
];
