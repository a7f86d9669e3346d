//! What became of a step.

use crate::StepId;
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

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// As a model reads it.
    pub text: String,
    /// The same as JSON text, where the tool gave it apart; references are resolved in it then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub structured: Option<String>,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for whoever decides what to do next.
    pub kind: FailureKind,
    /// What happened and what was expected, as a sentence that a model can act on.
    pub message: String,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The tool said so.
    Tool,
    /// The tool's answer says `status=fail`.
    Status,
    /// It took too long.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// A person, or a rule, refused the call.
    Denied,
    /// The arguments could not be bound, or do not fit the tool's schema.
    Arguments,
    /// A reference in the arguments names a part that the result does not have.
    MissingPart,
    /// There is no such tool.
    UnknownTool,
    /// The run was killed while the call was under way: nobody knows whether it took effect.
    UnknownOutcome,
    /// A bound of the run was reached.
    Quota,
}

impl FailureKind {
    /// Whether a plan is made anew because of it: when a tool was run, or would have been, and did not
    /// bring what the plan counts on. What a person, a cancellation or a bound of the run decided is
    /// no reason: another plan would only go round it.
    #[must_use]
    pub fn asks_for_plan(self) -> bool {
        match self {
            Self::Tool
            | Self::Status
            | Self::Timeout
            | Self::Arguments
            | Self::MissingPart
            | Self::UnknownTool
            | Self::UnknownOutcome => true,
            Self::Cancelled | Self::Denied | Self::Quota => false,
        }
    }
}
