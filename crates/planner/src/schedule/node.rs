//! A step in the schedule, and its dependences.

use super::state::StepState;
use crate::{FailurePolicy, StepId};

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: StepId,
    pub(super) state: StepState,
    /// The number of its dependences that have not ended.
    pub(super) left: usize,
    /// Why it will be skipped when nothing is left to wait for; of several reasons, the lowest number.
    pub(super) doomed: Option<StepId>,
    pub(super) is_anchor: bool,
    pub(super) policy: FailurePolicy,
    /// The places of the steps that wait for it.
    pub(super) dependents: Vec<usize>,
}

impl Node {
    pub(super) fn state(&self) -> StepState {
        match self.state {
            StepState::Waiting { .. } => StepState::Waiting { left: self.left },
            state => state,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, StepState::Waiting { .. })
    }

    pub(super) fn may_be_admitted(&self) -> bool {
        self.left == 0 && self.is_waiting()
    }

    /// Returns whether nothing is to start after it.
    pub(super) fn is_fatal(&self) -> bool {
        self.state == StepState::Failed && self.policy == FailurePolicy::FailFast
    }

    /// Returns, once it has ended, the step because of which its dependants are skipped.
    pub(super) fn root(&self) -> Option<StepId> {
        match self.state {
            StepState::Failed if self.policy == FailurePolicy::ContinueWithError => None,
            StepState::Done if !self.is_anchor => None,
            StepState::Skipped { because } => Some(because),
            _ => Some(self.id),
        }
    }

    pub(super) fn doom(&mut self, root: Option<StepId>) {
        self.doomed = match (self.doomed, root) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Why nothing more is started.
#[derive(Clone, Copy, Debug)]
pub(super) enum Halt {
    Failure(StepId),
    Cancelled,
}
