//! The errors of starting a run, giving it more steps, and ending it.

use super::Outcome;
use crate::JournalError;
use foldback_planner::{LimitError, ScheduleError, StepId};
use std::sync::Arc;

/// The reason why a run could not be started, given more steps, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The steps do not form a plan.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The plan is too large.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Too many runs are nested.
    #[error("this run would be nested in {depth} others; at most {limit} runs may be nested")]
    Depth {
        /// The number of runs around it.
        depth: u32,
        /// The most nested runs, including this one.
        limit: u32,
    },
    /// The journal holds another plan under this run's name.
    #[error(
        "the journal of run {run:?} holds a different {step} than this plan; resume with the plan that was recorded, or give the run another name"
    )]
    Changed {
        /// The run.
        run: String,
        /// The step that differs.
        step: StepId,
    },
    /// The run is already running.
    #[error("run {run:?} is already running; wait for it to end, or give this run another name")]
    InUse {
        /// The run.
        run: String,
    },
    /// A run without a name could not be told apart from others in the journal.
    #[error("a run with a journal needs a name of its own, but its name is empty")]
    Unnamed,
    /// The run broke off while its plan was being written: the plan may be incomplete.
    #[error(
        "the plan of run {run:?} was not written to its end; open the run again and supply the plan again"
    )]
    Unfinished {
        /// The run.
        run: String,
    },
    /// There is nothing to resume.
    #[error("the journal holds no run named {run:?}")]
    NothingToResume {
        /// The run.
        run: String,
    },
    /// The journal could not be read or written; nothing more was started.
    #[error("{error}")]
    Journal {
        /// The cause.
        #[source]
        error: Arc<JournalError>,
        /// The outcome of the run so far, if it had begun and was brought to its end. Its contents may be missing
        /// from the journal.
        outcome: Option<Box<Outcome>>,
    },
}

impl From<JournalError> for RunError {
    fn from(error: JournalError) -> Self {
        Self::Journal { error: Arc::new(error), outcome: None }
    }
}
