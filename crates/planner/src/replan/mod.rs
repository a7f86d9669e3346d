//! Replanning: what is known by then, when it is due, and how the new plan joins the old one.

mod merge;
mod progress;

pub use merge::{Merged, same_arguments};
pub use progress::{Executed, Progress};

use crate::{Action, StepId, StepState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The reason for a new plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplanReason {
    /// An anchor is reached.
    Anchor {
        /// The anchor.
        step: StepId,
        /// What is to be decided, in the model's words.
        task: String,
    },
    /// Steps failed, and everything that could continue without them has ended.
    Failures {
        /// The steps that failed, ascending; steps that were skipped because of them are not included.
        steps: Vec<StepId>,
    },
}

/// A counter of new plans that decides when one is due, once for each reason.
#[derive(Clone, Debug)]
pub struct Replans {
    most: u32,
    used: u32,
    answered: BTreeSet<StepId>,
}

/// One new plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number, counted from 1.
    pub number: u32,
    /// Whether it is the last: the plan has to end in an answer.
    pub is_last: bool,
}

impl Replans {
    /// Allows at most this many new plans.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { most, used: 0, answered: BTreeSet::new() }
    }

    /// Returns the reason to replan now, if there is one. An anchor is answered as soon as it is
    /// reached, while other steps continue; of several anchors, the lowest. A failure is answered when
    /// nothing runs or may start any more.
    #[must_use]
    pub fn due(&self, progress: &Progress) -> Option<ReplanReason> {
        let open = || progress.iter().filter(|step| !self.answered.contains(&step.step.id));
        for executed in open().filter(|step| step.state == StepState::AnchorReached) {
            if let Action::Anchor { task } = &executed.step.action {
                return Some(ReplanReason::Anchor { step: executed.step.id, task: task.clone() });
            }
        }
        let goes_on = |state| matches!(state, StepState::Running | StepState::Ready);
        if progress.iter().any(|step| goes_on(step.state)) {
            return None;
        }
        let steps: Vec<StepId> =
            open().filter(|step| step.asks_for_plan()).map(|step| step.step.id).collect();
        (!steps.is_empty()).then_some(ReplanReason::Failures { steps })
    }

    /// Begins a new plan. The reason counts as answered from now on, and so do the failures in the
    /// progress that the planner is shown. `None` when no more plans are allowed: the run is then
    /// answered from the results so far.
    pub fn begin(&mut self, reason: &ReplanReason, progress: &Progress) -> Option<Round> {
        match reason {
            ReplanReason::Anchor { step, .. } => self.answered.extend([step]),
            ReplanReason::Failures { steps } => self.answered.extend(steps),
        }
        let failed = progress.iter().filter(|step| step.asks_for_plan()).map(|step| step.step.id);
        self.answered.extend(failed);
        if self.used >= self.most {
            return None;
        }
        self.used += 1;
        Some(Round { number: self.used, is_last: self.used == self.most })
    }

    /// Returns how many new plans were begun.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }
}
