//! How soon a step starts while its plan is still being written.

use super::clock::{milliseconds, paused, wall};
use super::generated::{Family, plan};
use super::gold::GoldPlan;
use super::makespan::executor;
use super::result::Streaming;
use super::stub::{Filling, World};
use foldback_agent::{Executor, RunOptions};
use foldback_bench::BenchError;
use foldback_bench::quantile;
use foldback_tool::Toolbox;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The time between the writing of two steps.
const WRITTEN_EVERY: Duration = Duration::from_millis(4);
/// The number of steps in a plan.
const STEPS: usize = 60;

/// Streams plans of every shape, on both clocks: a step could start when it is written and the last of
/// its dependences has ended, whichever is later.
///
/// # Errors
/// When the runtime cannot be started, or a plan does not run.
pub(crate) fn measure_streaming(seed: u64) -> Result<Streaming, BenchError> {
    let mut found = Streaming::default();
    let mut delays = Vec::new();
    for family in Family::ALL {
        let gold = plan(family, STEPS, seed);
        let worst = |delays: &[f64]| delays.iter().copied().fold(0.0, f64::max);
        let still = paused()?.block_on(stream(&gold))?;
        found.paused_worst_ms = found.paused_worst_ms.max(worst(&still));
        delays.extend(wall()?.block_on(stream(&gold))?);
    }
    delays.sort_by(f64::total_cmp);
    found.steps = delays.len();
    found.wall_median_ms = thousandths(quantile(&delays, 0.5));
    found.wall_worst_ms = thousandths(quantile(&delays, 1.0));
    Ok(found)
}

fn thousandths(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// Returns the delay of each step's start, in milliseconds.
async fn stream(gold: &GoldPlan) -> Result<Vec<f64>, BenchError> {
    let failed = |error: &dyn std::error::Error| BenchError::Input(format!("{}: {error}", gold.id));
    let waits = gold.waits();
    // Steps that take more, and less, time than the writing of the next one.
    let time = |at: usize| Duration::from_millis([1, 3, 9, 27][at % 4]);
    let times: Vec<Duration> = (0..waits.len()).map(time).collect();
    let world = World::new(gold, &times, Filling::Values);
    let toolbox = Toolbox::new(world.tools()).map_err(|error| failed(&error))?;
    let executor: Executor = executor(toolbox);
    let start = Instant::now();
    let mut run = executor.open(RunOptions::default()).map_err(|error| failed(&error))?;
    let mut writes = (1..).map(|nth: u32| start + WRITTEN_EVERY * nth);
    let mut written = Vec::with_capacity(waits.len());
    for step in &gold.plan.steps {
        let due = writes.next().unwrap_or(start);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(due) => break,
                Some(_) = run.next() => {}
            }
        }
        written.push(Instant::now());
        run.extend(std::slice::from_ref(step)).map_err(|error| failed(&error))?;
    }
    run.seal().map_err(|error| failed(&error))?;
    let outcome = run.finish().await.map_err(|error| failed(&error))?;
    let mut begun = vec![None; waits.len()];
    for call in world.begun() {
        if let Some(place) = call.step.and_then(|step| begun.get_mut(step)) {
            *place = Some(call.at);
        }
    }
    let ended = |at: usize| {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        outcome.calls.get(&foldback_planner::StepId(number)).map(|call| start + call.ended)
    };
    let delay = |at: usize| -> Option<f64> {
        let before = waits.get(at)?.iter().filter_map(|one| ended(*one)).max();
        let could = (*written.get(at)?).max(before.unwrap_or(start));
        Some(milliseconds((*begun.get(at)?)?.saturating_duration_since(could)))
    };
    let delays: Vec<f64> = (0..waits.len()).filter_map(delay).collect();
    match delays.len() == waits.len() {
        true => Ok(delays),
        false => Err(BenchError::Input(format!("{}: a step did not begin", gold.id))),
    }
}
