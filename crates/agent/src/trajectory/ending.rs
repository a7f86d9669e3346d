//! The ending of a run.

use crate::Resource;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The ending of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The reason why it ended.
    pub stop: Stop,
    /// The final answer, if the run produced one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The model answered.
    Answered,
    /// The maximum number of turns was reached.
    MaxSteps,
    /// The model repeated the same text and calls, even after it was asked to stop.
    Stuck,
    /// A resource may not be spent any more.
    Exhausted {
        /// The resource.
        resource: Resource,
    },
    /// The model could not be asked, or kept giving unusable answers.
    ModelFailed {
        /// The cause.
        message: String,
    },
    /// The model's answer was cut off at its maximum length, and so was that to a second request; the part
    /// that exists is the answer.
    CutOff,
    /// The model ended the run by calling `terminate`.
    Terminated {
        /// How it went, according to the model.
        status: TerminateStatus,
    },
    /// A step of a flow could not be done, and the plan could not be remade; what was done is final.
    StepFailed {
        /// Its number, from 0.
        step: usize,
        /// The reason.
        why: String,
    },
    /// The caller cancelled the run.
    Cancelled,
    /// The context or the journal failed. Such a run has no record.
    Failed {
        /// The cause.
        message: String,
    },
}

/// How a run went, according to the model that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminateStatus {
    /// What was asked for is done.
    Success,
    /// It cannot be done.
    Failure,
}

impl fmt::Display for TerminateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::Failure => "failure",
        })
    }
}

impl fmt::Display for Stop {
    /// A sentence for the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered => f.write_str("Answered"),
            Self::MaxSteps => f.write_str("Terminated: Reached max steps"),
            Self::Stuck => {
                f.write_str("Terminated: the model repeats itself, and does not stop when told")
            }
            Self::Exhausted { resource } => {
                write!(f, "Terminated: the run may spend no more {resource}")
            }
            Self::ModelFailed { message } => write!(f, "The model failed: {message}"),
            Self::CutOff => f.write_str("The answer was cut off before its end"),
            Self::Terminated { status } => {
                write!(f, "Terminated by the model with status: {status}")
            }
            Self::StepFailed { step, why } => write!(f, "Step {step} could not be done: {why}"),
            Self::Cancelled => f.write_str("Cancelled"),
            Self::Failed { message } => write!(f, "The run failed: {message}"),
        }
    }
}

impl Ending {
    /// Creates the ending of a run with an answer.
    #[must_use]
    pub fn answered(answer: impl Into<String>) -> Self {
        Self { stop: Stop::Answered, answer: Some(answer.into()) }
    }

    /// Returns what the caller receives: the answer, or the reason why there is none.
    #[must_use]
    pub fn told(&self) -> String {
        self.answer.clone().unwrap_or_else(|| self.stop.to_string())
    }
}

impl From<Stop> for Ending {
    /// Creates the ending of a run without an answer.
    fn from(stop: Stop) -> Self {
        Self { stop, answer: None }
    }
}
