//! Joins a new plan with the work that was done.

use super::Progress;
use crate::{
    Action, Executed, Finding, FindingKind, Findings, Plan, Position, Results, Step, StepId,
    StepResult, StepState, Template, Validator, json,
};
use foldback_tool::Effect;
use std::collections::{BTreeMap, BTreeSet};

/// A new plan that continues from the work that was done.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The new steps, numbered above all earlier ones.
    pub plan: Plan,
    /// The findings. If one of them is an error, the plan must not run.
    pub findings: Findings,
    /// The number with which each new step was written.
    pub written: BTreeMap<StepId, StepId>,
}

impl Merged {
    /// The positions of the new steps in their text, by their current numbers.
    #[must_use]
    pub fn places(&self, written: &BTreeMap<StepId, Position>) -> BTreeMap<StepId, Position> {
        let place = |(now, was): (&StepId, &StepId)| Some((*now, *written.get(was)?));
        self.written.iter().filter_map(place).collect()
    }
}

impl Progress {
    /// Fits a new plan to the work that was done, and checks it.
    ///
    /// Planners write plans in two ways: they continue counting, or they begin again at `step1`,
    /// perhaps repeating steps that are already done. Both are understood:
    ///
    /// - A step that already exists, with the same number, function and arguments, is the same step: it
    ///   is left out and never runs again. Arguments are the same whatever the order of their keys and
    ///   however their numbers are written; but a step that refers to a new one is new itself.
    /// - If a remaining number belongs to an earlier step, or is lower than one, all new steps are
    ///   renumbered, in their order, above everything that exists.
    /// - A number that a step names means a step before it in the new plan, else an earlier step, else
    ///   a later step of the new plan (which is an error).
    /// - A dependence on an earlier step without a result, or on an anchor, is dropped; a reference to
    ///   its result is an error.
    /// - A call of a tool that [has an effect](Effect::Effectful), identical to an earlier one, is an
    ///   error under another number too: a planner that repeats itself by mistake must not pay twice,
    ///   and an intended repeat looks just like it. An intended repeat must say so in its arguments.
    ///   The same holds for a call after an earlier one that may have taken effect although it brought
    ///   no answer (it timed out, was stopped, returned too much, or the run was killed). Calls are
    ///   identical if they are so with the results in place of the references. Reading tools and
    ///   idempotent ones are repeated freely, under a new number: that is how a plan polls.
    ///
    /// If the plan answers an anchor, call [`Schedule::replanned`] first and take this progress after
    /// it: what waited for the anchor is then skipped, and can be planned again.
    ///
    /// [`Schedule::replanned`]: crate::Schedule::replanned
    #[must_use]
    pub fn merge(&self, mut plan: Plan, validator: &Validator<'_>) -> Merged {
        let mut findings = Findings::default();
        plan.steps.sort_by_key(|step| step.id);
        let mut new = BTreeSet::new();
        plan.steps.retain(|step| {
            let is_new = !self.stands(step) || referred_by(step).iter().any(|id| new.contains(id));
            if is_new {
                new.insert(step.id);
            } else {
                let message = format!("{0}: {0} already exists; it does not run again", step.id);
                findings.push(Finding::of_step(FindingKind::AlreadyDone, step.id, message));
            }
            is_new
        });
        let numbers = self.numbers(&plan);
        for step in &mut plan.steps {
            self.renumber(step, &numbers, &mut findings);
            self.drop_dependences(step, &mut findings);
            if let Some(finding) = self.repeated_effect(step, validator) {
                findings.push(finding);
            }
        }
        findings.extend(validator.going_on_from(self).plan(&mut plan));
        findings.sort();
        let written = numbers.into_iter().map(|(written, now)| (now, written)).collect();
        Merged { plan, findings, written }
    }

    /// Returns whether a step of a new plan is an earlier one, written again.
    fn stands(&self, step: &Step) -> bool {
        self.get(step.id).is_some_and(|old| old.holds() && same_action(&old.step, step))
    }

    /// Returns the number that each step of a new plan takes.
    fn numbers(&self, plan: &Plan) -> BTreeMap<StepId, StepId> {
        let own: BTreeSet<StepId> = plan.steps.iter().map(|step| step.id).collect();
        let next = self.next_number();
        if own.first().is_none_or(|lowest| *lowest >= next) {
            return own.into_iter().map(|id| (id, id)).collect();
        }
        // A named number that refers to no step must still refer to none afterwards.
        let named = plan.steps.iter().flat_map(named_by);
        let unknown: BTreeSet<StepId> =
            named.filter(|id| !own.contains(id) && self.get(*id).is_none()).collect();
        let free = (next.0..=u32::MAX).map(StepId).filter(|id| !unknown.contains(id));
        own.into_iter().zip(free).collect()
    }

    fn renumber(
        &self,
        step: &mut Step,
        numbers: &BTreeMap<StepId, StepId>,
        findings: &mut Findings,
    ) {
        let written = step.id;
        let meant = |named: StepId| match numbers.get(&named) {
            Some(new) if named < written || self.get(named).is_none() => *new,
            _ => named,
        };
        for on in &mut step.after {
            *on = meant(*on);
        }
        if let Action::Call { arguments, .. } = &mut step.action {
            arguments.renumber(&meant);
        }
        step.id = numbers.get(&written).copied().unwrap_or(written);
        if step.id != written {
            let message = format!(
                "{}: it was written as {written}; numbers up to step{} belong to earlier steps",
                step.id,
                self.next_number().0 - 1,
            );
            findings.push(Finding::of_step(FindingKind::Renumbered, step.id, message));
        }
    }

    /// Removes dependences on steps that ended without a result, unless the result is referred to.
    fn drop_dependences(&self, step: &mut Step, findings: &mut Findings) {
        let referred: BTreeSet<StepId> = referred_by(step).into_iter().collect();
        let id = step.id;
        step.after.retain(|on| {
            let brings_nothing = self.get(*on).is_some_and(|old| !old.has_value());
            let is_dropped = brings_nothing && !referred.contains(on);
            if is_dropped {
                let message = format!("{id}: it need not wait for {on}, which has ended");
                findings.push(Finding::of_step(FindingKind::DroppedDependence, id, message));
            }
            !is_dropped
        });
    }

    fn repeated_effect(&self, step: &Step, validator: &Validator<'_>) -> Option<Finding> {
        let Action::Call { function, .. } = &step.action else { return None };
        if validator.catalog().get(function)?.effect != Effect::Effectful {
            return None;
        }
        let bound = self.bound(step, validator);
        let is_same = |old: &&Executed| {
            let Action::Call { function: other, .. } = &old.step.action else { return false };
            let is_bound_alike = || {
                let others = self.bound(&old.step, validator);
                bound.as_ref().zip(others).is_some_and(|(one, other)| one.means_the_same(&other))
            };
            other == function && (same_action(&old.step, step) || is_bound_alike())
        };
        let (old, what) = self.iter().filter(is_same).find_map(|old| {
            let what = if old.holds() {
                "does exactly this already; refer to its result, or change the arguments if the \
                 repeat is intended"
            } else if may_have_taken_effect(old) {
                "was exactly this, and its outcome is unknown: it may have taken effect; check \
                 first, and change the arguments if the repeat is intended"
            } else {
                return None;
            };
            Some((old, what))
        })?;
        let message = format!("{}: {} {what}", step.id, old.step.id);
        Some(Finding::of_step(FindingKind::RepeatedEffect, step.id, message))
    }

    /// Returns the arguments of a call with the results that are there in place of their references.
    fn bound(&self, step: &Step, validator: &Validator<'_>) -> Option<Template> {
        let Action::Call { function, arguments } = &step.action else { return None };
        let most_bytes = validator.limits().bound_bytes;
        read(&validator.catalog().bind_known(function, arguments, self, most_bytes).ok()?)
    }
}

impl Results for Progress {
    fn result(&self, step: StepId) -> Option<&StepResult> {
        self.get(step)?.result.as_ref()
    }
}

/// Returns whether the arguments of two calls, as JSON, mean the same: the keys of objects in any order,
/// numbers by value.
#[must_use]
pub fn same_arguments(one: &str, other: &str) -> bool {
    one == other
        || read(one).zip(read(other)).is_some_and(|(one, other)| one.means_the_same(&other))
}

/// Reads arguments without references.
fn read(json: &str) -> Option<Template> {
    Some(Template::of_json(json::read(json).ok()?, None, &mut Vec::new()))
}

/// Returns whether two steps do the same, given that their references name the same steps.
fn same_action(one: &Step, other: &Step) -> bool {
    match (&one.action, &other.action) {
        (
            Action::Call { function, arguments },
            Action::Call { function: other, arguments: others },
        ) => function == other && arguments.means_the_same(others),
        (one, other) => one == other,
    }
}

/// Returns whether a call was made, and may have taken effect although it failed.
fn may_have_taken_effect(old: &Executed) -> bool {
    let is_open = old.result.as_ref().is_some_and(StepResult::may_have_taken_effect);
    old.state == StepState::Failed && is_open
}

/// Returns the numbers that a step names.
fn named_by(step: &Step) -> Vec<StepId> {
    let mut named = referred_by(step);
    named.extend(&step.after);
    named
}

fn referred_by(step: &Step) -> Vec<StepId> {
    match &step.action {
        Action::Call { arguments, .. } => {
            arguments.references().into_iter().map(|reference| reference.step).collect()
        }
        Action::Anchor { .. } => Vec::new(),
    }
}

impl Template {
    /// Makes every reference name another step.
    fn renumber(&mut self, meant: &impl Fn(StepId) -> StepId) {
        match self {
            Self::Literal(_) | Self::Text(_) => {}
            Self::Whole(reference) => reference.step = meant(reference.step),
            Self::Mixed(pieces) => {
                for piece in pieces {
                    if let crate::Piece::Reference(reference) = piece {
                        reference.step = meant(reference.step);
                    }
                }
            }
            Self::Array(values) => values.iter_mut().for_each(|value| value.renumber(meant)),
            Self::Object(members) => {
                members.iter_mut().for_each(|(_, value)| value.renumber(meant));
            }
        }
    }
}
