//! Runtimes for measurements: with a paused clock, which stops while anything works, and with the wall
//! clock.

use foldback_bench::BenchError;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Returns a runtime whose clock advances only when everything waits, to the next awaited time.
pub(crate) fn paused() -> Result<Runtime, BenchError> {
    built(Builder::new_current_thread().enable_time().start_paused(true))
}

/// Returns a runtime with the wall clock.
pub(crate) fn wall() -> Result<Runtime, BenchError> {
    built(Builder::new_current_thread().enable_time())
}

fn built(builder: &mut Builder) -> Result<Runtime, BenchError> {
    let what = "no runtime could be started".to_owned();
    builder.build().map_err(|source| BenchError::Io { what, source })
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
