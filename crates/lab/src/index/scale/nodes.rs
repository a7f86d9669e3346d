//! One node beside two: how much more do two do over one server, and what is the limit?

use super::Task;
use super::climb::{joined, options};
use super::schema::{Schema, ask};
use crate::index::again::Again;
use crate::index::ladder::{self, ASKED};
use crate::index::load::Measured;
use crate::index::machine::{self, Times, told};
use crate::index::table::{Column, table};
use crate::index::words::Random;
use foldback::{Memory, SearchRequest};
use foldback_bench::BenchError;
use foldback_kv::{Console, Server};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long nodes may take to start, and how many blocks a todo has before.
const START: Duration = Duration::from_secs(5);
const BLOCKS: u32 = 50;
/// How far apart nodes that work at the same time may begin.
const APART_S: f64 = 0.5;
/// How often the server is asked what its connections wait for.
const SAMPLED: Duration = Duration::from_millis(20);

/// What each node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// The number of its threads, each with a todo of its own.
    pub threads: u32,
    /// Whether they search; else they append.
    pub searches: bool,
    /// How long.
    pub seconds: u32,
}

/// What some nodes did.
#[derive(Clone, Debug, Serialize)]
struct Row {
    does: &'static str,
    nodes: u32,
    threads_each: u32,
    per_s: f64,
    p50: f64,
    p95: f64,
    /// What one node did with as many threads, in proportion.
    of_one: f64,
    /// The cores that the nodes used, and those that everything else on the machine used.
    cores_nodes: f64,
    cores_others: Option<f64>,
    /// What the busy connections of the server waited for, as parts of all samples; `processor` where they waited for none.
    waits: BTreeMap<String, f64>,
}

/// What one node did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Worked {
    times: Vec<f64>,
    cpu_s: f64,
    seconds: f64,
    /// When it began, in seconds since 1970.
    begun_s: f64,
}

pub(super) fn measure(
    most: u32,
    seconds: u32,
    server: &Server,
    again: &Again,
    mut told: impl FnMut(&str),
) -> Result<Measured, BenchError> {
    let mut rows: Vec<Row> = Vec::new();
    for searches in [false, true] {
        for threads in (0..16).map(|power| 1 << power).take_while(|threads| *threads <= most) {
            let load = NodeLoad { threads, searches, seconds };
            let one = run(1, load, server, again)?;
            let mut two = run(2, load, server, again)?;
            two.of_one = two.per_s / one.per_s;
            told(&format!("{}, {threads} each: {:.2} times", two.does, two.of_one));
            rows.extend([one, two]);
        }
    }
    let title = "Nodes over one server: operations per second, milliseconds, cores";
    let sheets = vec![table(title, &[&COLUMNS], &rows)];
    Ok(Measured { sheets, json: json!({ "steps": rows }), note: NOTE.to_owned() })
}

fn run(nodes: u32, load: NodeLoad, server: &Server, again: &Again) -> Result<Row, BenchError> {
    let stores = tempfile::tempdir().map_err(|source| BenchError::Io {
        what: "no folder for a node could be created".to_owned(),
        source,
    })?;
    let schema = Schema::create(server)?;
    // The tables exist before two nodes want to create them.
    drop(Memory::open(&stores.path().join("maker"), options(&server.in_schema(&schema.name)))?);
    let task = |node: u32| Task::Work {
        node,
        load,
        schema: schema.name.clone(),
        store: stores.path().join(format!("node-{node}")),
    };
    let begun = Instant::now();
    let is_over = &AtomicBool::new(false);
    let (worked, (waits, others)) = std::thread::scope(|scope| {
        let working: Vec<_> =
            (0..nodes).map(task).map(|task| scope.spawn(move || again.run(&task))).collect();
        let watching = scope.spawn(|| watch(&schema.console, load, begun, is_over));
        let worked: Result<Vec<Worked>, _> = working.into_iter().map(joined).collect();
        is_over.store(true, Ordering::Relaxed);
        Ok::<_, BenchError>((worked?, joined(watching)?))
    })?;
    together(&worked)?;
    let times: Times = worked.iter().flat_map(|node| node.times.iter().copied()).collect();
    let per_s = worked.iter().map(|node| node.times.len() as f64 / node.seconds).sum();
    let cores_nodes = worked.iter().map(|node| node.cpu_s / node.seconds).sum();
    Ok(Row {
        does: if load.searches { "search" } else { "append" },
        nodes,
        threads_each: load.threads,
        per_s,
        p50: times.p50(),
        p95: times.percentile(95.0),
        of_one: 1.0,
        cores_nodes,
        cores_others: others.map(|all| all - cores_nodes),
        waits,
    })
}

/// Checks that nodes worked at the same time.
fn together(worked: &[Worked]) -> Result<(), BenchError> {
    let begun = || worked.iter().map(|node| node.begun_s);
    let apart = begun().fold(f64::MIN, f64::max) - begun().fold(f64::MAX, f64::min);
    if apart <= APART_S {
        return Ok(());
    }
    Err(BenchError::Input(format!(
        "the nodes did not work at the same time: they began {apart:.1} s apart, because one took longer than {} s to start",
        START.as_secs()
    )))
}

/// Asks the server what its busy connections wait for, while nodes work. Returns that, and how many cores of this machine
/// were in use.
fn watch(
    console: &Console,
    load: NodeLoad,
    begun: Instant,
    is_over: &AtomicBool,
) -> Result<(BTreeMap<String, f64>, Option<f64>), BenchError> {
    std::thread::sleep(START.saturating_sub(begun.elapsed()) + Duration::from_millis(500));
    let (from, cpu) = (Instant::now(), machine::machine_cpu_s());
    let mut waits: BTreeMap<String, f64> = BTreeMap::new();
    let until = f64::from(load.seconds) - 1.0;
    while from.elapsed().as_secs_f64() < until && !is_over.load(Ordering::Relaxed) {
        let rows = ask(console.ask(
            "SELECT COALESCE(wait_event_type || ':' || wait_event, 'processor'), count(*) \
             FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() \
             AND pid <> pg_backend_pid() GROUP BY 1",
        ))?;
        for row in rows {
            if let [wait, count] = row.as_slice() {
                *waits.entry(wait.clone()).or_default() += count.parse().unwrap_or(0.0);
            }
        }
        std::thread::sleep(SAMPLED);
    }
    let sum: f64 = waits.values().sum();
    waits.values_mut().for_each(|count| *count /= sum.max(1.0));
    let used = machine::machine_cpu_s().zip(cpu);
    Ok((waits, used.map(|(now, before)| (now - before) / from.elapsed().as_secs_f64())))
}

/// Appends to, or searches, one todo in each thread for some seconds.
pub(super) fn work(
    node: u32,
    load: NodeLoad,
    server: &Server,
    dir: &Path,
) -> Result<Worked, BenchError> {
    let NodeLoad { threads, searches, seconds } = load;
    let started = Instant::now();
    let memory = Memory::open(dir, options(server))?;
    let todo = |n| ladder::todo(node * threads + n);
    for n in 0..threads {
        let blocks = if searches { BLOCKS } else { 1 };
        ladder::fill(&mut memory.session(&todo(n)?)?, blocks, n)?;
    }
    // All nodes begin at about the same time.
    std::thread::sleep(START.saturating_sub(started.elapsed()));
    let begun_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let (begin, cpu) = (Instant::now(), machine::cpu_s());
    let one = |n| {
        let (todo, mut times) = (todo(n)?, Times::default());
        let mut session = memory.session(&todo)?;
        let mut random = Random::new(u64::from(node * threads + n) + 1);
        while begin.elapsed() < Duration::from_secs(u64::from(seconds)) {
            if searches {
                let text = random.text(ASKED);
                times.of(|| Ok(memory.search(&todo, &SearchRequest::new(&text))?))?;
            } else {
                let message = random.message(session.len());
                times.of(|| Ok(session.record(message)?))?;
            }
        }
        Ok(times)
    };
    let times = std::thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|n| scope.spawn(move || one(n))).collect();
        working.into_iter().map(joined).collect::<Result<Vec<Times>, BenchError>>()
    })?;
    let (seconds, cpu_s) = (begin.elapsed().as_secs_f64(), machine::cpu_s() - cpu);
    Ok(Worked { times: times.iter().flat_map(Times::iter).collect(), cpu_s, seconds, begun_s })
}

const COLUMNS: [Column<Row>; 10] = [
    ("does", |row| row.does.to_owned()),
    ("nodes", |row| row.nodes.to_string()),
    ("threads each", |row| row.threads_each.to_string()),
    ("/s", |row| format!("{:.0}", row.per_s)),
    ("of one", |row| format!("{:.2}", row.of_one)),
    ("p50", |row| format!("{:.2}", row.p50)),
    ("p95", |row| format!("{:.2}", row.p95)),
    ("cores of nodes", |row| format!("{:.2}", row.cores_nodes)),
    ("of others", |row| told(row.cores_others, 2)),
    ("server waits for", |row| {
        let mut waits: Vec<_> = row.waits.iter().collect();
        waits.sort_by(|one, other| other.1.total_cmp(one.1));
        let waits =
            waits.iter().take(3).map(|(wait, part)| format!("{wait} {:.0} %", **part * 100.0));
        waits.collect::<Vec<_>>().join(", ")
    }),
];

const NOTE: &str = "Each node is a process with a folder of its own, each thread has a todo of its own. \"of others\" \
    are the cores of this machine that others used, the server among them if it is here.";
