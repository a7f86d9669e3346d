//! Ending a run before its plan ends.

use super::Run;
use crate::executor::call::{doubt, failure};
use crate::executor::event::Event;
use crate::{JournalError, Resource};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, FailureKind};
use std::pin::Pin;
use std::sync::Arc;
use tokio::time::{Instant, Sleep};

/// The reason why nothing is started any more, and the time until which running calls are waited for.
pub(super) struct Ending {
    pub(super) kind: FailureKind,
    pub(super) reason: String,
    pub(super) patience: Option<Pin<Box<Sleep>>>,
}

impl Run {
    /// Ends the run if it was cancelled, or its time was up, while it was not driven.
    pub(super) fn end_if_due(&mut self) {
        if self.ending.is_some() {
            return;
        }
        if self.around.cancelled.is_cancelled() {
            self.end_by_cancellation();
        } else if self.wall.as_ref().is_some_and(|wall| wall.deadline() <= Instant::now()) {
            self.end_by_wall_time();
        }
    }

    pub(super) fn end_by_cancellation(&mut self) {
        self.end_early(FailureKind::Cancelled, "the run was cancelled".to_owned());
    }

    pub(super) fn end_by_wall_time(&mut self) {
        self.wall = None;
        let is_spent = self.around.log.spend().deadline().is_some_and(|end| end <= Instant::now());
        let reason = match self.around.shared.settings.quota.wall_time {
            Some(limit) if !is_spent => format!("the run reached its limit of {limit:?}"),
            _ => format!("the run may spend no more {}", Resource::Time),
        };
        self.end_early(FailureKind::Quota, reason);
    }

    /// Starts nothing more, asks running calls to stop, and gives them the settings' grace.
    fn end_early(&mut self, kind: FailureKind, reason: String) {
        let grace = self.around.shared.settings.grace;
        let patience = Some(Box::pin(tokio::time::sleep(grace)));
        self.ending = Some(Ending { kind, reason, patience });
        self.around.cancelled.cancel();
        self.cancel_rest();
    }

    pub(super) fn cancel_rest(&mut self) {
        let closed = self.schedule.cancel_rest();
        self.close(closed);
        self.give_up_admitted(&self.cancelled_result());
    }

    /// Gives a result to every step that is ready and not started.
    pub(super) fn give_up_admitted(&mut self, result: &StepResult) {
        self.held.clear();
        self.consent.clear();
        self.lanes.clear();
        for step in std::mem::take(&mut self.admitted) {
            let closed = self.schedule.fail(step).unwrap_or_default();
            self.results.insert(step, result.clone());
            self.tell(match result {
                StepResult::Skipped { because } => Event::Skipped { step, because: *because },
                _ => Event::Ended { step, success: false },
            });
            self.close(closed);
        }
    }

    /// Drops the calls that did not end in time after they were asked to.
    pub(super) fn abandon(&mut self) {
        // Some may have ended in time while the run was not driven.
        if let Some(joined) = self.tasks.try_join_next() {
            self.take_results(joined);
        }
        if let Some(ending) = &mut self.ending {
            ending.patience = None;
        }
        self.tasks.abort_all();
        for step in std::mem::take(&mut self.in_flight).into_keys() {
            self.give_place_up(step);
            if let Some(report) = self.calls.get_mut(&step) {
                report.ended = self.began.elapsed();
            }
            let mut result = self.cancelled_result();
            if let StepResult::Error { failure } = &mut result {
                failure.message.push_str(" while it was being called");
                failure.message.push_str(self.effect_of(step).map_or("", doubt));
            }
            self.settle(step, result);
        }
    }

    pub(super) fn cancelled_result(&self) -> StepResult {
        match &self.ending {
            Some(Ending { kind, reason, .. }) => failure(*kind, reason.clone()),
            None => failure(FailureKind::Cancelled, "the run was cancelled"),
        }
    }

    fn effect_of(&self, step: StepId) -> Option<Effect> {
        let function = &self.calls.get(&step)?.function;
        Some(self.around.shared.catalog.get(function)?.effect)
    }

    /// Notes that the journal failed: nothing more is started.
    pub(super) fn fail(&mut self, error: Arc<JournalError>) {
        let reason = format!("the journal failed: {error}");
        self.error.get_or_insert(error);
        if self.ending.is_none() {
            self.end_early(FailureKind::Cancelled, reason);
        }
    }
}

/// Waits until the time is up, for ever if there is no limit.
pub(super) async fn elapsed(sleep: &mut Option<Pin<Box<Sleep>>>) {
    match sleep {
        Some(sleep) => sleep.as_mut().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn patience(ending: &mut Option<Ending>) {
    match ending {
        Some(ending) => elapsed(&mut ending.patience).await,
        None => std::future::pending().await,
    }
}
