//! Why a run could not be started, given more steps, or ended.

use super::Outcome;
use crate::JournalError;
use foldback_planner::{LimitError, ScheduleError, StepId};
use std::sync::Arc;

/// Why a run could not be started, given more steps, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The steps do not make a plan.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The plan is too large.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Too many runs stand inside each other.
    #[error(
        "this run would stand inside {depth} others; at most {limit} runs may stand inside each other"
    )]
    Depth {
        /// How many runs stand around it.
        depth: u32,
        /// How many there may be, this one included.
        limit: u32,
    },
    /// The journal holds another plan under this run's name.
    #[error(
        "the journal of run {run:?} holds another {step} than this plan; resume with the plan that was recorded, or give the run another name"
    )]
    Changed {
        /// The run.
        run: String,
        /// The step that differs.
        step: StepId,
    },
    /// The run is going on already.
    #[error("run {run:?} is going on already; wait for it to end, or give this run another name")]
    InUse {
        /// The run.
        run: String,
    },
    /// A run without a name would be mixed up with others in the journal.
    #[error("a run with a journal needs a name of its own, and got an empty one")]
    Unnamed,
    /// The run broke off while its plan was being written: what came of it may be half of something.
    #[error(
        "the plan of run {run:?} had not been written to its end; open the run again and bring the plan anew"
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
        /// Why.
        #[source]
        error: Arc<JournalError>,
        /// What became of the run up to there, where it had begun and has been brought to its end. What
        /// it holds may be in no journal.
        outcome: Option<Box<Outcome>>,
    },
}

impl From<JournalError> for RunError {
    fn from(error: JournalError) -> Self {
        Self::Journal { error: Arc::new(error), outcome: None }
    }
}
