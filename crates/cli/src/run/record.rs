//! The record of a run: kept in its folder, and listed by `foldback sessions`.

use super::account::Account;
use super::limits::Limits;
use super::settings::RunSettings;
use crate::settings::Kept;
use foldback_agent::{Report, Resource, SpendTracker, Stop, TerminateStatus};
use foldback_core::{Timestamp, TodoId};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the record's shape.
pub(crate) const VERSION: u32 = 1;

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    pub(crate) version: u32,
    /// Its name.
    pub(crate) id: TodoId,
    /// The conversation that it is a turn of; if there is none, it began a conversation of its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) todo: Option<TodoId>,
    /// The task.
    pub(crate) task: String,
    /// Whether the model's turns are the recorded ones of the demo.
    pub(crate) demo: bool,
    /// The strategy, by name.
    pub(crate) strategy: String,
    /// The context policy, by name.
    pub(crate) context: String,
    /// The model.
    pub(crate) model: String,
    pub(crate) settings: RunSettings,
    pub(crate) limits: Limits,
    /// The settings that were in force when it began. A run from before there were any has the built-in ones.
    #[serde(default)]
    pub(crate) kept: Kept,
    pub(crate) state: RunState,
    /// The answer, or why there is none.
    pub(crate) answer: Option<String>,
    pub(crate) why: Option<String>,
    /// The resource that has run out.
    #[serde(default)]
    pub(crate) spent_up: Option<Resource>,
    /// Whether it ended for good without an answer that it was asked for: to resume it would change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_final: bool,
    /// Whether it may take no more steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) out_of_steps: bool,
    /// What all its parts have spent.
    pub(crate) account: Account,
    /// How many blocks of its conversation were closed.
    pub(crate) blocks: u32,
    pub(crate) began: Timestamp,
    pub(crate) changed: Timestamp,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// It is in progress.
    Running,
    /// Its process ended without reporting it: it was killed.
    Interrupted,
    /// There is an answer.
    Done,
    /// The user cancelled it for now.
    Cancelled,
    /// It ended without an answer.
    Stopped,
}

impl RunState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
        }
    }
}

impl RunRecord {
    /// The todo of its conversation.
    pub(crate) fn todo(&self) -> &TodoId {
        self.todo.as_ref().unwrap_or(&self.id)
    }

    /// The record of a run that was cancelled before it had ended.
    pub(crate) fn left(self, account: Account) -> Self {
        Self { state: RunState::Cancelled, why: None, account, changed: now(), ..self }
    }

    /// The record at the end of its run, whose spending this tracker counted.
    pub(crate) fn ended(
        self,
        report: &Report,
        spend: &SpendTracker,
        account: Account,
        blocks: u32,
    ) -> Self {
        let (state, why) = match &report.trajectory.outcome.stop {
            Stop::Answered | Stop::Terminated { status: TerminateStatus::Success } => {
                (RunState::Done, None)
            }
            Stop::Cancelled => (RunState::Cancelled, None),
            Stop::Exhausted { resource } => {
                // The flow has a time limit of its own.
                let is_own = *resource != Resource::Time || spend.has_none(*resource);
                let bound = self.limits.reached(*resource).filter(|_| is_own);
                let why = bound.map_or_else(
                    || format!("it may spend no more {resource}"),
                    |bound| format!("{bound} is reached: it may spend no more {resource}"),
                );
                (RunState::Stopped, Some(why))
            }
            Stop::MaxSteps => {
                let bound = self.limits.max_steps().map(|steps| format!("--max-steps {steps}"));
                let bound = bound.unwrap_or_else(|| "the greatest number of steps".to_owned());
                (RunState::Stopped, Some(format!("{bound} is reached: it may take no more steps")))
            }
            stop => (RunState::Stopped, Some(stop.to_string())),
        };
        let is_final = state != RunState::Done && is_over(report);
        let out_of_steps = report.trajectory.outcome.stop == Stop::MaxSteps;
        let spent_up = match report.trajectory.outcome.stop {
            Stop::Exhausted { resource } => Some(resource),
            _ => None,
        };
        let answer = report.answer().map(str::to_owned);
        let changed = now();
        Self {
            state,
            answer,
            why,
            spent_up,
            is_final,
            out_of_steps,
            account,
            blocks,
            changed,
            ..self
        }
    }

    /// The record after its run failed.
    pub(crate) fn failed(self, why: String, account: Account) -> Self {
        Self {
            state: RunState::Stopped,
            why: Some(why),
            spent_up: None,
            out_of_steps: false,
            account,
            changed: now(),
            ..self
        }
    }
}

/// Whether a run has ended for good.
pub(super) fn is_over(report: &Report) -> bool {
    let stop = &report.trajectory.outcome.stop;
    matches!(stop, Stop::Answered | Stop::Terminated { .. } | Stop::StepFailed { .. })
}

/// The time, to the millisecond.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
