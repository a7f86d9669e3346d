//! Rewards of a run, computed from its record alone: no model, no clock.
//!
//! A reward is a number; 0 means that nothing is to blame, less means that the run chose its strategy badly.

mod foresight;
mod known;

pub use foresight::{PlannableTurns, could_have_planned_once};

use crate::trajectory::Trajectory;
use foldback_planner::{
    Action, BindError, Catalog, Limits, Reference, StepId, StepResult, Template,
};
use foresight::part_of;
use std::collections::BTreeMap;

/// A judge of runs by their records.
pub trait Judge {
    /// Returns the name of its reward in a record.
    fn name(&self) -> &str;

    /// Returns the reward; `None` if it does not apply to this run.
    fn judge(&self, record: &Trajectory) -> Option<f64>;
}

/// Asks each judge, and writes the rewards into the record. The run of each sub-agent is judged separately,
/// and has rewards of its own.
pub fn judge<'j>(record: &mut Trajectory, judges: impl IntoIterator<Item = &'j dyn Judge>) {
    let judges: Vec<&dyn Judge> = judges.into_iter().collect();
    judge_each(record, &judges);
}

fn judge_each(record: &mut Trajectory, judges: &[&dyn Judge]) {
    for judge in judges {
        match judge.judge(record) {
            Some(reward) => record.rewards.insert(judge.name().to_owned(), reward),
            None => record.rewards.remove(judge.name()),
        };
    }
    record.sub_agents_mut().for_each(|run| judge_each(run, judges));
}

/// Returns the judges of this crate.
#[must_use]
pub fn own_judges() -> [&'static dyn Judge; 2] {
    [&CouldHavePlannedOnce, &GuessedRashly]
}

/// A judge that blames turns in which looking at a result was not needed: minus the share of the turns with
/// tool calls that one plan would have saved.
#[derive(Clone, Copy, Debug, Default)]
pub struct CouldHavePlannedOnce;

impl Judge for CouldHavePlannedOnce {
    fn name(&self) -> &str {
        "could_have_planned_once"
    }

    fn judge(&self, record: &Trajectory) -> Option<f64> {
        let turns = record.strategy.turns.len();
        let spared: usize = could_have_planned_once(record).iter().map(|run| run.spared()).sum();
        share(spared, turns)
    }
}

/// A judge that blames plans that relied on a part of a result that was missing, and that the tool's output
/// schema did not promise either: minus the share of their references that led nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuessedRashly;

impl Judge for GuessedRashly {
    fn name(&self) -> &str {
        "guessed_rashly"
    }

    fn judge(&self, record: &Trajectory) -> Option<f64> {
        let all = references(record).filter(|guess| guess.seen(record).is_some()).count();
        share(guessed_rashly(record).len(), all)
    }
}

/// A reference of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The turn that planned it.
    pub turn: u32,
    /// The step whose arguments hold it.
    pub step: StepId,
    /// The part that it names.
    pub reference: Reference,
}

impl Guess {
    /// Returns the result of the step that is referred to, if it succeeded: a failed step says nothing about
    /// a guess at its result.
    fn seen<'r>(&self, record: &'r Trajectory) -> Option<&'r StepResult> {
        let result = record.result(self.turn, self.reference.step)?;
        matches!(result, StepResult::Success { .. }).then_some(result)
    }

    /// Returns whether the output schema of the step's tool declares the path.
    fn was_promised(&self, record: &Trajectory) -> bool {
        let plans = record.plan.iter().filter(|plan| plan.turn == self.turn);
        let mut steps = plans.flat_map(|plan| &plan.steps);
        let Some(step) = steps.find(|step| step.id == self.reference.step) else { return false };
        let Action::Call { function, .. } = &step.action else { return false };
        let tool = record.situation.tools.iter().find(|tool| tool.name == *function);
        let schema = tool.and_then(|tool| tool.output.as_deref());
        let schema = schema.and_then(|schema| serde_json::from_str(schema).ok());
        schema.is_some_and(|schema| part_of(&schema, &self.reference.path).is_some())
    }

    /// Returns whether the result has no such part.
    fn is_rash(&self, result: &StepResult) -> bool {
        let results = BTreeMap::from([(self.reference.step, result.clone())]);
        let whole = Template::Whole(self.reference.clone());
        let bound = Catalog::default().bind("", &whole, &results, Limits::default().bound_bytes);
        matches!(bound, Err(BindError::NoSuchPart { .. }))
    }
}

/// Returns the references of the plans that ran whose path the actual result does not have. If the tool's
/// recorded output schema declares the path, the tool broke its promise, and it was not a guess.
#[must_use]
pub fn guessed_rashly(record: &Trajectory) -> Vec<Guess> {
    let is_rash = |guess: &Guess| guess.seen(record).is_some_and(|seen| guess.is_rash(seen));
    references(record).filter(|guess| is_rash(guess) && !guess.was_promised(record)).collect()
}

/// Returns the references of the plans that ran.
fn references(record: &Trajectory) -> impl Iterator<Item = Guess> {
    let plans = record.plan.iter().filter(|plan| plan.findings.is_empty());
    plans.flat_map(|plan| {
        plan.steps.iter().flat_map(|step| {
            let references = match &step.action {
                Action::Call { arguments, .. } => arguments.references(),
                Action::Anchor { .. } => Vec::new(),
            };
            references.into_iter().map(|reference| Guess {
                turn: plan.turn,
                step: step.id,
                reference: reference.clone(),
            })
        })
    })
}

/// Returns minus the share of `part` in `all`; `None` if `all` is 0.
fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| 0.0 - part as f64 / all as f64)
}
