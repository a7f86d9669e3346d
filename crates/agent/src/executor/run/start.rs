//! The way from a ready step to its call.

use super::Run;
use crate::executor::CallReport;
use crate::executor::call::{Call, failure};
use crate::executor::consent::{Candidate, Decided};
use crate::executor::event::{Event, Trigger};
use crate::executor::executor::Shared;
use crate::executor::lanes::{Again, Turn};
use crate::executor::settings::Eager;
use crate::facts::facts;
use crate::{Approver, Decision, Record, RunEvent};
use foldback_planner::{Action, ArgumentsError, StepId, StepResult};
use foldback_tool::{ContextHandle, Effect, FailureKind, ToolSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The next action for a ready step.
enum Prepared {
    Call(Candidate),
    /// It has a result without a call.
    Settled(StepResult),
}

impl Run {
    /// Starts the steps that may start.
    pub(super) fn pump(&mut self) {
        self.end_if_due();
        loop {
            self.take_ready();
            self.announce_anchors();
            while let Some(turn) = self.lanes.start_next(self.around.shared.settings.max_parallel) {
                match turn {
                    Turn::First(call) => self.spawn(call),
                    Turn::Again(again) => self.go_on(again),
                }
            }
            // The refusal of a call may have made other steps ready.
            if self.schedule.ready().next().is_none() {
                break;
            }
        }
    }

    /// Takes every ready step towards its call.
    fn take_ready(&mut self) {
        loop {
            let ready: Vec<StepId> = self.schedule.ready().collect();
            if ready.is_empty() {
                break;
            }
            let mut batch = Vec::new();
            for id in ready {
                // The failure of an earlier one may have cancelled the others.
                if self.schedule.start(id).is_err() {
                    continue;
                }
                match self.prepare(id) {
                    Prepared::Call(candidate) => {
                        self.admitted.insert(id);
                        if self.may_start(&candidate.call) {
                            batch.push(candidate);
                        } else {
                            self.held.push(candidate);
                        }
                    }
                    Prepared::Settled(result) => self.settle(id, result),
                }
            }
            batch.retain(|candidate| self.admitted.contains(&candidate.call.step));
            self.admit(batch);
        }
    }

    /// Announces each reached anchor once.
    fn announce_anchors(&mut self) {
        let reached = self.schedule.anchors_reached().filter(|id| !self.announced.contains(id));
        for step in reached.collect::<Vec<_>>() {
            self.announced.insert(step);
            self.tell(Event::ReplanWanted { step, trigger: Trigger::Anchor });
        }
    }

    /// Prepares a step's call, or its result if there is nothing to call.
    fn prepare(&mut self, id: StepId) -> Prepared {
        let refuse = |kind, message| Prepared::Settled(failure(kind, message));
        let Some(Action::Call { function, arguments }) =
            self.steps.get(&id).map(|step| &step.action)
        else {
            return refuse(FailureKind::UnknownTool, format!("{id} calls no tool"));
        };
        let Shared { toolbox, catalog, .. } = &*self.around.shared;
        let Some(tool) = toolbox.get(function) else {
            let nearest = catalog.nearest(function).map(str::to_owned);
            let error = ArgumentsError::UnknownFunction { function: function.clone(), nearest };
            return refuse(FailureKind::UnknownTool, error.to_string());
        };
        let most_bytes = self.around.shared.settings.quota.plan.bound_bytes;
        let bound = catalog.bind(function, arguments, &self.results, most_bytes);
        let arguments = match bound {
            Ok(arguments) => arguments,
            Err(error) => return Prepared::Settled(StepResult::Error { failure: error.failure() }),
        };
        if let Err(result) = self.check(function, &arguments) {
            return Prepared::Settled(result);
        }
        if let Some(message) = self.repeats(id, tool.spec(), &arguments) {
            return refuse(FailureKind::Arguments, message);
        }
        let key = idempotency_key(&self.around.run, id, function, &arguments);
        let function = function.clone();
        let call = Call {
            step: id,
            function,
            arguments,
            key,
            tool: Arc::clone(tool),
            global_context: None,
        };
        // A decision applies to one call: different arguments make a different call.
        let past = self.past.take_call(id).and_then(|past| past.decision);
        match past.filter(|(key, _)| *key == call.key) {
            Some((_, decision)) => self.decided(call, decision),
            None => Prepared::Call(self.candidate(call)),
        }
    }

    /// Applies a decision to a call.
    fn decided(&self, mut call: Call, decision: Decision) -> Prepared {
        match decision {
            Decision::Approved => {}
            Decision::Changed { arguments } => {
                if let Err(result) = self.check(&call.function, &arguments) {
                    return Prepared::Settled(result);
                }
                call.key = idempotency_key(&self.around.run, call.step, &call.function, &arguments);
                call.arguments = arguments;
            }
            Decision::Denied { reason } => {
                return Prepared::Settled(failure(
                    FailureKind::Denied,
                    format!("not_executed: {reason}"),
                ));
            }
        }
        Prepared::Call(Candidate { call, ask: false })
    }

    /// Checks that arguments fit a tool's schema; otherwise returns the step's result.
    fn check(&self, function: &str, arguments: &str) -> Result<(), StepResult> {
        let checked = self.around.shared.catalog.check_arguments(function, arguments);
        checked.map_err(|error| failure(FailureKind::Arguments, error.to_string()))
    }

    /// Returns a call, and whether it needs approval. An approver that panics at this question wants to be asked.
    fn candidate(&self, call: Call) -> Candidate {
        let needs = |who: &Arc<dyn Approver>| {
            let needs = || who.needs(call.tool.spec(), &call.arguments);
            catch_unwind(AssertUnwindSafe(needs)).unwrap_or(true)
        };
        let ask = self.around.shared.approver.as_ref().is_some_and(needs);
        Candidate { call, ask }
    }

    /// Returns whether a call may be made although the plan may still be incomplete.
    pub(super) fn may_start(&self, call: &Call) -> bool {
        self.schedule.is_sealed()
            || match self.around.shared.settings.eager {
                Eager::Nothing => false,
                Eager::ReadOnly => call.tool.spec().effect == Effect::ReadOnly,
                Eager::Everything => true,
            }
    }

    /// Admits calls that became ready together: all of them go to the approver first if one of them needs
    /// approval.
    pub(super) fn admit(&mut self, batch: Vec<Candidate>) {
        let approver = self.around.shared.approver.clone();
        if let Some(approver) = approver.filter(|_| batch.iter().any(|candidate| candidate.ask)) {
            self.consent.push(batch);
            self.ask_for_consent(&approver);
        } else {
            for candidate in batch {
                self.lanes.push(candidate.call);
            }
        }
    }

    /// Continues with calls that were decided on, and with those that waited beside them. All decisions are
    /// recorded before any call is made.
    pub(super) fn take_decisions(&mut self, decided: Vec<Decided>) {
        for (call, decision) in &decided {
            let Some(decision) = decision.clone() else { continue };
            let (step, key) = (call.step, call.key.clone());
            let noted = self.note_down(&Record::Decided { step, key, decision: decision.clone() });
            if let Some(turn) = self.around.turn {
                let decided = RunEvent::ApprovalDecided { turn, step, decision: &decision };
                self.around.log.emit(decided);
            }
            if noted.is_err() {
                return;
            }
        }
        for (call, decision) in decided {
            let step = call.step;
            // An earlier refusal may have cancelled it.
            if !self.admitted.contains(&step) {
                continue;
            }
            let prepared = match decision {
                Some(decision) => self.decided(call, decision),
                None => Prepared::Call(Candidate { call, ask: false }),
            };
            match prepared {
                Prepared::Call(candidate) => self.lanes.push(candidate.call),
                Prepared::Settled(result) => {
                    self.admitted.remove(&step);
                    self.settle(step, result);
                }
            }
        }
        if let Some(approver) = self.around.shared.approver.clone() {
            self.ask_for_consent(&approver);
        }
    }

    /// Asks about the calls that wait for approval, and emits that.
    fn ask_for_consent(&mut self, approver: &Arc<dyn Approver>) {
        let timeout = self.around.shared.settings.approval_timeout;
        let todo = self.around.context.as_ref().map(ContextHandle::todo);
        let asked = self.consent.ask(approver, timeout, todo);
        let Some(turn) = self.around.turn else { return };
        for request in &asked {
            self.around.log.emit(RunEvent::ApprovalAsked { turn, request });
        }
    }

    /// Returns the context for a tool that sees all of it: the text that the run was given, and the results of
    /// its steps so far.
    fn global_context(&self, tool: &ToolSpec) -> Option<Arc<str>> {
        let told = self.around.global_context.as_ref().filter(|_| tool.global_context)?;
        if self.results.is_empty() {
            return Some(Arc::clone(told));
        }
        let facts = facts(&self.progress(), &self.calls, usize::MAX, None);
        Some(format!("{told}\n\nThe steps so far:\n{facts}").into())
    }

    pub(super) fn spawn(&mut self, mut call: Call) {
        let step = call.step;
        self.admitted.remove(&step);
        let spent = self.spent().or_else(|| {
            let resource = self.around.log.spend().begin_tool_call().err()?;
            Some(format!("not called: the run may spend no more {resource}"))
        });
        if let Some(message) = spent {
            self.lanes.end();
            self.settle(step, failure(FailureKind::Quota, message));
            return;
        }
        self.call_count += 1;
        call.global_context = self.global_context(call.tool.spec());
        let now = self.began.elapsed();
        let report = CallReport {
            function: call.function.clone(),
            arguments: call.arguments.clone(),
            key: call.key.clone(),
            attempts: 0,
            started: now,
            ended: now,
            from_journal: false,
        };
        let (function, arguments) = (call.function.clone(), call.arguments.clone());
        self.calls.insert(step, report);
        self.tell(Event::Started { step, function, arguments });
        let span = call.span();
        let task = self.tasks.spawn(call.make(Arc::clone(&self.around), span));
        self.in_flight.insert(step, task.id());
    }

    /// Lets a call be retried, unless it has ended meanwhile.
    fn go_on(&mut self, again: Again) {
        if self.resting.remove(&again.step) {
            let _ = again.go.send(());
        } else {
            self.lanes.end();
        }
    }

    /// Returns the limit of the run that is reached, if one is, so that nothing more is called.
    fn spent(&self) -> Option<String> {
        let quota = &self.around.shared.settings.quota;
        if self.call_count >= quota.calls {
            return Some(format!("not called: a run makes at most {} calls", quota.calls));
        }
        let (found, limit) = (self.output_bytes, quota.run_output_bytes);
        (found > limit).then(|| {
            format!(
                "not called: the calls so far returned {found} bytes; the limit of a run is {limit}"
            )
        })
    }
}

/// Returns the key of a call, the same for the same call of the same run and for no other: each part is hashed
/// with its length.
fn idempotency_key(run: &str, step: StepId, function: &str, arguments: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [run, &step.to_string(), function, arguments] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut key = hasher.finalize().to_hex().to_string();
    key.truncate(32);
    key
}
