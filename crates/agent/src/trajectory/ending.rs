//! How a run ended.

use crate::Resource;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why it ended.
    pub stop: Stop,
    /// The final answer, if the run produced one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The model answered.
    Answered,
    /// The greatest number of turns was reached.
    MaxSteps,
    /// The model said and called the same again and again, also after it was told.
    Stuck,
    /// Something may not be spent any more.
    Exhausted {
        /// What.
        resource: Resource,
    },
    /// The model could not be asked, or went on answering what cannot be used.
    ModelFailed {
        /// Why.
        message: String,
    },
    /// The model's answer was cut off at its greatest length, again when it was asked once more; what
    /// there is of it is the answer.
    CutOff,
    /// The model ended the run by calling `terminate`.
    Terminated {
        /// How it went, by its own word.
        status: TerminateStatus,
    },
    /// The caller gave up.
    Cancelled,
    /// The context or the journal failed. Such a run has no record.
    Failed {
        /// Why.
        message: String,
    },
}

/// How a run went, by the word of the model that ended it.
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
            Self::CutOff => f.write_str("The answer was cut off at its greatest length"),
            Self::Terminated { status } => {
                write!(f, "Terminated by the model with status: {status}")
            }
            Self::Cancelled => f.write_str("Cancelled"),
            Self::Failed { message } => write!(f, "The run failed: {message}"),
        }
    }
}

impl Ending {
    /// The ending of a run that came to an answer.
    #[must_use]
    pub fn answered(answer: impl Into<String>) -> Self {
        Self { stop: Stop::Answered, answer: Some(answer.into()) }
    }

    /// What the caller receives: the answer, or why there is none.
    #[must_use]
    pub fn told(&self) -> String {
        self.answer.clone().unwrap_or_else(|| self.stop.to_string())
    }
}

impl From<Stop> for Ending {
    /// The ending of a run that came to no answer.
    fn from(stop: Stop) -> Self {
        Self { stop, answer: None }
    }
}
