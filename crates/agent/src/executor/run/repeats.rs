//! Calls with an effect that another plan of the run has made already.

use super::Run;
use foldback_planner::{StepId, StepResult, same_arguments};
use foldback_tool::{Effect, ToolSpec};

/// The outcome of an earlier call, as far as it forbids the same call.
enum Outcome {
    /// It took effect, or is under way.
    Done,
    /// It may have taken effect.
    Unknown,
    /// It took no effect.
    Nothing,
}

impl Run {
    /// Returns why a step's call is not made: a step of another plan made the same call, which has an effect,
    /// and it succeeded or may have succeeded. A plan may contain the same call twice, but a new plan that
    /// repeats an earlier one by mistake must not pay twice.
    pub(super) fn repeats(&self, id: StepId, tool: &ToolSpec, arguments: &str) -> Option<String> {
        if tool.effect != Effect::Effectful {
            return None;
        }
        let plan = self.plan_of.get(&id);
        let is_same = |step: StepId, function: &str, others: &str| {
            function == tool.name()
                && self.plan_of.get(&step) != plan
                && !self.past.are_one_plan(step, id)
                && same_arguments(others, arguments)
        };
        let made = self
            .calls
            .iter()
            .filter(|(step, call)| is_same(**step, &call.function, &call.arguments));
        let made = made.map(|(step, _)| (*step, outcome(self.results.get(step), Outcome::Done)));
        // Calls of an earlier process: those that never ended, and those of plans that are not here yet.
        let earlier = self
            .past
            .begun()
            .filter(|(step, (function, others), _)| is_same(*step, function, others));
        let earlier = earlier.map(|(step, _, ended)| {
            let result = self.results.get(&step).or(ended);
            (step, outcome(result, Outcome::Unknown))
        });
        made.chain(earlier).find_map(|(step, outcome)| match outcome {
            Outcome::Done => Some(format!(
                "not called: {step} does exactly this already; refer to its result, or change the \
                 arguments if the repeat is intended"
            )),
            Outcome::Unknown => Some(format!(
                "not called: {step} was exactly this, and its outcome is unknown: it may have taken \
                 effect; check first, and change the arguments if the repeat is intended"
            )),
            Outcome::Nothing => None,
        })
    }
}

/// Returns the outcome of a call with this result, or the given one without a result.
fn outcome(result: Option<&StepResult>, open: Outcome) -> Outcome {
    match result {
        None => open,
        Some(StepResult::Success { .. }) => Outcome::Done,
        Some(result) if result.may_have_taken_effect() => Outcome::Unknown,
        Some(_) => Outcome::Nothing,
    }
}
