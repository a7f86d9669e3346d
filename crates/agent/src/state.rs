//! The states of a run, and its beginning and end.

use crate::agent::{Agent, AgentError, Report, Task};
use crate::executor::Claim;
use crate::notes::check_task;
use crate::trajectory::Stop;
use crate::{Journal, JournalError, Record, RunError, RunEvent, RunLog, StrategyName};
use foldback_core::TodoId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind under which the states of a run are noted.
const KIND: &str = "state";

/// The state of a run. A run that is idle begins or resumes, and one that failed is tried again. One that is
/// running is refused with [`RunError::InUse`], and one that a journal holds as finished gives the same answer
/// again without any request or call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It is not running: it has not begun, or was cancelled, killed, or out of steps or budget, and can
    /// resume.
    #[default]
    Idle,
    /// It is running.
    Running,
    /// It ended by itself.
    Finished,
    /// The model, the context or the journal failed. It can be tried again.
    Error,
}

impl AgentState {
    /// Returns the state of a run that ended in this way.
    #[must_use]
    pub fn after(stop: &Stop) -> Self {
        match stop {
            Stop::Answered | Stop::CutOff | Stop::Terminated { .. } | Stop::StepFailed { .. } => {
                Self::Finished
            }
            Stop::ModelFailed { .. } | Stop::Failed { .. } => Self::Error,
            Stop::MaxSteps | Stop::Stuck | Stop::Exhausted { .. } | Stop::Cancelled => Self::Idle,
        }
    }

    /// Returns the state that a journal holds.
    fn noted(records: &[Record]) -> Self {
        let noted = records.iter().rev().find_map(|record| match record {
            Record::Note { kind, body } if kind == KIND => serde_json::from_str(body).ok(),
            _ => None,
        });
        // The process that noted it as running was killed, unless the run is still running.
        noted.filter(|state| *state != Self::Running).unwrap_or_default()
    }

    fn note(self, journal: &dyn Journal, run: &str) -> Result<(), JournalError> {
        let body = serde_json::to_string(&self)?;
        journal.append(run, &Record::Note { kind: KIND.to_owned(), body })
    }
}

impl Agent {
    /// Returns the state of the run with this name. Without a journal, one that has ended is idle.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn state(&self, run: &str) -> Result<AgentState, AgentError> {
        if self.executor.is_running(run) {
            return Ok(AgentState::Running);
        }
        let records = self.executor.records(run)?;
        Ok(AgentState::noted(&records))
    }
}

/// A run from its beginning to its end, both of which are logged. Its spending is counted separately, and the
/// journal holds its state.
pub(crate) struct LoggedRun {
    pub(crate) log: RunLog,
    /// The task, whose spending is counted separately.
    pub(crate) task: Task,
    journal: Option<Arc<dyn Journal>>,
    /// The state that the journal holds.
    noted: AgentState,
    /// The run's name is in use until it has ended.
    _claim: Option<Claim>,
}

impl LoggedRun {
    /// Claims the run's name, and begins its log.
    ///
    /// # Errors
    /// When a run of this name is running, too many runs are around it, or the journal fails.
    pub(crate) fn begin(
        agent: &Agent,
        task: &Task,
        todo: &TodoId,
        strategy: &StrategyName,
    ) -> Result<Self, AgentError> {
        let run = &task.run;
        let (claim, journal, records) = agent.executor.hold(run, task.depth)?;
        if let Some(journal) = &journal {
            check_task(&records, task, strategy, &**journal)?;
        }
        let mut noted = AgentState::noted(&records);
        // A run that is tried again is running. A finished one stays finished when its answer is requested.
        if let Some(journal) = &journal
            && noted == AgentState::Error
        {
            noted = AgentState::Running;
            noted.note(&**journal, run).map_err(RunError::from)?;
        }
        let task = Task { spend: task.spend.counting(), ..task.clone() };
        let log = RunLog::new(todo, task.spend.clone(), task.observer.clone());
        let (request, resumed) = (&*task.request, !records.is_empty());
        log.emit(RunEvent::Began { request, strategy, resumed });
        Ok(Self { log, task, journal, noted, _claim: claim })
    }

    /// Ends the run.
    ///
    /// # Errors
    /// The error that ended the run, or a failure of the journal now.
    pub(crate) fn end(self, ended: Result<Report, AgentError>) -> Result<Report, AgentError> {
        let (stop, answer) = match &ended {
            Ok(report) => (report.trajectory.outcome.stop.clone(), report.answer()),
            Err(error) => (Stop::Failed { message: error.to_string() }, None),
        };
        let state = AgentState::after(&stop);
        let noted = match &self.journal {
            Some(journal) if state != AgentState::Idle && state != self.noted => {
                state.note(&**journal, &self.task.run)
            }
            _ => Ok(()),
        };
        self.log.emit(RunEvent::Ended { stop: &stop, answer });
        // An error that is already known takes precedence.
        let report = ended?;
        noted.map_err(RunError::from)?;
        Ok(report)
    }
}
