//! The state of a step.

use crate::StepId;
use std::fmt;

/// The state of a step in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// Some of its dependences have not ended.
    Waiting {
        /// The number of those dependences.
        left: usize,
    },
    /// It may start.
    Ready,
    /// It was started.
    Running,
    /// It succeeded. For an anchor: it was answered by a new plan.
    Done,
    /// It failed.
    Failed,
    /// It was skipped and never started.
    Skipped {
        /// The step whose failure was the root cause, or the anchor that a new plan answered.
        because: StepId,
    },
    /// An anchor whose dependences have ended: a new plan is due.
    AnchorReached,
    /// It never started, because the rest of the run was cancelled.
    Cancelled,
}

impl StepState {
    /// Returns whether nothing more will happen to the step.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Skipped { .. } | Self::Cancelled)
    }
}

impl fmt::Display for StepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { left: 1 } => write!(f, "waiting for 1 step"),
            Self::Waiting { left } => write!(f, "waiting for {left} steps"),
            Self::Ready => write!(f, "ready"),
            Self::Running => write!(f, "running"),
            Self::Done => write!(f, "done"),
            Self::Failed => write!(f, "failed"),
            Self::Skipped { because } => write!(f, "skipped because of {because}"),
            Self::AnchorReached => write!(f, "an anchor that is reached"),
            Self::Cancelled => write!(f, "cancelled"),
        }
    }
}
