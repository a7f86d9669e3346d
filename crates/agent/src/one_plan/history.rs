//! A planned run as a conversation: each plan is a message with its calls.

use super::request::unsound;
use crate::Outcome;
use crate::json_line::compact;
use crate::observation::CallTold;
use crate::strategy::StrategyRun;
use foldback_core::{ContextError, ContextManager, Message, ToolCall};
use foldback_planner::{Action, Catalog, Step, StepId, StepResult};
use foldback_tool::FailureKind;

/// A plan that was made, as the model wrote it.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) text: String,
    /// Its steps.
    pub(super) steps: Vec<Step>,
    /// The reasons why it, or the rest of it, could not be run.
    pub(super) findings: Vec<String>,
}

/// Records a run: every call of every plan with its result, including calls that failed before they were
/// made, were refused or skipped. Anchors are in the text of their plan.
pub(super) fn record(
    context: &mut dyn ContextManager,
    rounds: &[Round],
    outcome: &Outcome,
    run: &StrategyRun<'_>,
) -> Result<(), ContextError> {
    for round in rounds {
        let catalog = run.agent().executor.catalog();
        let made = round.steps.iter().filter_map(|step| told(step, rounds, outcome, catalog));
        let (calls, results): (Vec<ToolCall>, Vec<CallTold>) = made.unzip();
        // A plan that could not be run, with the reply to it, would only be imitated.
        let has_failed = round.steps.is_empty() && !round.findings.is_empty();
        if has_failed || calls.is_empty() && round.text.trim().is_empty() {
            continue;
        }
        let message = run.with_own_ids(Message::calls(&round.text, calls));
        let calls = message.tool_calls().to_vec();
        context.record(message)?;
        for (call, result) in calls.iter().zip(&results) {
            context.record(result.message(&call.id))?;
        }
        if !round.findings.is_empty() {
            context.record(Message::observation(&unsound(&round.findings)))?;
        }
    }
    Ok(())
}

/// Returns the first plans of a run whose results are all final: a resumed run makes the calls that were
/// cancelled, or held back by a limit of the run.
pub(super) fn ended<'a>(rounds: &'a [Round], outcome: &Outcome) -> &'a [Round] {
    let is_open = |step: &Step| match outcome.results.get(&step.id) {
        Some(StepResult::Error { failure }) => {
            matches!(failure.kind, FailureKind::Cancelled | FailureKind::Quota)
        }
        result => result.is_none(),
    };
    let ended = rounds.iter().take_while(|round| !round.steps.iter().any(is_open)).count();
    rounds.get(..ended).unwrap_or_default()
}

/// Returns a step's call, with references unfilled if they never were filled, and its result.
fn told(
    step: &Step,
    rounds: &[Round],
    outcome: &Outcome,
    catalog: &Catalog,
) -> Option<(ToolCall, CallTold)> {
    let Action::Call { function, arguments } = &step.action else { return None };
    let result = outcome.results.get(&step.id)?;
    let id = step.id.to_string();
    let call = match outcome.calls.get(&step.id) {
        Some(call) => ToolCall::new(&id, &call.function, &call.arguments),
        None => ToolCall::new(&id, function, &compact(&arguments.to_string())),
    };
    let told = CallTold::of_result(result, catalog.get(&call.name));
    let told = match result {
        StepResult::Skipped { because } if is_anchor(*because, rounds) => told.in_words(format!(
            "Not run: it waited for {because}, and what followed was replanned."
        )),
        _ => told,
    };
    Some((call, told))
}

fn is_anchor(id: StepId, rounds: &[Round]) -> bool {
    let mut steps = rounds.iter().flat_map(|round| &round.steps);
    steps.any(|step| step.id == id && matches!(step.action, Action::Anchor { .. }))
}
