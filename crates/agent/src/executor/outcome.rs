//! What became of a run.

use super::event::Trace;
use foldback_planner::{StepId, StepResult};
use std::collections::BTreeMap;
use std::time::Duration;

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What became of each step, by number; each has exactly one result.
    pub results: BTreeMap<StepId, StepResult>,
    /// How each call went, for the steps that came so far.
    pub calls: BTreeMap<StepId, CallReport>,
    /// What happened, in order.
    pub trace: Trace,
    /// From the beginning of the run to its end.
    pub elapsed: Duration,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// The tool.
    pub function: String,
    /// The arguments it was called with.
    pub arguments: String,
    /// The idempotency key of the call.
    pub key: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// When it started, since the beginning of the run.
    pub started: Duration,
    /// When it ended, since the beginning of the run.
    pub ended: Duration,
    /// Whether the result is an earlier run's, from the journal: nothing was called.
    pub from_journal: bool,
}
