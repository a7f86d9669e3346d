//! The outcome of a step.

use crate::StepId;
use foldback_tool::{Data, FailureKind};
use serde::{Deserialize, Serialize};

/// The outcome of a step. Each step of a plan gets exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StepResult {
    /// The tool answered.
    Success {
        /// The answer.
        data: Data,
    },
    /// The tool failed, or was not run because of its arguments.
    Error {
        /// The reason.
        failure: Failure,
    },
    /// It was not run because another step failed, or because a new plan took its place.
    Skipped {
        /// The step that failed; or the anchor that the new plan answered.
        because: StepId,
    },
}

impl StepResult {
    /// Returns whether a call with this result may have taken effect although it brought no answer: it
    /// was under way when it was stopped, or its answer was too large to pass on.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        let Self::Error { failure } = self else { return false };
        match failure.kind {
            FailureKind::Timeout
            | FailureKind::UnknownOutcome
            | FailureKind::Cancelled
            | FailureKind::Quota => true,
            FailureKind::Tool
            | FailureKind::Status
            | FailureKind::Denied
            | FailureKind::Arguments
            | FailureKind::MissingPart
            | FailureKind::UnknownTool => false,
        }
    }
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for the caller to decide what to do next.
    pub kind: FailureKind,
    /// What happened and what was expected, as a sentence that a model can act on.
    pub message: String,
}

impl Failure {
    /// Returns whether the failure is a reason to replan: a tool was run, or would have been, and did
    /// not bring what the plan counts on. A decision by a person, a cancellation or a bound of the run
    /// is no reason: another plan would only circumvent it.
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
