//! Errors of a schedule.

use super::StepState;
use crate::{Cycle, StepId};

/// Why a schedule refused a change. The schedule is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A number was used twice.
    #[error("{step} already exists; each step needs its own number")]
    DuplicateStep {
        /// The number.
        step: StepId,
    },
    /// A step waits for one that was never added.
    #[error("{step} waits for {after}, which is in no plan")]
    UnknownDependence {
        /// The step that waits.
        step: StepId,
        /// The step that it waits for.
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
        /// The requested change: `start`, `finish`, `fail`, `be replanned` or `be restored`.
        change: &'static str,
        /// Its actual state.
        state: StepState,
    },
}
