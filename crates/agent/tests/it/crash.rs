//! A process that is killed by the system, and another one that resumes its run.

use crate::resume::{SHAPES, ended, fifty, step_of};
use crate::toolkit::{Counter, executor, milliseconds, ms, options, plan, settings, spec, tool};
use foldback_agent::{FileJournal, Journal, Record};
use foldback_planner::StepResult;
use foldback_testkit::alone;
use foldback_tool::{Effect, FailureKind, ToolOutput};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use tempfile::tempdir;

const FOLDER: &str = "FOLDBACK_TEST_FOLDER";
const SHAPE: &str = "FOLDBACK_TEST_SHAPE";
const EFFECT: &str = "FOLDBACK_TEST_EFFECT";

const STUCK: &str = "FOLDBACK_TEST_STUCK";

/// How many calls run at once.
const WORKERS: usize = 4;

/// The first of its calls that a process does not complete: from there on calls wait until it is killed.
const STUCK_FROM: [usize; 4] = [8, 13, 18, 23];

/// R12: a process that runs 50 calls is killed repeatedly, each time while calls are in progress. No call
/// with a recorded result is made a second time; effects whose outcome is unknown are never repeated, and
/// there is at most one per worker.
#[tokio::test]
async fn r12_a_killed_process_repeats_nothing() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return work_on(Path::new(&folder)).await;
    }
    for shape in SHAPES {
        for effect in [Effect::Effectful, Effect::Idempotent] {
            check_kills(shape, effect);
        }
    }
}

fn check_kills(shape: &str, effect: Effect) {
    let dir = tempdir().unwrap();
    for cycle in 0..20 {
        let what = format!("{shape}, {effect:?}, kill {cycle}");
        let effects = read_effects(dir.path());
        let records = read_records(dir.path());
        let mut child = spawn(shape, effect, dir.path(), STUCK_FROM[cycle % STUCK_FROM.len()]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let Some(stuck) = lines.find_map(|line| Some(line.split_once("stuck in ")?.1.to_owned()))
        else {
            assert!(child.wait().unwrap().success(), "{what}");
            check_end(shape, effect, dir.path());
            assert!(cycle >= 3, "{what}: {cycle} processes did 50 calls, each less than 24");
            return;
        };
        child.kill().unwrap();
        child.wait().unwrap();

        let after = read_effects(dir.path());
        for step in ended(&records) {
            assert_eq!(after[&step], effects[&step], "{what}: step {step} had a result");
        }
        let unknown = under_way(&records);
        let now = under_way(&read_records(dir.path()));
        assert!(now.contains(&stuck.parse().unwrap()), "{what}: step {stuck} was under way");
        let new = &now - &unknown;
        assert!(new.len() <= WORKERS, "{what}: {new:?} are unknown");
        if effect == Effect::Effectful {
            assert!(after.values().all(|keys| keys.len() == 1), "{what}: an effect was repeated");
        }
    }
    panic!("{shape}: the run never came to its end");
}

/// What the last process left behind.
fn check_end(shape: &str, effect: Effect, folder: &Path) {
    let flagged: BTreeSet<u32> = fs::read_to_string(folder.join("flagged"))
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let records = read_records(folder);
    let done = ended(&records);
    assert_eq!(flagged, under_way(&records), "{shape}: what is unknown is flagged");
    assert_eq!(done.len() + flagged.len(), 50, "{shape}: each step has one result");
    assert_eq!(flagged.is_empty(), effect != Effect::Effectful, "{shape}: {flagged:?}");
    let effects = read_effects(folder);
    assert!(done.iter().all(|step| effects.contains_key(step)));
    for (step, keys) in effects {
        assert!(keys.iter().all(|key| *key == keys[0]), "{shape}: one key for step {step}");
    }
}

/// The steps that began and have no recorded end.
fn under_way(records: &[Record]) -> BTreeSet<u32> {
    let began = records.iter().filter_map(|record| match record {
        Record::Began { step, .. } => Some(step.0),
        _ => None,
    });
    &began.collect::<BTreeSet<u32>>() - &ended(records)
}

fn read_records(folder: &Path) -> Vec<Record> {
    FileJournal::open(folder.join("journal.jsonl")).unwrap().records("run").unwrap()
}

/// The keys that each step's effects came with.
fn read_effects(folder: &Path) -> BTreeMap<u32, Vec<String>> {
    let mut effects: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for line in fs::read_to_string(folder.join("effects")).unwrap_or_default().lines() {
        let (step, key) = line.split_once(' ').unwrap();
        effects.entry(step.parse().unwrap()).or_default().push(key.to_owned());
    }
    effects
}

/// The test in another process, where it works on the plan.
fn spawn(shape: &str, effect: Effect, folder: &Path, stuck_from: usize) -> Child {
    alone("crash::r12_a_killed_process_repeats_nothing")
        .env(FOLDER, folder)
        .env(SHAPE, shape)
        .env(EFFECT, if effect == Effect::Effectful { "effectful" } else { "idempotent" })
        .env(STUCK, stuck_from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Runs the plan, or resumes it, as a child.
async fn work_on(folder: &Path) {
    let shape = std::env::var(SHAPE).unwrap();
    let effectful = std::env::var(EFFECT).unwrap() == "effectful";
    let effect = if effectful { Effect::Effectful } else { Effect::Idempotent };
    let journal = FileJournal::open(folder.join("journal.jsonl")).unwrap();
    let effects = Arc::new(
        OpenOptions::new().append(true).create(true).open(folder.join("effects")).unwrap(),
    );
    let stuck_from: usize = std::env::var(STUCK).unwrap().parse().unwrap();
    let calls = Counter::default();
    let work = tool(spec("work", effect), move |arguments, context| {
        let (effects, call) = (effects.clone(), calls.add());
        async move {
            let step = step_of(&arguments);
            let effect = format!("{step} {}\n", context.idempotency_key);
            let stuck = async || {
                println!("stuck in {step}");
                std::io::stdout().flush().unwrap();
                std::future::pending::<()>().await;
            };
            // Every other one before it takes effect.
            if call >= stuck_from && call % 2 == 0 {
                stuck().await;
            }
            tokio::time::sleep(ms(milliseconds(&arguments)) / 4).await;
            (&*effects).write_all(effect.as_bytes()).unwrap();
            if call >= stuck_from {
                stuck().await;
            }
            tokio::time::sleep(ms(milliseconds(&arguments)) / 4).await;
            Ok(ToolOutput::text("done"))
        }
    });
    let executor = executor([work])
        .with_settings(settings(|s| s.max_parallel = WORKERS))
        .with_journal(Arc::new(journal));
    let outcome = executor.run(&plan(fifty(&shape)), options("run")).await.unwrap();
    let mut flagged = String::new();
    for (step, result) in &outcome.results {
        match result {
            StepResult::Success { data } => assert_eq!(data.text, "done"),
            StepResult::Error { failure } => {
                assert_eq!(failure.kind, FailureKind::UnknownOutcome, "{failure:?}");
                flagged.push_str(&format!("{}\n", step.0));
            }
            StepResult::Skipped { because } => panic!("{step} was skipped because of {because}"),
        }
    }
    fs::write(folder.join("flagged"), flagged).unwrap();
}
