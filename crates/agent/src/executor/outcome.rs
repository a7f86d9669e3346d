//! The outcome of a run.

use super::event::Trace;
use foldback_planner::{StepId, StepResult};
use std::collections::BTreeMap;
use std::time::Duration;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The results of the steps, by number; each step has exactly one.
    pub results: BTreeMap<StepId, StepResult>,
    /// The reports on the calls that were made, by the number of the step.
    pub calls: BTreeMap<StepId, CallReport>,
    /// The events, in order.
    pub trace: Trace,
    /// The time from the beginning of the run to its end.
    pub elapsed: Duration,
}

/// The report on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// The tool.
    pub function: String,
    /// The arguments it was called with.
    pub arguments: String,
    /// The idempotency key of the call.
    pub key: String,
    /// The number of attempts.
    pub attempts: u32,
    /// When it started, from the beginning of the run.
    pub started: Duration,
    /// When it ended, from the beginning of the run.
    pub ended: Duration,
    /// Whether the result is an earlier run's, from the journal, so that nothing was called.
    pub from_journal: bool,
}
