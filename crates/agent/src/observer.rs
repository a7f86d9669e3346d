//! Observers of an agent at work.

use crate::executor::CallReport;
use crate::model_caller::Piece;
use crate::react::React;
use crate::spend_tracker::usage_of;
use crate::trajectory::{Purpose, Stop};
use crate::{
    AgentEvent, AgentState, ApprovalRequest, PlannedStep, RunEvent, SpendTracker, ToolOwner,
    observation,
};
use foldback_core::TodoId;
use foldback_llm::{ChatResponse, ModelError, Usage};
use foldback_planner::{StepId, StepResult};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An observer that follows runs while they happen. It is called inside the loop, and must be quick. A panic
/// in it breaks nothing, and loses only the event at which it panicked.
pub trait Observer: Send + Sync {
    /// Receives an event in the run of `todo`: the agent's own, or a sub-agent's.
    fn observe(&self, todo: &TodoId, event: &AgentEvent);

    /// Receives text that the model writes in the run of `todo`, as it comes, many times a second. An observer
    /// that does not override this receives whole answers only.
    fn wrote(&self, todo: &TodoId, piece: &Piece<'_>) {
        let _ = (todo, piece);
    }
}

/// Passes an event to an observer, if the event is meant for observers.
pub(crate) fn hear(
    observer: &dyn Observer,
    todo: &TodoId,
    spend: &SpendTracker,
    event: &RunEvent<'_>,
) {
    let guard = |observe: &dyn Fn()| {
        if catch_unwind(AssertUnwindSafe(observe)).is_err() {
            tracing::warn!(%todo, "an observer panicked");
        }
    };
    let tell = |event: &AgentEvent| guard(&|| observer.observe(todo, event));
    match *event {
        RunEvent::Wrote { piece } => guard(&|| observer.wrote(todo, &piece)),
        RunEvent::StepRefused { turn, step, call, result } => {
            let (tool, arguments) = (call.name.clone(), call.arguments.clone());
            tell(&AgentEvent::CallBegan { turn, step, tool, arguments });
            tell(&ended(turn, step, Some(&call.name), result, None));
        }
        RunEvent::Ended { stop, answer } => {
            if let Stop::Exhausted { resource } = *stop {
                let of_share = spend.lacks_share(resource);
                tell(&AgentEvent::Exhausted { resource, of_share });
            }
            let (stop, answer) = (stop.clone(), answer.map(ToOwned::to_owned));
            let (spent, state) = (spend.spent(), AgentState::after(&stop));
            tell(&AgentEvent::Ended { stop, answer, spent, state });
        }
        _ => {
            if let Some(event) = observed(event, spend) {
                tell(&event);
            }
        }
    }
}

/// Returns the event as an observer receives it; `None` if it is not meant for observers.
fn observed(event: &RunEvent<'_>, spend: &SpendTracker) -> Option<AgentEvent> {
    Some(match *event {
        RunEvent::Began { request, strategy, resumed } => {
            let (request, strategy) = (request.to_owned(), strategy.clone());
            AgentEvent::Began { request, strategy, resumed, state: AgentState::Running }
        }
        RunEvent::Chose { strategy, because } => {
            AgentEvent::Chose { strategy: strategy.clone(), because: because.to_owned() }
        }
        RunEvent::Degraded { because, .. } => {
            AgentEvent::Chose { strategy: React::NAME, because: because.to_owned() }
        }
        RunEvent::Asked { purpose, tokens, .. } => {
            AgentEvent::Asked { purpose: purpose.clone(), tokens }
        }
        RunEvent::Answered { purpose, answer, from_journal, .. } => {
            answered(purpose, answer, from_journal, spend)
        }
        RunEvent::Planned { findings, .. } if !findings.is_empty() => {
            let text = format!("what was planned cannot be run: {}", findings.join("; "));
            AgentEvent::Noted { text: observation::beginning(&text) }
        }
        RunEvent::Planned { turn, plan, .. } => {
            AgentEvent::Planned { turn, steps: plan.steps.iter().map(PlannedStep::from).collect() }
        }
        RunEvent::StartedEarly { turn, step } => {
            AgentEvent::StartedEarly { turn, planned: PlannedStep::from(step) }
        }
        RunEvent::StepBegan { turn, step, tool, arguments } => {
            let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
            AgentEvent::CallBegan { turn, step, tool, arguments }
        }
        RunEvent::StepEnded { turn, step, tool, result, call } => {
            ended(turn, step, tool, result, call)
        }
        RunEvent::StepSkipped { turn, step, because } => {
            AgentEvent::CallSkipped { turn, step, because }
        }
        RunEvent::OwnCallEnded { call, owner: ToolOwner::Policy, text, is_error, .. } => {
            AgentEvent::Recalled {
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
                is_error,
                excerpt: observation::beginning(text),
            }
        }
        RunEvent::ApprovalAsked { turn, request } => {
            let ApprovalRequest { step, function, arguments, .. } = request;
            let (tool, arguments) = (function.clone(), arguments.clone());
            AgentEvent::ApprovalAsked { turn, step: *step, tool, arguments }
        }
        RunEvent::ApprovalDecided { turn, step, decision } => {
            AgentEvent::ApprovalDecided { turn, step, decision: decision.clone() }
        }
        RunEvent::Folded { blocks, recorded_tokens } => {
            AgentEvent::Folded { blocks: blocks.to_vec(), recorded_tokens }
        }
        RunEvent::Todos { list } => AgentEvent::Todos { list: list.clone() },
        RunEvent::Delegated { item, request } => {
            AgentEvent::Delegated { item: item.clone(), request: request.to_owned() }
        }
        RunEvent::HandedBack { item, state, result } => {
            AgentEvent::HandedBack { item: item.clone(), state, result: result.to_owned() }
        }
        RunEvent::Stuck => AgentEvent::Stuck,
        RunEvent::Noted { text } => AgentEvent::Noted { text: text.to_string() },
        _ => return None,
    })
}

fn answered(
    purpose: &Purpose,
    answer: &Result<ChatResponse, ModelError>,
    from_journal: bool,
    spend: &SpendTracker,
) -> AgentEvent {
    let usage = usage_of(answer);
    let (text, error) = match answer {
        Ok(response) => (response.message.text().into_owned(), None),
        Err(error) => (String::new(), Some(error.message.clone())),
    };
    // The cost of a call that failed now is not known, unless its tokens are.
    let is_known = answer.is_ok() || from_journal || usage != Usage::default();
    let cost = is_known.then(|| spend.cost_of(&usage)).flatten();
    let calls = answer.as_ref().map_or(0, |answer| answer.message.tool_calls().len());
    let purpose = purpose.clone();
    AgentEvent::Answered { purpose, usage, cost, text, calls, error, from_journal }
}

fn ended(
    turn: u32,
    step: StepId,
    tool: Option<&str>,
    result: &StepResult,
    call: Option<&CallReport>,
) -> AgentEvent {
    let took = call.map(|call| call.ended.saturating_sub(call.started)).unwrap_or_default();
    AgentEvent::CallEnded {
        turn,
        step,
        tool: tool.unwrap_or_default().to_owned(),
        arguments: call.filter(|call| call.from_journal).map(|call| call.arguments.clone()),
        success: matches!(result, StepResult::Success { .. }),
        exit_code: observation::exit_code(result),
        excerpt: observation::beginning(&observation::of_result(result)),
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        from_journal: call.is_some_and(|call| call.from_journal),
    }
}
