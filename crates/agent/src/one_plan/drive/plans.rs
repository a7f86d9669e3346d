//! The handling of a planner's answer: steps that run, a plan to be repaired, or going step by step.

use super::super::history::Round;
use super::super::question::Question;
use super::super::reading::{Reading, read};
use super::super::request::Reason;
use super::due::has_ended_undecided;
use super::{Closed, Drive, TURN, longer, stop_of};
use crate::RunEvent;
use crate::agent::AgentError;
use crate::journal::PastPlan;
use crate::model_caller::Reply;
use crate::trajectory::{DegradeReason, Degraded, Purpose};
use foldback_llm::{ChatRequest, ModelErrorKind, StopReason};
use foldback_planner::{Action, Form, Plan, Progress, Step};

/// The finding for a plan that reached the greatest length of an answer.
const CUT_OFF: &str = "it reached the maximum length of an answer and was cut off there; \
                       expected a shorter plan";

/// A plan that cannot be run, as it was written, with its faults.
struct Unsound {
    text: String,
    findings: Vec<String>,
    /// The steps that are to blame, as they were written.
    faulty: Vec<String>,
}

impl Drive<'_> {
    /// Handles the model's answer.
    pub(super) fn answered(&mut self, reply: Reply) -> Result<(), AgentError> {
        let Some(question) = self.question.take() else { return Ok(()) };
        let Question { purpose, reason, mut request, was_noted, .. } = question;
        let (text, is_cut) = match reply {
            Reply::Answer(answer) => {
                (answer.message.text().into_owned(), answer.stop == StopReason::Length)
            }
            // An unreadable answer is repaired like an unreadable plan.
            Reply::Failed(error) if error.kind == ModelErrorKind::Response => {
                (String::new(), false)
            }
            other => {
                self.closed = Some(Closed::Ended(stop_of(other)));
                return Ok(());
            }
        };
        if let Some(because) = self.overtaken(&reason) {
            self.rounds.push(Round { text, steps: Vec::new(), findings: vec![because] });
            self.is_news = true;
            return Ok(());
        }
        // The first plan is self-contained, even if some of its steps have started.
        let is_first = purpose == Purpose::PLANNER && !reason.broken_off;
        let progress = if is_first { Progress::default() } else { self.decided(&reason)? };
        let mut reading = read(&text, &progress, &self.agent.validator());
        if was_noted && !is_first {
            reading = self.as_before(reading, &progress);
        }
        match reading {
            Reading::Plan(plan) if plan.steps.is_empty() && self.has_no_steps() => {
                // The answer may be in the conversation, which a planner does not see.
                self.planned(&purpose, &plan, &[]);
                self.run.seal()?;
                self.degrade(DegradeReason::NoSteps, String::new(), &reason);
                Ok(())
            }
            Reading::Plan(plan) => self.take_plan(purpose, text, &plan),
            Reading::StepByStep(why) => {
                self.rounds.push(Round { text, steps: Vec::new(), findings: Vec::new() });
                self.degrade(DegradeReason::Declared, why, &reason);
                Ok(())
            }
            Reading::Unsound { plan, mut findings, faulty } => {
                if is_cut {
                    findings.insert(0, CUT_OFF.to_owned());
                    longer(&mut request);
                }
                self.planned(&purpose, &plan, &findings);
                let unsound = Unsound { text, findings, faulty };
                self.mend(purpose, reason, request, unsound, was_noted)
            }
        }
    }

    /// Reads an answer as the run that was killed read it: more steps may have ended by now, and whether the
    /// plan fits must not change because of that.
    pub(super) fn as_before(&self, reading: Reading, progress: &Progress) -> Reading {
        let was_mended = self.next_noted().is_some_and(|(purpose, _)| purpose == Purpose::REPAIR);
        let is_nothing = match &reading {
            Reading::Plan(plan) => plan.steps.is_empty(),
            Reading::StepByStep(_) => true,
            Reading::Unsound { .. } => false,
        };
        if was_mended || is_nothing {
            return reading;
        }
        let next = progress.next_number();
        let is_new = |steps: &[Step]| steps.first().is_some_and(|step| step.id >= next);
        let before = self.run.past_plans().into_iter().find_map(|past| match past {
            PastPlan::Steps(steps) if is_new(&steps) => Some(steps),
            _ => None,
        });
        match before {
            Some(steps) => Reading::Plan(Plan { form: Form::OnePlan, steps }),
            None => reading,
        }
    }

    /// Returns why a decision is no longer wanted, if that is so: a failure with `FailFast` has ended the anchor
    /// that asked for it.
    fn overtaken(&self, reason: &Reason) -> Option<String> {
        let anchor = reason.anchor?;
        has_ended_undecided(&self.run.progress(), anchor)
            .then(|| format!("it came too late: {anchor} was skipped meanwhile"))
    }

    /// Returns the progress once a reached anchor counts as answered: the steps that waited for it can then be
    /// planned again.
    fn decided(&mut self, reason: &Reason) -> Result<Progress, AgentError> {
        if let Some(anchor) = reason.anchor
            && self.run.anchors_reached().any(|reached| reached == anchor)
        {
            self.run.replanned(anchor)?;
            self.is_idle = false;
        }
        Ok(self.run.progress())
    }

    /// Has a plan that cannot be run rewritten once, with all its faults listed.
    fn mend(
        &mut self,
        purpose: Purpose,
        reason: Reason,
        request: ChatRequest,
        unsound: Unsound,
        was_noted: bool,
    ) -> Result<(), AgentError> {
        let Unsound { text, findings, faulty } = unsound;
        let mut round = Round { text, steps: Vec::new(), findings };
        if purpose == Purpose::REPAIR {
            let detail = round.findings.join("; ");
            self.rounds.push(round);
            self.degrade(DegradeReason::InvalidPlan, detail, &reason);
            return Ok(());
        }
        let is_first = purpose == Purpose::PLANNER && !reason.broken_off;
        if is_first && was_noted && self.next_noted().is_none_or(|(_, r)| !r.unsound.is_empty()) {
            self.recall_early()?;
        }
        if is_first && !self.early.steps.is_empty() {
            // Some of its steps have started: the remaining work is planned beside them.
            self.run.seal()?;
            round.steps.clone_from(&self.early.steps);
            let reason = Reason { unsound: round.findings.clone(), ..reason };
            let state = self.state_for_planner();
            let mut again = self.requests.replan(&state, &reason, false);
            again.sampling = request.sampling;
            self.rounds.push(round);
            self.ask(Purpose::REPAIR, reason, again);
        } else {
            let again = self.requests.repair(request, &round.text, &faulty, &round.findings);
            self.rounds.push(round);
            self.ask(Purpose::REPAIR, reason, again);
        }
        Ok(())
    }

    /// Carries out a plan beside the existing steps.
    pub(super) fn take_plan(
        &mut self,
        purpose: Purpose,
        text: String,
        plan: &Plan,
    ) -> Result<(), AgentError> {
        self.planned(&purpose, plan, &[]);
        let steps = plan.steps.clone();
        self.rounds.push(Round { text, steps, findings: Vec::new() });
        let is_new = |step: &&Step| self.run.step(step.id).is_none();
        let new: Vec<Step> = plan.steps.iter().filter(is_new).cloned().collect();
        self.run.extend(&new)?;
        self.run.seal()?;
        self.is_idle = false;
        Ok(())
    }

    /// Returns whether no step that could be run was planned so far.
    fn has_no_steps(&self) -> bool {
        self.early.steps.is_empty() && self.rounds.iter().all(|round| round.steps.is_empty())
    }

    fn planned(&self, purpose: &Purpose, plan: &Plan, findings: &[String]) {
        let calls = plan.steps.iter().filter(|step| matches!(step.action, Action::Call { .. }));
        let (turn, calls) = (TURN, calls.count());
        self.log.emit(RunEvent::Planned { turn, purpose, plan, calls, findings });
    }

    pub(super) fn degrade(&mut self, because: DegradeReason, detail: String, reason: &Reason) {
        self.undecided.extend(reason.anchor);
        self.closed = Some(Closed::Degraded(Degraded { because, detail }));
    }
}
