//! What a schedule refuses.

use super::StepState;
use crate::{Cycle, StepId};

/// A schedule was asked for what cannot be. It is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A number was given twice.
    #[error("{step} is there already; each step needs a number of its own")]
    DuplicateStep {
        /// The number.
        step: StepId,
    },
    /// A step waits for one that never comes.
    #[error("{step} waits for {after}, which is in no plan")]
    UnknownDependence {
        /// The step that waits.
        step: StepId,
        /// What it waits for.
        after: StepId,
    },
    /// Steps wait for each other.
    #[error("these steps wait for each other and would never start: {0}")]
    Cycle(Cycle),
    /// There is no such step.
    #[error("there is no {step} in the schedule")]
    UnknownStep {
        /// The number.
        step: StepId,
    },
    /// The step is not in the state that the change needs.
    #[error("{step} cannot {change}: it is {state}")]
    State {
        /// The step.
        step: StepId,
        /// What was to happen: `start`, `finish`, `fail`, `be replanned` or `be restored`.
        change: &'static str,
        /// What it is instead.
        state: StepState,
    },
}
