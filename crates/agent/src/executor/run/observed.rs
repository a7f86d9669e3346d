//! Telling whoever watches what happens to a run's steps.

use super::Run;
use crate::executor::event::Event;
use crate::{AgentEvent, observation};
use foldback_planner::{Action, StepId, StepResult};
use serde_json::Value;

impl Run {
    /// Tells whoever watches, where the run belongs to a turn of an agent.
    pub(super) fn tell_observer(&self, event: &Event) {
        let Some((turn, watch)) = &self.around.told else { return };
        let turn = *turn;
        match event {
            Event::Started { step, function, arguments } => {
                let (step, tool, arguments) = (*step, function.clone(), arguments.clone());
                watch.tell(&AgentEvent::CallBegan { turn, step, tool, arguments });
            }
            Event::Ended { step, success } => {
                watch.tell_of(|| self.ended(turn, *step, *success));
            }
            Event::Skipped { step, because } => {
                watch.tell(&AgentEvent::CallSkipped { turn, step: *step, because: *because });
            }
            Event::ReplanWanted { .. } => {}
        }
    }

    fn ended(&self, turn: u32, step: StepId, success: bool) -> AgentEvent {
        let call = self.calls.get(&step);
        let planned = || match &self.steps.get(&step)?.action {
            Action::Call { function, .. } => Some(function.clone()),
            Action::Anchor { .. } => None,
        };
        let result = self.results.get(&step);
        let told = result.map(observation::of_result).unwrap_or_default();
        let took = call.map(|call| call.ended.saturating_sub(call.started)).unwrap_or_default();
        AgentEvent::CallEnded {
            turn,
            step,
            tool: call.map(|call| call.function.clone()).or_else(planned).unwrap_or_default(),
            success,
            exit_code: result.and_then(exit_code),
            excerpt: observation::beginning(&told),
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            from_journal: call.is_some_and(|call| call.from_journal),
        }
    }
}

/// What the command that a call ran ended with, as its tool tells it.
fn exit_code(result: &StepResult) -> Option<i64> {
    let StepResult::Success { data } = result else { return None };
    let structured: Value = serde_json::from_str(data.structured.as_deref()?).ok()?;
    structured.get("exit_code")?.as_i64()
}
