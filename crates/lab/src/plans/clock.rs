//! Runtimes for what is measured: on a clock that stands still while something works, and on the
//! wall's.

use foldback_bench::BenchError;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A runtime whose clock moves only when everything waits, and then to what is waited for.
pub(crate) fn paused() -> Result<Runtime, BenchError> {
    built(Builder::new_current_thread().enable_time().start_paused(true))
}

/// A runtime with the clock of the wall.
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
