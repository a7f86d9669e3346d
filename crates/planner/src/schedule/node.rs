//! A step in the schedule, and what it waits for.

use super::state::StepState;
use crate::{FailurePolicy, StepId};

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: StepId,
    pub(super) state: StepState,
    /// How much of what it waits for has not ended.
    pub(super) left: usize,
    /// Why it will be skipped when nothing is left; of several reasons the lowest number.
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

    /// Whether nothing is to start after it.
    pub(super) fn is_fatal(&self) -> bool {
        self.state == StepState::Failed && self.policy == FailurePolicy::FailFast
    }

    /// Once it has ended: the step because of which those that wait for it are skipped.
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

/// Why nothing is started any more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Halt {
    Failure(StepId),
    Cancelled,
}
