//! The progress of a run.

use crate::{Action, FailurePolicy, Results, Schedule, Step, StepId, StepResult, StepState};
use std::collections::BTreeMap;

/// All steps of a run so far, of every plan, with their states and results. A planner is shown them
/// along with the request and the reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    steps: BTreeMap<StepId, Executed>,
}

/// A step and its outcome so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// The step.
    pub step: Step,
    /// Its state.
    pub state: StepState,
    /// Its result, once it has ended.
    pub result: Option<StepResult>,
}

impl Progress {
    /// Returns the progress of the steps in a schedule.
    pub fn new<'a>(
        steps: impl IntoIterator<Item = &'a Step>,
        schedule: &Schedule,
        results: &impl Results,
    ) -> Self {
        let executed = |step: &Step| {
            let state = schedule.state(step.id)?;
            let result = results.result(step.id).cloned();
            Some((step.id, Executed { step: step.clone(), state, result }))
        };
        Self { steps: steps.into_iter().filter_map(executed).collect() }
    }

    /// Returns a step by its number.
    #[must_use]
    pub fn get(&self, id: StepId) -> Option<&Executed> {
        self.steps.get(&id)
    }

    /// Returns all steps, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = &Executed> {
        self.steps.values()
    }

    /// Returns the steps that have ended, with their results.
    pub fn ended(&self) -> impl Iterator<Item = (&Step, &StepResult)> {
        let ended = self.iter().filter(|step| step.state.has_ended());
        ended.filter_map(|step| Some((&step.step, step.result.as_ref()?)))
    }

    /// Returns the steps that are running or will still run; anchors are not among them.
    pub fn under_way(&self) -> impl Iterator<Item = &Step> {
        let open = self.iter().filter(|step| !step.state.has_ended());
        open.map(|step| &step.step).filter(|step| matches!(step.action, Action::Call { .. }))
    }

    /// Returns the number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the number that the first step of a new plan takes: one above the highest.
    #[must_use]
    pub fn next_number(&self) -> StepId {
        StepId(self.steps.last_key_value().map_or(1, |(id, _)| id.0.saturating_add(1)))
    }
}

impl Executed {
    /// Returns whether the step failed in a way that a new plan may help with. That excludes a failure
    /// that the plan foresaw, or that a person decided.
    #[must_use]
    pub fn asks_for_plan(&self) -> bool {
        let Some(StepResult::Error { failure }) = &self.result else { return false };
        self.state == StepState::Failed
            && self.step.on_failure != FailurePolicy::ContinueWithError
            && failure.asks_for_plan()
    }

    /// Returns whether steps of a new plan may refer to its result: it has one, will have one, or
    /// failed in a way that the plan foresaw.
    pub(crate) fn has_value(&self) -> bool {
        match (&self.step.action, self.state) {
            (Action::Anchor { .. }, _) | (_, StepState::Skipped { .. } | StepState::Cancelled) => {
                false
            }
            (_, StepState::Failed) => self.step.on_failure == FailurePolicy::ContinueWithError,
            _ => true,
        }
    }

    /// Returns whether it was done, is being done or will be done.
    pub(crate) fn holds(&self) -> bool {
        !matches!(self.state, StepState::Failed | StepState::Skipped { .. } | StepState::Cancelled)
    }
}
