//! The past of a run, as its journal holds it.

use super::Record;
use crate::executor::has_kind;
use crate::{Decision, Spending};
use foldback_planner::{FailurePolicy, Step, StepId, StepResult};
use foldback_tool::FailureKind;
use std::collections::{BTreeMap, BTreeSet};

/// The records of a run, by step.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The driver's notes, in order: kind and body.
    pub(crate) notes: Vec<(String, String)>,
    /// The plans that it had, and the anchors that were answered between them, in order.
    pub(crate) plans: Vec<PastPlan>,
    /// Whether the last of the plans was still being written.
    pub(crate) is_unfinished: bool,
    /// Each with the number of its record.
    steps: BTreeMap<StepId, (usize, Step)>,
    replanned: BTreeSet<StepId>,
    calls: BTreeMap<StepId, PastCall>,
}

/// A plan of a run, or the cause of the next one.
#[derive(Clone, Debug)]
pub(crate) enum PastPlan {
    /// Steps that were one plan.
    Steps(Vec<Step>),
    /// The anchor that the following steps answered.
    Replanned(StepId),
}

/// What is known about a step's call.
#[derive(Debug, Default)]
pub(crate) struct PastCall {
    /// Its idempotency key.
    pub(crate) key: String,
    /// The number of its last record.
    pub(crate) at: usize,
    /// The decision, and the key of the call that it applies to: changed arguments make another call.
    pub(crate) decision: Option<(String, Decision)>,
    /// The tool and the arguments, if it began.
    pub(crate) began: Option<(String, String)>,
    /// The number of attempts and the result, if it ended.
    pub(crate) ended: Option<(u32, StepResult)>,
    /// What was spent by the call.
    pub(crate) spent: Option<Spending>,
}

impl Past {
    pub(crate) fn of(records: Vec<Record>) -> Self {
        let mut past = Self::default();
        // The steps of a plan that was still being written are one plan with those that follow.
        let mut unfinished = Vec::new();
        for (at, record) in records.into_iter().enumerate() {
            match record {
                Record::Steps { mut steps, open } => {
                    past.steps.extend(steps.iter().map(|step| (step.id, (at, step.clone()))));
                    unfinished.append(&mut steps);
                    if !open {
                        past.plans.push(PastPlan::Steps(std::mem::take(&mut unfinished)));
                    }
                }
                Record::Replanned { step } => {
                    past.replanned.insert(step);
                    past.plans.push(PastPlan::Replanned(step));
                }
                Record::Decided { step, key, decision } => {
                    past.calls.entry(step).or_default().decision = Some((key, decision));
                }
                Record::Began { step, key, function, arguments } => {
                    let call = past.calls.entry(step).or_default();
                    call.began = Some((function, arguments));
                    (call.key, call.at) = (key, at);
                }
                Record::Ended { step, key, attempts, result, spent } => {
                    let call = past.calls.entry(step).or_default();
                    if attempts == 0 && has_kind(&result, FailureKind::Cancelled) {
                        // It was cancelled before it was made.
                        call.began = None;
                    } else {
                        call.ended = Some((attempts, result));
                        call.spent = spent;
                        (call.key, call.at) = (key, at);
                    }
                }
                Record::Note { kind, body } => past.notes.push((kind, body)),
            }
        }
        if !unfinished.is_empty() {
            past.is_unfinished = true;
            past.plans.push(PastPlan::Steps(unfinished));
        }
        past
    }

    /// Returns the steps of the first plan, if there was one.
    pub(crate) fn first_plan(&self) -> Option<&[Step]> {
        match self.plans.first()? {
            PastPlan::Steps(steps) => Some(steps),
            PastPlan::Replanned(_) => None,
        }
    }

    /// Returns the step with this number, if the run had one.
    pub(crate) fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(&id).map(|(_, step)| step)
    }

    /// Returns the number of the record that added a step.
    pub(crate) fn brought_at(&self, id: StepId) -> Option<usize> {
        self.steps.get(&id).map(|(at, _)| *at)
    }

    /// Returns whether an anchor was answered by a new plan.
    pub(crate) fn was_replanned(&self, anchor: StepId) -> bool {
        self.replanned.contains(&anchor)
    }

    /// Returns what is known about a step's call.
    pub(crate) fn call(&self, step: StepId) -> Option<&PastCall> {
        self.calls.get(&step)
    }

    /// Returns the calls that began and were not taken out: each with its step, its tool and arguments, and its
    /// result if it ended.
    pub(crate) fn begun(
        &self,
    ) -> impl Iterator<Item = (StepId, &(String, String), Option<&StepResult>)> {
        self.calls.iter().filter_map(|(step, call)| {
            let ended = call.ended.as_ref().map(|(_, result)| result);
            Some((*step, call.began.as_ref()?, ended))
        })
    }

    /// Returns whether two steps belong to one plan of the run.
    pub(crate) fn are_one_plan(&self, one: StepId, other: StepId) -> bool {
        self.plans.iter().any(|plan| match plan {
            PastPlan::Steps(steps) => {
                let holds = |id| steps.iter().any(|step| step.id == id);
                holds(one) && holds(other)
            }
            PastPlan::Replanned(_) => false,
        })
    }

    /// Returns the first step whose recorded failure with `FailFast` comes after a record, of those that are
    /// `meant`.
    pub(crate) fn halted_after(&self, at: usize, meant: impl Fn(StepId) -> bool) -> Option<StepId> {
        let is_failed = |call: &PastCall| {
            call.at > at && matches!(call.ended, Some((_, StepResult::Error { .. })))
        };
        let is_fatal = |step: StepId| {
            self.step(step).is_some_and(|step| step.on_failure == FailurePolicy::FailFast)
        };
        let halts = self
            .calls
            .iter()
            .filter(|(step, call)| is_failed(call) && is_fatal(**step) && meant(**step));
        halts.min_by_key(|(_, call)| call.at).map(|(step, _)| *step)
    }

    /// Takes out what is known about a step's call.
    pub(crate) fn take_call(&mut self, step: StepId) -> Option<PastCall> {
        self.calls.remove(&step)
    }
}
