//! The way from a call's result to the steps that may start because of it.

use super::Run;
use crate::RunEvent;
use crate::executor::call::{Finished, bytes_of, failure};
use crate::executor::event::{Event, Trigger};
use crate::executor::lanes::Rest;
use crate::executor::{CallReport, RunError};
use crate::sub_agents::noted_runs;
use foldback_planner::{Action, FailurePolicy, Step, StepId, StepResult, StepState};
use foldback_tool::{Effect, FailureKind};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinError;

impl Run {
    /// Takes a call that has ended, and all others that have ended by now, in the order of their steps.
    pub(super) fn take_results(&mut self, first: Result<Finished, JoinError>) {
        let more: Vec<_> = std::iter::from_fn(|| self.tasks.try_join_next()).collect();
        let joined = std::iter::once(first).chain(more);
        let mut finished: Vec<Finished> =
            joined.filter_map(|joined| self.finished(joined)).collect();
        finished.sort_unstable_by_key(|finished| finished.step);
        for finished in finished {
            self.take_result(finished);
        }
    }

    /// Returns the result of a call. Its task may have panicked in a journal, or in a tool's description of
    /// itself.
    fn finished(&self, joined: Result<Finished, JoinError>) -> Option<Finished> {
        let error = match joined {
            Ok(finished) => return Some(finished),
            Err(error) => error,
        };
        let step = *self.in_flight.iter().find(|(_, task)| **task == error.id())?.0;
        let result = failure(FailureKind::Tool, format!("the call of {step} panicked"));
        Some(Finished { step, attempts: 0, result, error: None })
    }

    fn take_result(&mut self, finished: Finished) {
        let Finished { step, attempts, mut result, error } = finished;
        if self.in_flight.remove(&step).is_none() {
            // It was abandoned before, and has its result.
            return;
        }
        self.give_place_up(step);
        self.output_bytes = self.output_bytes.saturating_add(bytes_of(&result));
        if let Some(report) = self.calls.get_mut(&step) {
            report.attempts = attempts;
            report.ended = self.began.elapsed();
        }
        if let (StepResult::Error { failure }, Some(ending)) = (&mut result, &self.ending)
            && failure.kind == FailureKind::Cancelled
        {
            // The call knows that it was stopped; the run knows why.
            failure.kind = ending.kind;
        }
        self.settle(step, result);
        if let Some(error) = error {
            self.fail(Arc::new(error));
        }
    }

    /// Takes the place of a call that rests between two attempts, or lets it wait for one again.
    pub(super) fn take_rest(&mut self, rest: Rest) {
        match rest {
            Rest::Began(step) => {
                if self.in_flight.contains_key(&step) && self.resting.insert(step) {
                    self.lanes.end();
                }
            }
            Rest::Over(again) => self.lanes.push_again(again),
        }
    }

    /// Releases the place of a call that was in progress.
    pub(super) fn give_place_up(&mut self, step: StepId) {
        if !self.resting.remove(&step) {
            self.lanes.end();
        }
    }

    /// Gives a started step its result.
    pub(super) fn settle(&mut self, step: StepId, result: StepResult) {
        let success = matches!(result, StepResult::Success { .. });
        let trigger = self.trigger(step, &result);
        self.results.insert(step, result);
        self.tell(Event::Ended { step, success });
        let ended = if success { self.schedule.finish(step) } else { self.schedule.fail(step) };
        self.close(ended.unwrap_or_default());
        if let Some(trigger) = trigger {
            self.tell(Event::ReplanWanted { step, trigger });
        }
        let policy = self.steps.get(&step).map(|step| step.on_failure);
        if !success && policy == Some(FailurePolicy::FailFast) {
            self.give_up_admitted(&StepResult::Skipped { because: step });
        }
    }

    /// Returns why a result asks for a new plan, if it does.
    pub(super) fn trigger(&self, step: StepId, result: &StepResult) -> Option<Trigger> {
        let StepResult::Error { failure } = result else { return None };
        if self.ending.is_some() || !failure.asks_for_plan() {
            return None;
        }
        if let Some(Action::Call { function, .. }) = self.steps.get(&step).map(|step| &step.action)
            && let Some(spec) = self.around.shared.catalog.get(function)
            && spec.global_context
        {
            return None;
        }
        let is_status = failure.kind == FailureKind::Status;
        Some(if is_status { Trigger::StatusFail } else { Trigger::Failure })
    }

    /// Records the steps that the schedule ended by itself.
    pub(super) fn close(&mut self, closed: Vec<StepId>) {
        for step in closed {
            if let Some(StepState::Skipped { because }) = self.schedule.state(step) {
                self.results.insert(step, StepResult::Skipped { because });
                self.tell(Event::Skipped { step, because });
            } else {
                let result = self.cancelled_result();
                self.results.insert(step, result);
                self.tell(Event::Ended { step, success: false });
            }
        }
    }

    /// Restores what the journal holds for new steps; `closed` are those that the schedule ended at once, over
    /// which a recorded result takes precedence.
    pub(super) fn restore(
        &mut self,
        steps: &[Step],
        mut closed: Vec<StepId>,
    ) -> Result<(), RunError> {
        let mut restored = Vec::new();
        for step in steps {
            self.restore_sub_agents(step.id)?;
            let Some((at, result)) = self.past_result(step.id) else { continue };
            if step.on_failure == FailurePolicy::FailFast {
                self.halts.push((at, step.id, result.clone()));
            }
            restored.push((step.id, result));
        }
        // A failure also applies to the plans that existed when it happened.
        let brought_at = steps.iter().map(|step| self.past.brought_at(step.id)).min().flatten();
        let is_later = |at: usize| brought_at.is_some_and(|brought| brought < at);
        let halts = self.halts.iter().filter(|(at, _, _)| is_later(*at));
        let halts = halts.map(|(_, step, result)| (*step, result));
        let results = restored.iter().map(|(step, result)| (*step, result)).chain(halts);
        let anchors = self.steps.keys().filter(|step| self.past.was_replanned(**step));
        let anchors: Vec<StepId> = anchors.copied().collect();
        let mut skipped = self.schedule.restore_beside(results, &anchors)?;
        // So does one of a plan that is added later: what it kept from starting must not start before that.
        let is_coming = |step: StepId| !self.steps.contains_key(&step);
        let halt = brought_at.and_then(|at| self.past.halted_after(at, is_coming));
        skipped.extend(halt.into_iter().flat_map(|step| self.schedule.halt_beside(step, &anchors)));

        let ids: BTreeSet<StepId> = restored.iter().map(|(step, _)| *step).collect();
        closed.retain(|step| !ids.contains(step));
        for (step, result) in restored {
            let success = matches!(result, StepResult::Success { .. });
            let trigger = self.trigger(step, &result);
            self.results.insert(step, result);
            self.tell(Event::Ended { step, success });
            if let Some(trigger) = trigger {
                self.tell(Event::ReplanWanted { step, trigger });
            }
        }
        self.close(closed);
        self.close(skipped);
        Ok(())
    }

    /// Emits again what sub-agents did for a step's call in an earlier process: those that had ended do not
    /// work again.
    fn restore_sub_agents(&self, step: StepId) -> Result<(), RunError> {
        let (Some(journal), Some(call)) = (&self.around.shared.journal, self.past.call(step))
        else {
            return Ok(());
        };
        for trajectory in &noted_runs(&**journal, &call.key)? {
            self.around.log.emit(RunEvent::SubAgentEnded { call: &call.key, trajectory });
        }
        Ok(())
    }

    /// Returns what an earlier run left of a step's call, and the number of that record: its result; or an
    /// unknown outcome, if the call began, never ended, and may do harm if it is repeated.
    fn past_result(&mut self, step: StepId) -> Option<(usize, StepResult)> {
        let call = self.past.call(step)?;
        if call.ended.is_none() {
            let (function, _) = call.began.as_ref()?;
            let tool = self.around.shared.toolbox.get(function);
            if tool.is_some_and(|tool| tool.spec().effect != Effect::Effectful) {
                return None;
            }
            let message = format!(
                "an earlier run was killed while it called {function}: it is not known whether the call \
                 took effect, and it is not repeated; find out, and continue from what you find"
            );
            let (at, key) = (call.at, call.key.clone());
            let began = call.began.clone()?;
            self.report_past(step, began, (key, 1));
            return Some((at, failure(FailureKind::UnknownOutcome, message)));
        }
        let call = self.past.take_call(step)?;
        let (attempts, result) = call.ended?;
        // A call that was refused before it began was not made.
        let Some(began) = call.began else { return Some((call.at, result)) };
        self.call_count += usize::from(attempts > 0);
        let spent = call.spent.as_ref();
        self.around.log.emit(RunEvent::CallRestored { attempts, spent });
        self.output_bytes = self.output_bytes.saturating_add(bytes_of(&result));
        self.report_past(step, began, (call.key, attempts));
        Some((call.at, result))
    }

    /// Reports a call of an earlier run, with its key and its attempts.
    fn report_past(
        &mut self,
        step: StepId,
        (function, arguments): (String, String),
        (key, attempts): (String, u32),
    ) {
        let now = self.began.elapsed();
        let report = CallReport {
            function,
            arguments,
            key,
            attempts,
            started: now,
            ended: now,
            from_journal: true,
        };
        self.calls.insert(step, report);
    }
}
