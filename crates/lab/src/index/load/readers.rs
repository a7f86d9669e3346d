//! Readers beside writers: does a search wait for a write, and do more cores search more?

use crate::index::again::Again;
use crate::index::ladder::{self, ASKED};
use crate::index::machine::{self, Times};
use crate::index::part::Part;
use crate::index::table::Column;
use crate::index::words::Random;
use foldback::{Memory, Mode, SearchRequest};
use foldback_bench::BenchError;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

/// The numbers of readers, and the numbers of writers beside them.
pub(super) const READERS: [u32; 5] = [1, 2, 4, 8, 16];
const WRITERS: [u32; 3] = [0, 1, 4];
/// The number of todos in the store, and of blocks in each. All are searched, and each writer writes to
/// one of them.
const TODOS: u32 = 4;
const BLOCKS: u32 = 500;
/// The number of searches of a reader.
const SEARCHES: u64 = 2_000;
/// The minimum time between two messages of a writer: faster than any agent records, and slow enough
/// that the store is nearly the same at the end.
const PACE: Duration = Duration::from_millis(10);

/// Readers beside writers. Times are in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Beside {
    readers: u32,
    writers: u32,
    searches: u64,
    searches_per_s: f64,
    search_p50: f64,
    search_p99: f64,
    /// Searches per second, relative to the same number of readers each as quick as one alone; `None`
    /// beside writers, and for more readers than cores.
    #[serde(default)]
    of_linear: Option<f64>,
    /// The p99 relative to that without writers.
    #[serde(default)]
    p99_over_idle: Option<f64>,
    /// Messages that were acknowledged to the writers meanwhile.
    writes: u64,
    writes_per_s: f64,
}

pub(super) fn step(readers: u32, dir: &Path, again: &Again) -> Result<Vec<Beside>, BenchError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Each has a separate store, because writers make it larger.
    let run = |store: String, readers, writers| -> Result<Beside, BenchError> {
        let store = dir.join(store);
        again.run(&Part::Readers { readers, writers, searches: SEARCHES, store })
    };
    let alone = run(format!("alone-{readers}"), 1, 0)?;
    let cells =
        WRITERS.iter().map(|writers| run(format!("{readers}-{writers}"), readers, *writers));
    let mut cells = cells.collect::<Result<Vec<_>, _>>()?;
    let idle = cells.first().map_or(0.0, |cell| cell.search_p99);
    for cell in &mut cells {
        match cell.writers {
            0 if readers as usize <= cores => {
                let linear = f64::from(readers) * alone.searches_per_s;
                cell.of_linear = Some(cell.searches_per_s / linear);
            }
            0 => {}
            _ => cell.p99_over_idle = Some(cell.search_p99 / idle),
        }
    }
    Ok(cells)
}

/// Creates a store and runs readers and writers on it, each a thread with a memory of its own. Each
/// reader makes this many searches; writers record until all readers have finished.
pub(in crate::index) fn measure(
    readers: u32,
    writers: u32,
    searches: u64,
    dir: &Path,
) -> Result<Beside, BenchError> {
    let memory = Memory::open(dir, ladder::options())?;
    for n in 0..TODOS {
        ladder::fill(&mut memory.session(&ladder::todo(n)?)?, BLOCKS, n)?;
    }
    memory.maintenance().index()?;
    drop(memory);
    let open = |mode| Ok(Memory::open(dir, ladder::options().with_mode(mode))?);
    // Each has found something in every todo before the first timed search.
    let reading = (0..readers).map(|n| {
        let memory = open(Mode::ReadOnly)?;
        search(&memory, u64::from(n), u64::from(TODOS), &mut Times::default())?;
        Ok(memory)
    });
    let reading = reading.collect::<Result<Vec<_>, BenchError>>()?;
    let writing =
        (0..writers).map(|_| open(Mode::ReadWrite)).collect::<Result<Vec<_>, BenchError>>()?;
    let stop = &AtomicBool::new(false);
    let begin = Instant::now();
    let (times, seconds, writes) = scope(|scope| {
        let writing: Vec<_> = writing
            .iter()
            .zip(0..)
            .map(|(memory, n)| scope.spawn(move || write(memory, n, stop)))
            .collect();
        let reading: Vec<_> = reading
            .iter()
            .zip(1_u64..)
            .map(|(memory, n)| {
                scope.spawn(move || {
                    let mut times = Times::default();
                    search(memory, n << 32, searches, &mut times).map(|()| times)
                })
            })
            .collect();
        let times = reading.into_iter().map(joined).collect::<Result<Vec<Times>, _>>();
        let seconds = begin.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let writes = writing.into_iter().map(joined).sum::<Result<u64, _>>()?;
        Ok::<_, BenchError>((times?, seconds, writes))
    })?;
    let times: Times = times.iter().flat_map(Times::iter).collect();
    let searches = searches * u64::from(readers);
    Ok(Beside {
        readers,
        writers,
        searches,
        searches_per_s: searches as f64 / seconds,
        search_p50: times.p50(),
        search_p99: times.p99(),
        of_linear: None,
        p99_over_idle: None,
        writes,
        writes_per_s: writes as f64 / seconds,
    })
}

fn search(memory: &Memory, seed: u64, count: u64, times: &mut Times) -> Result<(), BenchError> {
    let mut random = Random::new(seed + 1);
    for at in 0..count {
        let todo = ladder::todo((at % u64::from(TODOS)) as u32)?;
        let text = random.text(ASKED);
        times.of(|| Ok(memory.search(&todo, &SearchRequest::new(&text))?))?;
    }
    Ok(())
}

fn write(memory: &Memory, n: u32, stop: &AtomicBool) -> Result<u64, BenchError> {
    let mut session = memory.session(&ladder::todo(n % TODOS)?)?;
    let mut random = Random::new(u64::from(n) + 1);
    let mut writes = 0;
    while writes == 0 || !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        session.record(random.message(session.len()))?;
        writes += 1;
        std::thread::sleep(PACE.saturating_sub(begin.elapsed()));
    }
    Ok(writes)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, BenchError>>) -> Result<T, BenchError> {
    let stopped = |_| BenchError::Input("a thread of the measurement stopped".to_owned());
    thread.join().map_err(stopped)?
}

pub(super) const TITLE: &str = "Readers beside writers";

pub(super) const NOTE: &str = "Each reader and writer is a thread with a memory of its own on one store of 4 todos of 500 \
    blocks. A reader makes 2,000 searches over all todos; a writer records a durable message in one of them every \
    10 ms until the readers are done. Times are in milliseconds. \"of linear\" is given up to the number of cores.";

pub(super) const COLUMNS: [Column<Beside>; 8] = [
    ("readers", |cell| cell.readers.to_string()),
    ("writers", |cell| cell.writers.to_string()),
    ("searches /s", |cell| format!("{:.0}", cell.searches_per_s)),
    ("of linear", |cell| machine::told(cell.of_linear, 2)),
    ("search", |cell| format!("{:.3}", cell.search_p50)),
    ("search p99", |cell| format!("{:.3}", cell.search_p99)),
    ("p99 / idle", |cell| machine::told(cell.p99_over_idle, 2)),
    ("writes /s", |cell| format!("{:.0}", cell.writes_per_s)),
];
