//! A turn whose calls are those of the chat API: they run together, and each has its own result.

use crate::agent::AgentError;
use crate::observation;
use crate::react::Walk;
use crate::trajectory::Purpose;
use foldback_core::{ContextManager, Message, ToolCall};
use foldback_planner::{
    Data, Failure, FailureKind, FindingKind, Findings, Plan, Step, StepId, StepResult, lower_calls,
};
use std::collections::BTreeMap;

/// Runs the calls of a message that is recorded already, and records their results in its order: those
/// of the policy's own tools first, one after the other, then the agent's, together.
///
/// A call that cannot be made (arguments that are no JSON, or too large) has an error for its result;
/// the others run all the same. When the policy or the journal fails, the run ends; what is not known
/// by then is told as that, so that no call stays without a result.
pub(crate) async fn run(
    walk: &mut Walk<'_>,
    context: &mut dyn ContextManager,
    calls: &[ToolCall],
) -> Result<(), AgentError> {
    let mut told = BTreeMap::new();
    let ran = run_all(walk, context, calls, &mut told).await;
    let unknown = match &ran {
        Ok(()) => String::new(),
        Err(error) => format!("Not known: the run ended early: {error}"),
    };
    for (call, id) in calls.iter().zip((1..).map(StepId)) {
        let text = told.get(&id).unwrap_or(&unknown);
        let text = if text.trim().is_empty() { observation::NOTHING } else { text };
        context.record(Message::tool_result(&call.id, text))?;
    }
    ran
}

/// Runs calls; step N is the call at index N - 1. What the model is told of each is in `told` as far as
/// it is known, also when the run fails.
async fn run_all(
    walk: &mut Walk<'_>,
    context: &mut dyn ContextManager,
    calls: &[ToolCall],
    told: &mut BTreeMap<StepId, String>,
) -> Result<(), AgentError> {
    let turn = walk.recorder.next_turn();
    let is_memory = |call: &ToolCall| context.tools().iter().any(|tool| tool.name == call.name);
    let (memory, others): (Vec<_>, Vec<_>) =
        (1..).map(StepId).zip(calls).partition(|(_, call)| is_memory(call));
    let lowered = lower_calls(calls);
    let mut whole = lowered.plan;
    let mut own = Plan { form: whole.form, steps: Vec::new() };
    let is_own = |step: &mut Step| others.iter().any(|(id, _)| *id == step.id);
    own.steps.extend(whole.steps.extract_if(.., is_own));
    let checked = walk.agent.validator().plan(&mut own);
    whole.steps.extend(own.steps.iter().cloned());
    whole.steps.sort_by_key(|step| step.id);
    walk.recorder.classify(turn, whole.form, calls.len());
    walk.recorder.planned(turn, Purpose::React, &whole, Vec::new());

    for (id, call) in &memory {
        walk.recorder.step_began(turn, *id, &call.name, &call.arguments);
        let answer = context.call(call)?;
        // The policy knows its own answers by their words.
        told.insert(*id, answer.text.clone());
        let result = if answer.is_error {
            let failure = Failure { kind: FailureKind::Tool, message: answer.text };
            StepResult::Error { failure }
        } else {
            StepResult::Success { data: Data { text: answer.text, structured: None } }
        };
        walk.recorder.step_ended(turn, *id, result);
    }
    if others.is_empty() {
        return Ok(());
    }
    for (id, _) in others {
        if let Some(failure) = failure(id, &[&lowered.findings, &checked]) {
            let result = StepResult::Error { failure };
            told.insert(id, observation::of_result(&result));
            walk.recorder.refused(turn, id, result);
        }
    }
    own.steps.retain(|step| !told.contains_key(&step.id));
    let options = walk.run_options(turn, context);
    let outcome = walk.agent.executor.run(&own, options).await?;
    walk.ran(turn, &outcome);
    told.extend(outcome.results.iter().map(|(id, result)| (*id, observation::of_result(result))));
    Ok(())
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
