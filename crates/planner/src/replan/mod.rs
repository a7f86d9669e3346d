//! Making a plan anew: what is known by then, when it is due, and how the new plan joins the old.

mod merge;
mod progress;

pub use merge::Merged;
pub use progress::{Executed, Progress};

use crate::{Action, StepId, StepState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Why a plan is made anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplanReason {
    /// An anchor is reached.
    Anchor {
        /// The anchor.
        step: StepId,
        /// What is to be decided, as the model wrote it.
        task: String,
    },
    /// Steps failed, and everything that could go on without them has ended.
    Failures {
        /// The steps that failed, ascending; what was skipped because of them is not among them.
        steps: Vec<StepId>,
    },
}

/// Decides when a plan is made anew, each reason once, and counts how often.
#[derive(Clone, Debug)]
pub struct Replans {
    most: u32,
    used: u32,
    answered: BTreeSet<StepId>,
}

/// One new plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Which one, from 1 on.
    pub number: u32,
    /// Whether there will be no other: the plan has to end in an answer.
    pub is_last: bool,
}

impl Replans {
    /// At most so many new plans.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { most, used: 0, answered: BTreeSet::new() }
    }

    /// The reason to make the plan anew now, if there is one. An anchor is answered as soon as it is
    /// reached, beside steps that go on; of several, the lowest. A failure is answered when nothing
    /// runs or may start any more.
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

    /// Begins a new plan. The reason counts as answered from now on, and so do failures that stand in
    /// the progress that the planner is shown. `None` when there may be no more plans: the run is
    /// answered from what there is.
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

    /// How many new plans were begun.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }
}
