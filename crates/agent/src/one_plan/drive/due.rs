//! The decision when a new plan is due, and why.

use super::super::request::{Reason, State};
use super::Drive;
use crate::trajectory::{DegradeReason, Purpose};
use foldback_planner::{Action, Progress, ReplanReason, Step, StepId, StepResult, StepState};
use foldback_tool::FailureKind;

impl Drive<'_> {
    /// Asks for a new plan if one is due: for an anchor at once, for failures when nothing else can proceed.
    pub(super) fn plan_anew_if_due(&mut self) {
        let progress = self.run.progress();
        let Some(reason) = self.due(&progress) else { return };
        // The failures that a planner knows are recorded here: a resumed run may have more by now.
        let kind = reason.kind(&progress);
        let Some(round) = self.replans.begin(&kind, &Progress::default()) else {
            // The answer can report a failure, but a decision has to be made.
            if let Some(step) = reason.anchor {
                let used = self.replans.used();
                let detail = format!("{step} asks for a decision, and {used} replans were made");
                self.degrade(DegradeReason::ReplansSpent, detail, &reason);
            }
            return;
        };
        self.told.extend(reason.failed.iter().chain(&reason.refused));
        let request =
            self.requests.replan(&self.state(&progress, reason.anchor), &reason, round.is_last);
        self.ask(Purpose::REPLAN, reason, request);
    }

    /// Returns why a new plan is due now, if it is. A resumed run asks in the order of the one that was killed.
    fn due(&self, progress: &Progress) -> Option<Reason> {
        if let Some((purpose, noted)) = self.next_noted()
            && purpose == Purpose::REPLAN
        {
            return noted.is_due(progress, self.is_idle).then_some(noted);
        }
        let anchor = match self.replans.due(progress)? {
            ReplanReason::Anchor { step, .. } => Some(step),
            ReplanReason::Failures { .. } => None,
        };
        let new = || progress.iter().filter(|step| !self.told.contains(&step.step.id));
        // A tool that sees the whole context deals with its failures itself.
        let failed = new().filter(|step| step.asks_for_plan() && !self.settles_itself(&step.step));
        let failed: Vec<StepId> = failed.map(|step| step.step.id).collect();
        if anchor.is_none() && failed.is_empty() {
            return None;
        }
        let refused = new().filter(|step| match &step.result {
            Some(StepResult::Error { failure }) => failure.kind == FailureKind::Denied,
            _ => false,
        });
        let refused = refused.map(|step| step.step.id).collect();
        Some(Reason { anchor, failed, refused, ..Reason::default() })
    }

    /// Returns the state of the run for a planner: the failures that it shows cause no further plan.
    pub(super) fn state_for_planner(&mut self) -> State {
        let progress = self.run.progress();
        let failed = progress.iter().filter(|step| step.asks_for_plan());
        self.told.extend(failed.map(|step| step.step.id));
        self.state(&progress, None)
    }

    fn settles_itself(&self, step: &Step) -> bool {
        let Action::Call { function, .. } = &step.action else { return false };
        let tool = self.agent.executor.catalog().get(function);
        tool.is_some_and(|tool| tool.global_context)
    }
}

impl Reason {
    /// Returns whether this run has reached the point at which an earlier one asked for this reason. An anchor
    /// that has ended was asked about before, and its answer came too late: it is read again, to the same end.
    fn is_due(&self, progress: &Progress, is_idle: bool) -> bool {
        let is_reached = |anchor| {
            let state = progress.get(anchor).map(|step| step.state);
            state == Some(StepState::AnchorReached) || has_ended_undecided(progress, anchor)
        };
        self.anchor.map_or(is_idle, is_reached)
    }

    /// Returns the kind of the reason, by which replans are counted.
    fn kind(&self, progress: &Progress) -> ReplanReason {
        let task = |step| match &progress.get(step)?.step.action {
            Action::Anchor { task } => Some(task.clone()),
            Action::Call { .. } => None,
        };
        match self.anchor {
            Some(step) => ReplanReason::Anchor { step, task: task(step).unwrap_or_default() },
            None => ReplanReason::Failures { steps: self.failed.clone() },
        }
    }
}

/// Returns whether an anchor has ended without a decision.
pub(super) fn has_ended_undecided(progress: &Progress, anchor: StepId) -> bool {
    let state = progress.get(anchor).map(|step| step.state);
    matches!(state, Some(StepState::Skipped { .. } | StepState::Cancelled | StepState::Failed))
}
