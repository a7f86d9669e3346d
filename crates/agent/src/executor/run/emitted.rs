//! The events of a run's steps, emitted to the log of the agent that they belong to.

use super::Run;
use crate::RunEvent;
use crate::executor::event::Event;
use foldback_planner::{Action, StepId};

impl Run {
    /// Emits an event of a step, if the run belongs to a turn of an agent.
    pub(super) fn emit(&self, event: &Event) {
        let Some(turn) = self.around.turn else { return };
        let log = &self.around.log;
        match event {
            Event::Started { step, function, arguments } => {
                let (step, tool) = (*step, function);
                log.emit(RunEvent::StepBegan { turn, step, tool, arguments });
            }
            Event::Ended { step, .. } => {
                let Some(result) = self.results.get(step) else { return };
                let (step, tool, call) = (*step, self.tool(*step), self.calls.get(step));
                log.emit(RunEvent::StepEnded { turn, step, tool, result, call });
            }
            Event::Skipped { step, because } => {
                log.emit(RunEvent::StepSkipped { turn, step: *step, because: *because });
            }
            Event::ReplanWanted { .. } => {}
        }
    }

    /// Returns the tool that a step called, or was to call.
    fn tool(&self, step: StepId) -> Option<&str> {
        if let Some(call) = self.calls.get(&step) {
            return Some(&call.function);
        }
        match &self.steps.get(&step)?.action {
            Action::Call { function, .. } => Some(function),
            Action::Anchor { .. } => None,
        }
    }
}
