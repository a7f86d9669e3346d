//! What became of a step.

use crate::StepId;
use foldback_tool::{Data, FailureKind};
use serde::{Deserialize, Serialize};

/// What became of a step. Each step of a plan gets exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StepResult {
    /// The tool answered.
    Success {
        /// What it answered.
        data: Data,
    },
    /// The tool failed, or was not run because of what it was asked.
    Error {
        /// Why.
        failure: Failure,
    },
    /// It was not run because another step failed, or because a new plan stands in its place.
    Skipped {
        /// The step that failed; or the anchor that the new plan answered.
        because: StepId,
    },
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for whoever decides what to do next.
    pub kind: FailureKind,
    /// What happened and what was expected, as a sentence that a model can act on.
    pub message: String,
}

impl Failure {
    /// Whether a plan is made anew because of it: when a tool was run, or would have been, and did not
    /// bring what the plan counts on. What a person, a cancellation or a bound of the run decided is
    /// no reason: another plan would only go round it.
    #[must_use]
    pub fn asks_for_plan(&self) -> bool {
        match self.kind {
            FailureKind::Tool
            | FailureKind::Status
            | FailureKind::Timeout
            | FailureKind::Arguments
            | FailureKind::MissingPart
            | FailureKind::UnknownTool
            | FailureKind::UnknownOutcome => true,
            FailureKind::Cancelled | FailureKind::Denied | FailureKind::Quota => false,
        }
    }
}
