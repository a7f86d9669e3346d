//! Plans in a form that any scheduler can be given: numbered steps, their dependences and their
//! durations.

use super::clock::milliseconds;
use super::closed_form::critical_path;
use super::generated::{Family, plan};
use super::gold::{GoldPlan, PlanSet};
use crate::index::Random;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A plan in a form that any scheduler can be given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dag {
    /// Its name; no other of the same file has it.
    pub name: String,
    /// What it tests.
    pub kind: DagKind,
    /// Its critical path, in milliseconds; 0 for a cycle.
    pub critical_path_ms: f64,
    /// The steps, in the order in which a planner writes them.
    pub steps: Vec<DagStep>,
}

/// What a plan tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DagKind {
    /// Tools that take no time: only the scheduler is measured.
    Overhead,
    /// A recorded plan, whose tools take time.
    Recorded,
    /// A tool fails.
    Error,
    /// Steps wait for each other.
    Cycle,
    /// The planner is still writing while steps run.
    Streamed,
    /// One step's answer looks like a reference to another.
    Substitution,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DagStep {
    /// Its number, counted from 1.
    pub id: u32,
    /// The numbers of the steps that it waits for.
    pub after: Vec<u32>,
    /// The time that its tool takes, in milliseconds.
    pub ms: f64,
    /// Whether its tool fails.
    pub fails: bool,
    /// The time at which the planner has written it, in milliseconds from the start.
    pub planned_ms: f64,
    /// The arguments of its tool; `$2` is the answer of step 2.
    pub arguments: Vec<String>,
    /// The answer of its tool.
    pub result: String,
}

/// A file of plans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dags {
    /// The plans.
    pub dags: Vec<Dag>,
}

/// The shapes whose overhead is measured, with their sizes.
pub const LADDER: [(Family, usize); 8] = [
    (Family::Chain, 20),
    (Family::Chain, 50),
    (Family::Independent, 100),
    (Family::ForkJoin, 100),
    (Family::Tree, 100),
    (Family::Layered, 100),
    (Family::Chain, 200),
    (Family::Independent, 1_000),
];

/// The maximum number of recorded plans per set that both schedulers run in wall-clock time.
const RECORDED_MOST: usize = 14;
/// The minimum time of a tool, in milliseconds.
const TOOL_LEAST: f64 = 10.0;
/// The factor from the minimum time of a tool to the maximum; times are uniform in their logarithm.
const TOOL_SPREAD: f64 = 10.0;

impl Dags {
    /// Returns the shapes of [`LADDER`], some recorded plans of each set (evenly chosen), and plans
    /// that go wrong in other schedulers.
    #[must_use]
    pub fn of(recorded: &[GoldPlan], seed: u64) -> Self {
        let ladder = LADDER.into_iter().map(|(family, size)| {
            let waits = plan(family, size, seed).waits();
            Dag::new(format!("{} {size}", family.as_str()), DagKind::Overhead, &waits, &[])
        });
        let chosen = PlanSet::ALL.into_iter().flat_map(|set| {
            let all: Vec<&GoldPlan> = recorded.iter().filter(|gold| gold.set == set).collect();
            let every = all.len().div_ceil(RECORDED_MOST).max(1);
            all.into_iter().step_by(every)
        });
        let chosen = chosen.map(|gold| {
            let waits = gold.waits();
            let times = tool_times(&gold.id, waits.len(), seed);
            Dag::new(gold.id.clone(), DagKind::Recorded, &waits, &times)
        });
        Self { dags: ladder.chain(chosen).chain(trouble()).collect() }
    }
}

/// Returns the times of a plan's tools, in milliseconds; the same for the same name and seed.
#[must_use]
pub fn tool_times(name: &str, steps: usize, seed: u64) -> Vec<f64> {
    let seed = name.bytes().fold(seed, |seed, byte| seed.rotate_left(7) ^ u64::from(byte));
    let mut random = Random::new(seed);
    let time = |_| {
        let share = random.below(1 << 20) as f64 / (1_u64 << 20) as f64;
        // Runtime timers count whole milliseconds.
        (TOOL_LEAST * TOOL_SPREAD.powf(share)).round()
    };
    (0..steps).map(time).collect()
}

impl Dag {
    fn new(name: String, kind: DagKind, waits: &[Vec<usize>], times: &[f64]) -> Self {
        let time = |at: usize| times.get(at).copied().unwrap_or_default();
        let number = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        let step = |(at, before): (usize, &Vec<usize>)| DagStep {
            ms: time(at),
            arguments: before.iter().map(|one| format!("${}", number(*one))).collect(),
            ..DagStep::new(number(at), &before.iter().map(|one| number(*one)).collect::<Vec<_>>())
        };
        let longest = critical_path(waits, |at| Duration::from_secs_f64(time(at) / 1_000.0));
        let steps = waits.iter().enumerate().map(step).collect();
        Self { name, kind, critical_path_ms: milliseconds(longest), steps }
    }

    /// Returns, for each step, the indexes of the steps that it waits for.
    #[must_use]
    pub fn waits(&self) -> Vec<Vec<usize>> {
        let index = |id: &u32| self.steps.iter().position(|step| step.id == *id);
        self.steps.iter().map(|step| step.after.iter().filter_map(index).collect()).collect()
    }
}

impl DagStep {
    fn new(id: u32, after: &[u32]) -> Self {
        Self {
            id,
            after: after.to_vec(),
            ms: 0.0,
            fails: false,
            planned_ms: 0.0,
            arguments: Vec::new(),
            result: format!("answer {id}"),
        }
    }
}

/// Returns plans in which something goes wrong, or could.
fn trouble() -> Vec<Dag> {
    let dag = |name: &str, kind, critical_path_ms, steps| {
        let name = name.to_owned();
        Dag { name, kind, critical_path_ms, steps }
    };
    let quote = |id, after: &[u32], arguments: &[&str], result: &str| DagStep {
        arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
        result: result.to_owned(),
        ..DagStep::new(id, after)
    };
    vec![
        dag(
            "one of four tools fails",
            DagKind::Error,
            20.0,
            vec![
                DagStep { ms: 10.0, ..DagStep::new(1, &[]) },
                DagStep { fails: true, ..DagStep::new(2, &[]) },
                DagStep::new(3, &[2]),
                DagStep { ms: 10.0, ..DagStep::new(4, &[1]) },
            ],
        ),
        dag(
            "two steps wait for each other",
            DagKind::Cycle,
            0.0,
            vec![DagStep::new(1, &[2]), DagStep::new(2, &[1]), DagStep::new(3, &[])],
        ),
        dag(
            "an unrelated step is planned late",
            DagKind::Streamed,
            1_000.0,
            vec![
                DagStep { ms: 100.0, ..DagStep::new(1, &[]) },
                DagStep { planned_ms: 1.0, ..DagStep::new(2, &[1]) },
                DagStep { planned_ms: 1_000.0, ..DagStep::new(3, &[]) },
            ],
        ),
        dag(
            "an answer looks like a reference",
            DagKind::Substitution,
            0.0,
            vec![
                quote(1, &[], &["q"], "SECRET"),
                quote(2, &[], &["p"], "price is $1 only"),
                quote(3, &[1, 2], &["quote: $2"], "done"),
            ],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::generated;

    #[test]
    fn the_longest_way_is_that_of_the_times() {
        let waits = [vec![], vec![0], vec![0]];
        let dag = Dag::new("d".to_owned(), DagKind::Recorded, &waits, &[1.0, 20.0, 3.0]);
        assert_eq!((dag.critical_path_ms, dag.waits()), (21.0, waits.to_vec()));
        assert_eq!(dag.steps[1].arguments, ["$1"]);
    }

    #[test]
    fn the_same_seed_gives_the_same_file() {
        let recorded: Vec<GoldPlan> = generated(100, 1)
            .into_iter()
            .map(|gold| GoldPlan { id: format!("recorded {}", gold.id), ..gold })
            .collect();
        let dags = Dags::of(&recorded, 3);
        assert_eq!(dags, Dags::of(&recorded, 3));
        assert_ne!(dags, Dags::of(&recorded, 4));
        let text = serde_json::to_string(&dags).unwrap();
        assert_eq!(serde_json::from_str::<Dags>(&text).unwrap(), dags);
        let mut names: Vec<&str> = dags.dags.iter().map(|dag| dag.name.as_str()).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        let times = tool_times("任务", 200, 3);
        assert!(times.iter().all(|time| (10.0..=100.0).contains(time)));
        assert!(times.iter().filter(|time| **time < 31.6).count().abs_diff(100) < 30);
    }
}
