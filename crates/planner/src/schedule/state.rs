//! Where a step stands.

use crate::StepId;
use std::fmt;

/// Where a step stands in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// Some of what it waits for has not ended.
    Waiting {
        /// How many steps that is.
        left: usize,
    },
    /// It may start.
    Ready,
    /// It was started.
    Running,
    /// It ended well. For an anchor: the plan was made anew because of it.
    Done,
    /// It ended badly.
    Failed,
    /// It never started.
    Skipped {
        /// The step that failed, at the root of it; or the anchor that a new plan answered.
        because: StepId,
    },
    /// An anchor, and what it waits for has ended: the plan is to be made anew.
    AnchorReached,
    /// It never started, because the rest of the run was called off.
    Cancelled,
}

impl StepState {
    /// Whether nothing more will happen to the step.
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
