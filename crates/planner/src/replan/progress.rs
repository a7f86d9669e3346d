//! What was done so far.

use crate::{Action, FailurePolicy, Results, Schedule, Step, StepId, StepResult, StepState};
use std::collections::BTreeMap;

/// All steps of a run so far, of every plan, with where they stand and what they brought. A planner
/// is shown it beside the request and the reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    steps: BTreeMap<StepId, Executed>,
}

/// A step and what became of it so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// The step.
    pub step: Step,
    /// Where it stands.
    pub state: StepState,
    /// What it brought, once it has ended.
    pub result: Option<StepResult>,
}

impl Progress {
    /// The progress of the steps that stand in a schedule.
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

    /// A step by its number.
    #[must_use]
    pub fn get(&self, id: StepId) -> Option<&Executed> {
        self.steps.get(&id)
    }

    /// All steps, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = &Executed> {
        self.steps.values()
    }

    /// The steps that have ended, with what they brought.
    pub fn ended(&self) -> impl Iterator<Item = (&Step, &StepResult)> {
        let ended = self.iter().filter(|step| step.state.has_ended());
        ended.filter_map(|step| Some((&step.step, step.result.as_ref()?)))
    }

    /// The steps that are running or will run yet; anchors are not among them.
    pub fn under_way(&self) -> impl Iterator<Item = &Step> {
        let open = self.iter().filter(|step| !step.state.has_ended());
        open.map(|step| &step.step).filter(|step| matches!(step.action, Action::Call { .. }))
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The number that the first step of a new plan takes: one above all.
    #[must_use]
    pub fn next_number(&self) -> StepId {
        StepId(self.steps.last_key_value().map_or(1, |(id, _)| id.0.saturating_add(1)))
    }
}

impl Executed {
    /// Whether it failed in a way that a new plan may help with. A failure that the plan foresaw is
    /// none, nor one that a person decided.
    #[must_use]
    pub fn asks_for_plan(&self) -> bool {
        let Some(StepResult::Error { failure }) = &self.result else { return false };
        self.state == StepState::Failed
            && self.step.on_failure != FailurePolicy::ContinueWithError
            && failure.asks_for_plan()
    }

    /// Whether steps of a new plan may refer to its result: it has one, will have one, or failed where
    /// the plan foresaw it.
    pub(crate) fn has_value(&self) -> bool {
        match (&self.step.action, self.state) {
            (Action::Anchor { .. }, _) | (_, StepState::Skipped { .. } | StepState::Cancelled) => {
                false
            }
            (_, StepState::Failed) => self.step.on_failure == FailurePolicy::ContinueWithError,
            _ => true,
        }
    }

    /// Whether it was done, is being done or will be done.
    pub(crate) fn holds(&self) -> bool {
        !matches!(self.state, StepState::Failed | StepState::Skipped { .. } | StepState::Cancelled)
    }
}
