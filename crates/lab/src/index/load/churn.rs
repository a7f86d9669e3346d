//! Todos that come and go, day after day: is their space reclaimed?

use super::{Measured, failed};
use crate::index::again::Again;
use crate::index::ladder;
use crate::index::machine::{self, MB};
use crate::index::part::Part;
use crate::index::slope::{Slope, cells};
use crate::index::table::{Column, table};
use crate::index::words::Random;
use foldback::{ErrorKind, Memory, Options};
use foldback_bench::{BenchError, Sheet};
use foldback_core::{Message, TodoId, ToolCall, ToolCallId};
use foldback_kv::{Engine, Key, Kv, Mode, Registry, Space};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The default number of todos that are created each day.
pub(super) const TODOS_A_DAY: u32 = 1_000;
/// The number of messages in a new todo, and the number that each existing todo gets every day.
const MESSAGES: u64 = 16;
const MORE: u64 = 4;
/// One in this many todos is kept in the evening, and forgotten this many days later: from then on, as
/// much goes each day as comes.
const STAYS: u32 = 10;
const DAYS: usize = 3;
/// One in this many todos has a result of this many words: a payload in a separate file.
const LARGE: u32 = 15;
const WORDS: usize = 15_000;

/// The store at the end of a day.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Day {
    day: u32,
    /// The number of todos, and of those that were forgotten that day.
    todos: u64,
    forgotten: u64,
    /// The bytes of the records and payloads of the existing todos.
    live_mb: f64,
    /// All files, before and after compaction.
    before_mb: f64,
    disk_mb: f64,
    disk_over_live: f64,
    files: u64,
    /// The memory of the process, which is the same process on all days: in total, and without file
    /// pages.
    rss_mb: Option<f64>,
    own_mb: Option<f64>,
    seconds: f64,
}

/// The days, and the findings of a check of the whole store after the last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::index) struct Churned {
    todos_a_day: u32,
    days: Vec<Day>,
    findings: Vec<String>,
}

pub(super) fn step(
    days: u32,
    todos_a_day: u32,
    dir: &Path,
    again: &Again,
) -> Result<Churned, BenchError> {
    again.run(&Part::Churn { days, todos_a_day, store: dir.join("store") })
}

/// Runs through the days in one process.
pub(in crate::index) fn measure(
    days: u32,
    todos_a_day: u32,
    dir: &Path,
) -> Result<Churned, BenchError> {
    let kv = foldback_kv::open(dir, Engine::Sqlite, Mode::ReadWrite).map_err(failed)?;
    let memory = Memory::open_on(kv.clone(), Some(dir), Options::default())?;
    let mut kept: VecDeque<Vec<TodoId>> = VecDeque::new();
    let mut rows = Vec::new();
    for day in 1..=days {
        let begin = Instant::now();
        for todo in kept.iter().flatten() {
            let mut session = memory.session(todo)?;
            let mut random = Random::new(u64::from(day) << 40);
            (0..MORE).try_for_each(|at| session.record(random.message(at)).map(drop))?;
        }
        let first = (day - 1) * todos_a_day;
        let made = (first..first + todos_a_day).map(|n| make(&memory, n));
        let made = made.collect::<Result<Vec<_>, _>>()?;
        let stay: Vec<_> = made.iter().step_by(STAYS as usize).cloned().collect();
        let old = if kept.len() == DAYS { kept.pop_front() } else { None }.unwrap_or_default();
        let go = made
            .iter()
            .zip(0_u32..)
            .filter(|(_, n)| !n.is_multiple_of(STAYS))
            .map(|(todo, _)| todo);
        let go: Vec<_> = go.chain(&old).collect();
        go.iter().try_for_each(|todo| memory.maintenance().forget(todo))?;
        kept.push_back(stay);

        memory.maintenance().index()?;
        let before_mb = machine::size(&machine::store_files(dir)?) as f64 / MB;
        compact(&memory)?;
        let files = machine::store_files(dir)?;
        let disk_mb = machine::size(&files) as f64 / MB;
        let (todos, live) = live(&memory, &kv)?;
        let resident = machine::resident();
        rows.push(Day {
            day,
            todos,
            forgotten: go.len() as u64,
            live_mb: live as f64 / MB,
            before_mb,
            disk_mb,
            disk_over_live: disk_mb * MB / live.max(1) as f64,
            files: files.len() as u64,
            rss_mb: resident.map(|resident| resident.all),
            own_mb: resident.map(|resident| resident.own),
            seconds: begin.elapsed().as_secs_f64(),
        });
    }
    let findings = memory.maintenance().doctor()?.findings;
    Ok(Churned { todos_a_day, days: rows, findings })
}

/// Creates a todo of some messages; some todos include a large result.
fn make(memory: &Memory, n: u32) -> Result<TodoId, BenchError> {
    let id = ladder::todo(n)?;
    let mut random = Random::new(u64::from(n) + 1);
    let mut messages: Vec<_> = (0..MESSAGES).map(|at| random.message(at)).collect();
    if n.is_multiple_of(LARGE) {
        messages.push(Message::calls("", vec![ToolCall::new("call", "read", "{}")]));
        messages.push(Message::tool_result(&ToolCallId::new("call"), &random.text(WORDS)));
    }
    memory.session(&id)?.record_all(messages)?;
    Ok(id)
}

/// Reclaims space once the previous upkeep no longer reads old pages.
fn compact(memory: &Memory) -> Result<(), BenchError> {
    const TRIES: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 0..TRIES {
        match memory.maintenance().compact() {
            Err(error) if error.kind() == ErrorKind::Locked => thread::sleep(PAUSE),
            done => return Ok(done?),
        }
    }
    Ok(memory.maintenance().compact()?)
}

/// Returns the number of todos, and the bytes of what the store keeps of them: records and payloads.
fn live(memory: &Memory, kv: &Arc<dyn Kv>) -> Result<(u64, u64), BenchError> {
    let todos = Registry::new(kv.clone()).list(0, usize::MAX).map_err(failed)?;
    let mut bytes = 0;
    for todo in &todos {
        // A payload is counted once, wherever its bytes are.
        for space in Space::ALL.into_iter().filter(|space| *space != Space::PayloadBytes) {
            let records = kv.scan(space, todo.no(), 0..Key::N_END, usize::MAX).map_err(failed)?;
            bytes += records.iter().map(|(_, value)| value.len() as u64).sum::<u64>();
        }
        let payloads = memory.payloads().metas(todo, 0, usize::MAX);
        let payloads = payloads.map_err(failed)?;
        bytes += payloads.iter().map(|payload| payload.stored).sum::<u64>();
    }
    Ok((todos.len() as u64, bytes))
}

const NOTE: &str = "A day: each existing todo gets 4 messages, new ones of 16 messages are created, every 15th \
    with a payload in a file; in the evening nine of ten new ones are forgotten, and those that were kept three days \
    before; then the indexes catch up and the store is compacted. \"live\" is the records and payloads of the existing \
    todos; \"disk\" is all files except the MiB that is reserved for a full disk. One process runs through \
    all days. The slopes are over the days after the third evening, from which on as much goes as comes: least squares, \
    with 95 % bounds (Draper and Smith, Applied Regression Analysis, section 1.4).";

const COLUMNS: [Column<Day>; 11] = [
    ("day", |day| day.day.to_string()),
    ("todos", |day| day.todos.to_string()),
    ("forgotten", |day| day.forgotten.to_string()),
    ("live MB", |day| format!("{:.2}", day.live_mb)),
    ("before MB", |day| format!("{:.2}", day.before_mb)),
    ("disk MB", |day| format!("{:.2}", day.disk_mb)),
    ("disk / live", |day| format!("{:.2}", day.disk_over_live)),
    ("files", |day| day.files.to_string()),
    ("memory MB", |day| machine::told(day.rss_mb, 1)),
    ("own MB", |day| machine::told(day.own_mb, 1)),
    ("seconds", |day| format!("{:.1}", day.seconds)),
];

/// The figures that are fitted over the days: the name, and the value of a day.
type Figure = (&'static str, fn(&Day) -> Option<f64>);

const FIGURES: [Figure; 5] = [
    ("disk_mb", |day| Some(day.disk_mb)),
    ("live_mb", |day| Some(day.live_mb)),
    ("files", |day| Some(day.files as f64)),
    ("rss_mb", |day| day.rss_mb),
    ("own_mb", |day| day.own_mb),
];

/// Returns the tables of days and of slopes.
pub(super) fn measured(churned: &[Churned]) -> Measured {
    let days: Vec<Day> = churned.iter().flat_map(|churned| churned.days.clone()).collect();
    let findings: Vec<&String> = churned.iter().flat_map(|churned| &churned.findings).collect();
    let steady = days.get(DAYS..).unwrap_or_default();
    let slope = |(name, figure): &Figure| {
        let points = steady.iter().filter_map(|day| Some((f64::from(day.day), figure(day)?)));
        (*name, Slope::of(&points.collect::<Vec<_>>()))
    };
    let slopes: BTreeMap<&str, Option<Slope>> = FIGURES.iter().map(slope).collect();
    let mut fitted = Sheet::new("Slope a day", &["figure"], &["slope", "from", "to"]);
    for (name, slope) in &slopes {
        fitted.row([(*name).to_owned()].into_iter().chain(cells(*slope)));
    }
    let todos_a_day = churned.iter().map(|churned| churned.todos_a_day).max();
    let title = format!("Churn: {} todos a day", todos_a_day.unwrap_or_default());
    let check = match findings.as_slice() {
        [] => "A check of the whole store found nothing.".to_owned(),
        found => format!("A check of the whole store found {}: {}", found.len(), found[0]),
    };
    Measured {
        sheets: vec![table(&title, &[&COLUMNS], &days), fitted],
        json: json!({ "steps": days, "slopes": slopes, "findings": findings }),
        note: format!("{NOTE} {check}"),
    }
}
