//! Workload W1: the operations that other stores are measured by, in the same order and under the
//! same names.

use super::again::Again;
use super::cold::ColdStart;
use super::contestant::Contestant;
use super::machine::{self, MB, Times};
use super::part::{Part, between_marks};
use super::workload::{Meta, Question, SINGLE_ADDS, Workload};
use foldback_bench::{BenchError, Sheet};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// The number of blocks in a batch of the bulk load.
const BATCH: usize = 500;
/// The number of warm-up questions.
const WARM_UP: usize = 20;
/// The number of hits requested for a question.
const LIMIT: usize = 10;
/// The number of single adds after which a block is searched for.
const LOOK: usize = 20;
/// The number of processes that open the store cold.
const OPENED: usize = 5;
/// For the store whose syncs are counted: the blocks before, and the single adds.
const SYNCED: (usize, usize) = (50, 20);

/// The store's results in workload W1: one line of the joint table. Times are in milliseconds; what the
/// system does not report is left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Standing {
    peer: String,
    key: String,
    #[serde(flatten)]
    meta: Meta,
    /// Blocks per second, until all were durable and indexed, and the store was closed and open again.
    bulk_per_s: f64,
    /// Search by meaning alone.
    vec_p50: f64,
    vec_p99: f64,
    /// Search by BM25 alone.
    txt_p50: f64,
    txt_p99: f64,
    /// Search as foldback ranks: scores are fused, not ranks.
    hyb_p50: f64,
    hyb_p99: f64,
    /// The share of the ten nearest blocks that a search by meaning finds.
    ann_recall10: f64,
    /// The share of questions whose own block is among the ten hits.
    hit_vec: f64,
    hit_txt: f64,
    hit_hyb: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_mb: Option<f64>,
    disk_ratio: f64,
    disk_mb: f64,
    raw_mb: f64,
    /// Adds of a single block, each durable.
    add_p50: f64,
    add_p99: f64,
    add_max: f64,
    /// How often a block that was just added was the first hit of its own vector.
    visible: String,
    vec_p50_after_200_adds: f64,
    #[serde(flatten)]
    cold: Option<Cold>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fsyncs_per_add: Option<f64>,
}

/// Medians over several processes that opened the store cold.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cold {
    open_ms: f64,
    open_first_hit_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_rss_mb: Option<f64>,
}

/// Runs workload W1, in stores beside its files.
///
/// # Errors
/// When the workload's files are not valid, nothing can be written beside them, or the memory fails.
pub fn contest(dir: &Path, again: &Again) -> Result<Standing, BenchError> {
    // Faults in the files are reported before anything is started.
    drop(Workload::read(dir)?);
    let temporary = tempfile::Builder::new().prefix("store_foldback").tempdir_in(dir);
    let stores = temporary.map_err(|source| BenchError::Io {
        what: format!("no store could be created in {}", dir.display()),
        source,
    })?;
    let folder = |name: &str| stores.path().join(name);
    let workload = dir.to_owned();

    let part = Part::Contest { workload: workload.clone(), store: folder("store") };
    let mut standing: Standing = again.run(&part)?;
    let part = Part::ContestOpen { workload: workload.clone(), store: folder("store") };
    let cold = (0..OPENED).map(|_| again.run(&part)).collect::<Result<Vec<_>, _>>()?;
    let cold = ColdStart::median(&cold);
    standing.cold = Some(Cold {
        open_ms: cold.open_ms,
        open_first_hit_ms: cold.first_hit_ms,
        open_rss_mb: cold.rss_mb,
    });
    let (store, marks) = (folder("synced"), stores.path().to_owned());
    let syncs = again.syncs(&Part::ContestAdds { workload, store, marks }, stores.path())?;
    standing.fsyncs_per_add = syncs.map(|syncs| syncs as f64 / SYNCED.1 as f64);
    Ok(standing)
}

/// Runs the bulk load, the searches, memory and disk, and the single adds.
pub(super) fn measure(workload: &Workload, dir: &Path) -> Result<Standing, BenchError> {
    let n = workload.meta.n;
    let before = machine::resident();
    let (store, bulk_per_s) = load(workload, dir)?;
    for (question, vector) in asked(workload).take(WARM_UP) {
        store.by_meaning(workload, &question.todo, vector, LIMIT)?;
        store.by_words(workload, &question.todo, &question.text, LIMIT)?;
    }
    let Searches { vec, txt, hyb, recall, hits } = Searches::of(&store, workload)?;
    let questions = workload.questions.len() as f64;
    let [hit_vec, hit_txt, hit_hyb] = hits.map(|hits| hits as f64 / questions);
    let rss_mb = machine::resident().zip(before).map(|(after, before)| after.all - before.all);
    let disk = machine::size(&machine::files(dir)?) as f64;
    let raw = workload.raw_bytes() as f64;
    let Adds { times: adds, seen, looked } = Adds::of(&store, workload, n)?;
    let mut after = Times::default();
    for (question, vector) in asked(workload) {
        after.of(|| store.by_meaning(workload, &question.todo, vector, LIMIT))?;
    }
    Ok(Standing {
        peer: "foldback".to_owned(),
        key: "foldback".to_owned(),
        meta: workload.meta.clone(),
        bulk_per_s,
        vec_p50: vec.p50(),
        vec_p99: vec.p99(),
        txt_p50: txt.p50(),
        txt_p99: txt.p99(),
        hyb_p50: hyb.p50(),
        hyb_p99: hyb.p99(),
        ann_recall10: recall / questions,
        hit_vec,
        hit_txt,
        hit_hyb,
        rss_mb,
        disk_ratio: disk / raw,
        disk_mb: disk / MB,
        raw_mb: raw / MB,
        add_p50: adds.p50(),
        add_p99: adds.p99(),
        add_max: adds.percentile(100.0),
        visible: format!("{seen}/{looked}"),
        vec_p50_after_200_adds: after.p50(),
        cold: None,
        fsyncs_per_add: None,
    })
}

/// Returns the store with all blocks, and how many were loaded per second until it was closed and open
/// again.
fn load(workload: &Workload, dir: &Path) -> Result<(Contestant, f64), BenchError> {
    let Meta { n, dim, .. } = workload.meta;
    let begin = Instant::now();
    let loading = Contestant::open(dir, dim)?;
    for from in (0..n).step_by(BATCH) {
        loading.add(workload, from..n.min(from + BATCH))?;
    }
    loading.maintain(workload.by_todo(0..n).into_keys())?;
    drop(loading);
    let store = Contestant::open(dir, dim)?;
    Ok((store, n as f64 / begin.elapsed().as_secs_f64()))
}

/// Returns the questions, each with its vector.
fn asked(workload: &Workload) -> impl Iterator<Item = (&Question, &[f32])> {
    let vectors = (0..workload.questions.len()).map(move |at| workload.question_vector(at));
    workload.questions.iter().zip(vectors)
}

/// The results of all questions, each asked in three ways.
#[derive(Default)]
struct Searches {
    vec: Times,
    txt: Times,
    hyb: Times,
    /// The sum of the shares of the nearest blocks that were found by meaning.
    recall: f64,
    /// The number of questions that found their own block, by meaning, by words and by both.
    hits: [usize; 3],
}

impl Searches {
    fn of(store: &Contestant, workload: &Workload) -> Result<Self, BenchError> {
        let mut searches = Self::default();
        for (question, vector) in asked(workload) {
            let (todo, text) = (&question.todo, &question.text);
            let meaning = searches.vec.of(|| store.by_meaning(workload, todo, vector, LIMIT))?;
            let words = searches.txt.of(|| store.by_words(workload, todo, text, LIMIT))?;
            let fused = searches.hyb.of(|| store.fused(workload, todo, text, vector, LIMIT))?;
            let same = question.truth.iter().filter(|line| meaning.contains(line)).count();
            searches.recall += same as f64 / question.truth.len() as f64;
            for (hits, found) in searches.hits.iter_mut().zip([&meaning, &words, &fused]) {
                *hits += usize::from(found.contains(&question.target));
            }
        }
        Ok(searches)
    }
}

/// Adds single blocks, and counts how often a block was found right after it was added.
#[derive(Default)]
struct Adds {
    times: Times,
    seen: usize,
    looked: usize,
}

impl Adds {
    fn of(store: &Contestant, workload: &Workload, n: usize) -> Result<Self, BenchError> {
        let mut adds = Self::default();
        for (added, line) in (n..n + SINGLE_ADDS).enumerate() {
            adds.times.of(|| store.add(workload, line..line + 1))?;
            if added % LOOK == LOOK - 1 {
                let Some(block) = workload.blocks.get(line) else { break };
                adds.looked += 1;
                let found = store.by_meaning(workload, &block.todo, workload.vector(line), 1)?;
                adds.seen += usize::from(found.first() == Some(&line));
            }
        }
        Ok(adds)
    }
}

/// Measures from a closed store, with nothing of it in memory, to the first hit by meaning.
pub(super) fn open(workload: &Workload, dir: &Path) -> Result<ColdStart, BenchError> {
    let Some(question) = workload.questions.first() else {
        return Err(BenchError::Input("the workload holds no question".to_owned()));
    };
    let search = |store: &Contestant, _| {
        store.by_meaning(workload, &question.todo, workload.question_vector(0), LIMIT).map(drop)
    };
    ColdStart::measure(dir, || Contestant::open(dir, workload.meta.dim), search, 0)
}

/// Adds single blocks to a store of a few blocks.
pub(super) fn adds(workload: &Workload, dir: &Path, marks: &Path) -> Result<(), BenchError> {
    let store = Contestant::open(dir, workload.meta.dim)?;
    let (before, adds) = SYNCED;
    store.add(workload, 0..before)?;
    between_marks(marks, || {
        (before..before + adds).try_for_each(|line| store.add(workload, line..line + 1))
    })
}

impl Standing {
    /// Returns the result as a table with the measures of the joint table.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let two = |one: f64, other: f64| format!("{one:.2}/{other:.2}");
        let Meta { n, dim, todos, .. } = &self.meta;
        let title = format!(
            "Workload W1: {n} blocks, vectors of {dim} numbers, {todos} {}; milliseconds (p50/p99)",
            if *todos == 1 { "todo" } else { "todos" }
        );
        let mut sheet = Sheet::new(&title, &["measured"], &["foldback"]);
        let rows = [
            ("bulk, blocks a second", format!("{:.0}", self.bulk_per_s)),
            ("add of one block", two(self.add_p50, self.add_p99)),
            ("syncs an add", machine::told(self.fsyncs_per_add, 2)),
            ("found at once", self.visible.clone()),
            ("search by vector", two(self.vec_p50, self.vec_p99)),
            ("search by words", two(self.txt_p50, self.txt_p99)),
            ("search, fused", two(self.hyb_p50, self.hyb_p99)),
            ("vector p50 after 200 adds", format!("{:.2}", self.vec_p50_after_200_adds)),
            ("recall@10 of exact search", format!("{:.3}", self.ann_recall10)),
            ("hit@10 vector", format!("{:.3}", self.hit_vec)),
            ("hit@10 words", format!("{:.3}", self.hit_txt)),
            ("hit@10 fused", format!("{:.3}", self.hit_hyb)),
            ("memory, MB", machine::told(self.rss_mb, 1)),
            ("disk, MB", format!("{:.1}", self.disk_mb)),
            ("disk over raw", format!("{:.2}", self.disk_ratio)),
            ("cold: open", machine::told(self.cold.map(|cold| cold.open_ms), 1)),
            ("cold: first hit", machine::told(self.cold.map(|cold| cold.open_first_hit_ms), 1)),
        ];
        for (name, value) in rows {
            sheet.row([name.to_owned(), value]);
        }
        sheet
    }
}
