//! One step of a ladder: a store is filled, used by a node that knows it, and searched by nodes that do not.

use super::Task;
use super::schema::{Schema, ask, connections};
use super::step::{Cold, Filled, Step, Used};
use crate::index::again::Again;
use crate::index::ladder::{self, ASKED, Rung, TIMED, some_todo};
use crate::index::machine::{self, MB, Times};
use crate::index::words::Random;
use foldback::{Memory, Options, SearchRequest};
use foldback_bench::BenchError;
use foldback_kv::{Console, Server};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// How many threads fill a store of many todos: as many as a process has connections.
const FILLERS: u32 = 8;
/// How many nodes open the store with an empty folder.
const OPENED: usize = 3;
/// Seeds of questions and of appended messages; those of the todos count from 1.
const WARM: u64 = 1 << 40;
const COLD: u64 = 2 << 40;

pub(super) fn climb(rung: Rung, server: &Server, again: &Again) -> Result<Step, BenchError> {
    let stores = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "no folder for a node could be created".to_owned(),
        source,
    })?;
    let schema = Schema::create(server)?;
    let (name, store) = (|| schema.name.clone(), stores.path().join("node"));
    let filled: Filled = again.run(&Task::Fill { rung, schema: name(), store: store.clone() })?;
    let bytes = schema.bytes()?;
    let cold = (0..OPENED).map(|n| {
        let store = stores.path().join(format!("cold-{n}"));
        again.run(&Task::Cold { rung, schema: name(), store })
    });
    let cold = Cold::median(&cold.collect::<Result<Vec<_>, BenchError>>()?);
    let used: Used = again.run(&Task::Use { rung, schema: name(), store: store.clone() })?;
    let files = machine::store_files(&store)?;
    let folder_mb = machine::size(&files) as f64 / MB;
    Ok(Step { filled, used, cold, bytes, files: files.len() as u64, folder_mb })
}

pub(super) fn options(server: &Server) -> Options {
    ladder::options().with_server(server.clone())
}

/// Fills a store, with several threads if it has many todos, and builds its indexes.
pub(super) fn fill(rung: Rung, server: &Server, dir: &Path) -> Result<Filled, BenchError> {
    let memory = Memory::open(dir, options(server))?;
    let next = AtomicU32::new(0);
    let begin = Instant::now();
    let fill = || {
        let mut filled = Filled { todos: rung.todos, ..Filled::default() };
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= rung.todos {
                return Ok(filled);
            }
            let mut session = memory.session(&ladder::todo(n)?)?;
            filled.raw_bytes += ladder::fill(&mut session, rung.blocks_each, n)?;
            filled.blocks += u64::from(session.blocks());
            filled.messages += session.len();
        }
    };
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..FILLERS.min(rung.todos)).map(|_| scope.spawn(fill)).collect();
        threads.into_iter().map(joined).collect::<Result<Vec<Filled>, _>>()
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    memory.maintenance().index()?;
    let mut sum = Filled { todos: rung.todos, ..Filled::default() };
    for part in all {
        sum.raw_bytes += part.raw_bytes;
        sum.blocks += part.blocks;
        sum.messages += part.messages;
    }
    sum.messages_per_s = sum.messages as f64 / seconds;
    Ok(sum)
}

/// Searches and appends as a node that knows the todos. Each append has a commit of the server's own beside it.
pub(super) fn work(rung: Rung, server: &Server, dir: &Path) -> Result<Used, BenchError> {
    let console = ask(Console::open(server))?;
    ask(console.ask("CREATE TABLE own (n BIGSERIAL PRIMARY KEY, bytes BYTEA)"))?;
    let memory = Memory::open(dir, options(server))?;
    let mut random = Random::new(WARM);
    let mut searches = Times::default();
    for at in 0..2 * TIMED {
        // Each todo once before it counts.
        let (todo, text) = (some_todo(rung, at % TIMED)?, random.text(ASKED));
        let search = || Ok(memory.search(&todo, &SearchRequest::new(&text))?);
        if at < TIMED {
            search()?
        } else {
            searches.of(search)?
        };
    }
    let (mut trips, mut own) = (Times::default(), Times::default());
    let (mut resumes, mut appends) = (Times::default(), Times::default());
    for at in 0..TIMED {
        let todo = some_todo(rung, at)?;
        let mut session = resumes.of(|| Ok(memory.session(&todo)?))?;
        let message = random.message(session.len());
        let bytes = message.json().len();
        appends.of(|| Ok(session.record(message)?))?;
        trips.of(|| ask(console.ask("SELECT 1")))?;
        let insert =
            format!("INSERT INTO own (bytes) VALUES (decode(repeat('ab', {bytes}), 'hex'))");
        own.of(|| ask(console.ask(&insert)))?;
    }
    Ok(Used {
        search_p50: searches.p50(),
        search_p95: searches.percentile(95.0),
        resume_p50: resumes.p50(),
        append_p50: appends.p50(),
        append_p95: appends.percentile(95.0),
        own_commit_p50: own.p50(),
        own_commit_p95: own.percentile(95.0),
        round_trip_p50: trips.p50(),
        connections: connections(&console)?,
        rss_mb: machine::resident().map(|resident| resident.all),
    })
}

/// Opens the store as a node that has nothing of it, and searches one todo twice.
pub(super) fn cold(rung: Rung, server: &Server, dir: &Path) -> Result<Cold, BenchError> {
    let mut random = Random::new(COLD);
    let before = machine::resident();
    let begin = Instant::now();
    let memory = Memory::open(dir, options(server))?;
    let open_ms = machine::ms(begin);
    let mut search = || {
        let (todo, text) = (some_todo(rung, 1)?, random.text(ASKED));
        let begin = Instant::now();
        memory.search(&todo, &SearchRequest::new(&text))?;
        Ok::<_, BenchError>(machine::ms(begin))
    };
    let (first_ms, second_ms) = (search()?, search()?);
    let grown = machine::resident().zip(before).map(|(after, before)| after.own - before.own);
    Ok(Cold { open_ms, first_ms, second_ms, own_mb: grown })
}

/// Returns what a thread returned.
pub(super) fn joined<T>(
    thread: std::thread::ScopedJoinHandle<'_, Result<T, BenchError>>,
) -> Result<T, BenchError> {
    let stopped = |_| BenchError::Input("a thread of the measurement stopped".to_owned());
    thread.join().map_err(stopped)?
}
