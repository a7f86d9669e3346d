//! The executor's own overhead, in wall-clock time.

use super::clock::wall;
use super::closed_form::critical_path;
use super::dag::LADDER;
use super::generated::plan;
use super::makespan::executor;
use super::result::Overhead;
use super::stub::idle;
use foldback_agent::RunOptions;
use foldback_bench::BenchError;
use foldback_bench::quantile;
use foldback_tool::Toolbox;
use std::time::Instant;

/// The number of runs of each plan; the first is a warm-up and is not counted.
const RUNS: usize = 31;

/// Runs the plans of [`LADDER`] with tools that take no time.
///
/// # Errors
/// When the runtime cannot be started, or a plan does not run.
pub(crate) fn measure_overhead(most: usize, seed: u64) -> Result<Vec<Overhead>, BenchError> {
    let ladder = LADDER.into_iter().filter(|(_, size)| *size <= most);
    ladder
        .map(|(family, size)| {
            let gold = plan(family, size, seed);
            let toolbox = Toolbox::new([idle("work")])
                .map_err(|error| BenchError::Input(error.to_string()))?;
            let executor = executor(toolbox);
            let runtime = wall()?;
            let mut times = Vec::with_capacity(RUNS);
            for _ in 0..=RUNS {
                let start = Instant::now();
                let outcome = runtime.block_on(executor.run(&gold.plan, RunOptions::default()));
                let took = start.elapsed();
                let outcome = outcome.map_err(|error| BenchError::Input(error.to_string()))?;
                if super::makespan::failed_steps(&outcome) > 0 {
                    return Err(BenchError::Input(format!("{}: a step failed", gold.id)));
                }
                times.push(took.as_secs_f64() * 1e6);
            }
            times.remove(0);
            times.sort_by(f64::total_cmp);
            Ok(Overhead {
                name: gold.id.clone(),
                steps: size,
                levels: critical_path(&gold.waits(), |_| 1_u64) as usize,
                median_us: quantile(&times, 0.5).round(),
                best_us: quantile(&times, 0.0).round(),
            })
        })
        .collect()
}
