//! A turn whose calls are those of the chat API: they run together, and each has its own result.

use super::react_loop::ReactLoop;
use crate::AgentEvent;
use crate::agent::AgentError;
use crate::observation;
use crate::trajectory::TerminateStatus;
use foldback_core::{ContextManager, Message, ToolCall};
use foldback_planner::{
    Failure, FindingKind, Findings, Plan, Step, StepId, StepResult, lower_calls,
};
use foldback_tool::{Data, FailureKind};
use std::collections::BTreeMap;

/// What a turn came to, beside its results.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// The model ended the run.
    pub(crate) terminates: Option<TerminateStatus>,
    /// None of its calls may be made.
    pub(crate) is_refused: bool,
    /// Some of its calls have no result yet: a resumed run makes them.
    pub(crate) is_left_open: bool,
}

/// Runs the calls of a message that is recorded already, and records their results in its order: those
/// of the policy's own tools first, one after the other, then the agent's, together, then the loop's.
///
/// A call that cannot be made (arguments that are no JSON, or too large) has an error for its result;
/// the others run all the same. When the policy or the journal fails, or the run is cancelled, it ends.
/// With a journal, calls that a resumed run makes stay without a result until then, and so do those
/// behind them: what is told of a call is what came of it. Without one, what is not known is told as
/// that, so that no call stays without a result.
pub(crate) async fn run(
    react: &mut ReactLoop<'_>,
    context: &mut dyn ContextManager,
    calls: &[ToolCall],
) -> Result<Ran, AgentError> {
    let mut told = BTreeMap::new();
    let mut ran = run_all(react, context, calls, &mut told).await;
    let unknown = match &ran {
        Ok(_) => String::new(),
        Err(error) => format!("Not known: the run ended early: {error}"),
    };
    for (call, id) in calls.iter().zip((1..).map(StepId)) {
        let text = match told.get(&id) {
            None if react.is_resumable() => {
                ran.iter_mut().for_each(|ran| ran.is_left_open = true);
                break;
            }
            told => told.unwrap_or(&unknown),
        };
        let text = if text.trim().is_empty() { observation::NOTHING } else { text };
        context.record(Message::tool_result(&call.id, text))?;
    }
    ran
}

/// Whose tool a call is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Policy,
    Agent,
    Loop,
    /// One that the model may not call now.
    Nobody,
}

/// Runs calls; step N is the call at index N - 1. What the model is told of each is in `told` as far as
/// it is known, also when the run fails.
async fn run_all(
    react: &mut ReactLoop<'_>,
    context: &mut dyn ContextManager,
    calls: &[ToolCall],
    told: &mut BTreeMap<StepId, String>,
) -> Result<Ran, AgentError> {
    let turn = react.recorder.next_turn();
    let lowered = lower_calls(calls);
    let calls = sorted(react, context, calls);
    let of = |who: Whose| calls.iter().filter(move |(_, _, whose)| *whose == who);
    let mut whole = lowered.plan;
    let mut own = Plan { form: whole.form, steps: Vec::new() };
    let is_own = |step: &mut Step| of(Whose::Agent).any(|(id, _, _)| *id == step.id);
    own.steps.extend(whole.steps.extract_if(.., is_own));
    let checked = react.agent.validator().plan(&mut own);
    whole.steps.extend(own.steps.iter().cloned());
    whole.steps.sort_by_key(|step| step.id);
    react.recorder.classify(turn, whole.form, calls.len());
    react.planned(turn, &whole, Vec::new());

    for (id, call, _) in of(Whose::Policy) {
        react.recorder.step_began(turn, *id, &call.name, &call.arguments);
        let answer = context.call(call)?;
        react.watch.tell_of(|| AgentEvent::Recalled {
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            is_error: answer.is_error,
            excerpt: observation::beginning(&answer.text),
        });
        // The policy knows its own answers by their words.
        told.insert(*id, answer.text.clone());
        react.recorder.step_ended(turn, *id, result_of(answer.text, answer.is_error));
    }
    let mut refused: Vec<(StepId, Failure)> = Vec::new();
    for (id, _, whose) in &calls {
        let findings = [&lowered.findings, &checked];
        match whose {
            Whose::Agent => refused.extend(failure(*id, &findings).map(|failure| (*id, failure))),
            Whose::Nobody => {
                let message = observation::NOT_ALLOWED.to_owned();
                refused.push((*id, Failure { kind: FailureKind::Denied, message }));
            }
            Whose::Policy | Whose::Loop => {}
        }
    }
    for (id, failure) in refused {
        let result = StepResult::Error { failure };
        let text = observation::of_result(&result);
        let (tool, arguments) = calls
            .iter()
            .find(|call| call.0 == id)
            .map(|(_, call, _)| (call.name.clone(), call.arguments.clone()))
            .unwrap_or_default();
        react.watch.tell_of(|| AgentEvent::CallBegan {
            turn,
            step: id,
            tool: tool.clone(),
            arguments,
        });
        react.watch.tell_of(|| AgentEvent::CallEnded {
            turn,
            step: id,
            tool,
            success: false,
            exit_code: None,
            excerpt: observation::beginning(&text),
            took_us: 0,
            from_journal: false,
        });
        told.insert(id, text);
        react.recorder.refused(turn, id, result);
    }
    own.steps.retain(|step| !told.contains_key(&step.id));
    if of(Whose::Agent).next().is_some() {
        let outcome = react.run_steps(context, turn, &own).await?;
        for (id, result) in &outcome.results {
            if react.is_open(result) {
                continue;
            }
            told.insert(*id, react.shown(turn, *id, observation::of_result(result)));
        }
    }
    let is_refused = of(Whose::Nobody).count() == calls.len();
    let mut ran = Ran { is_refused, ..Ran::default() };
    for (id, call, _) in of(Whose::Loop) {
        react.recorder.step_began(turn, *id, &call.name, &call.arguments);
        let answer = react.own.call(call);
        ran.terminates = ran.terminates.or(answer.terminates);
        told.insert(*id, answer.text.clone());
        react.recorder.step_ended(turn, *id, result_of(answer.text, answer.is_error));
    }
    Ok(ran)
}

/// The calls with their numbers, and whose they are.
fn sorted<'c>(
    react: &ReactLoop<'_>,
    context: &dyn ContextManager,
    calls: &'c [ToolCall],
) -> Vec<(StepId, &'c ToolCall, Whose)> {
    let whose = |call: &ToolCall| {
        if !react.may_call(&call.name) {
            Whose::Nobody
        } else if context.tools().iter().any(|tool| tool.name == call.name) {
            Whose::Policy
        } else if react.own.has(&call.name) {
            Whose::Loop
        } else {
            Whose::Agent
        }
    };
    (1..).map(StepId).zip(calls).map(|(id, call)| (id, call, whose(call))).collect()
}

fn result_of(text: String, is_error: bool) -> StepResult {
    if is_error {
        StepResult::Error { failure: Failure { kind: FailureKind::Tool, message: text } }
    } else {
        StepResult::Success { data: Data { text, structured: None } }
    }
}

/// Why a call cannot be made: everything that was found about it, or about the turn as a whole.
fn failure(id: StepId, findings: &[&Findings]) -> Option<Failure> {
    let concerns = |kind: FindingKind, step: Option<StepId>| match step {
        Some(step) => step == id,
        None => kind == FindingKind::OverLimit,
    };
    let errors = findings.iter().flat_map(|findings| findings.errors());
    let mine: Vec<_> = errors.filter(|finding| concerns(finding.kind, finding.step)).collect();
    let kind = match mine.first()?.kind {
        FindingKind::UnknownFunction => FailureKind::UnknownTool,
        FindingKind::OverLimit => FailureKind::Quota,
        _ => FailureKind::Arguments,
    };
    let messages: Vec<String> = mine.iter().map(ToString::to_string).collect();
    Some(Failure { kind, message: messages.join("; ") })
}
