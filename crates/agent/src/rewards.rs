//! What a run was worth, computed from its record alone: no model, no clock.
//!
//! A reward is a number; 0 means nothing to blame, less means that the run chose its strategy badly.

mod foresight;
mod known;

pub use foresight::{PlannableTurns, could_have_planned_once};

use crate::trajectory::Trajectory;
use foldback_planner::{
    Action, BindError, Catalog, Limits, Reference, StepId, StepResult, Template,
};
use foresight::part_of;
use std::collections::BTreeMap;

/// Something that judges a run by its record.
pub trait Judge {
    /// The name that its reward stands under in a record.
    fn name(&self) -> &str;

    /// The reward; `None` where it has nothing to say on this run.
    fn judge(&self, record: &Trajectory) -> Option<f64>;
}

/// Asks each judge, and writes what they say into the record's rewards. The run of each sub-agent is judged
/// by itself, and has rewards of its own.
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

/// The judges of this crate.
#[must_use]
pub fn own_judges() -> [&'static dyn Judge; 2] {
    [&CouldHavePlannedOnce, &GuessedRashly]
}

/// Blames turns that were spent on looking where nothing had to be looked at: minus the share of the
/// turns with tool calls that one plan would have spared.
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

/// Blames plans that counted on something in a result that was not there, and that the tool's output
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
    /// The place that it names.
    pub reference: Reference,
}

impl Guess {
    /// What came of the step that is referred to, where it succeeded: a failed step says nothing
    /// about what was guessed of its result.
    fn seen<'r>(&self, record: &'r Trajectory) -> Option<&'r StepResult> {
        let result = record.result(self.turn, self.reference.step)?;
        matches!(result, StepResult::Success { .. }).then_some(result)
    }

    /// Whether the output schema of the step's tool declares the path.
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

    /// Whether the result has no such part.
    fn is_rash(&self, result: &StepResult) -> bool {
        let results = BTreeMap::from([(self.reference.step, result.clone())]);
        let whole = Template::Whole(self.reference.clone());
        let bound = Catalog::default().bind("", &whole, &results, Limits::default().bound_bytes);
        matches!(bound, Err(BindError::NoSuchPart { .. }))
    }
}

/// The references of the plans that ran whose path the actual result does not have. Where the tool's
/// recorded output schema declares the path, the tool broke its word, and nobody guessed.
#[must_use]
pub fn guessed_rashly(record: &Trajectory) -> Vec<Guess> {
    let is_rash = |guess: &Guess| guess.seen(record).is_some_and(|seen| guess.is_rash(seen));
    references(record).filter(|guess| is_rash(guess) && !guess.was_promised(record)).collect()
}

/// The references of the plans that ran.
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

/// Minus `part` of `all`; `None` of nothing.
fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| 0.0 - part as f64 / all as f64)
}
