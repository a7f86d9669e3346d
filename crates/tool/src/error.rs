//! The error of a tool.

use serde::{Deserialize, Serialize};

/// The error of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind, which says whether another attempt may help.
    pub kind: ToolErrorKind,
    /// What happened and what to do next, as text for a model.
    pub message: String,
}

impl ToolError {
    /// Creates an error for a call that may work later.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Transient, message: message.into() }
    }

    /// Creates an error for a call that would fail again.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Permanent, message: message.into() }
    }

    /// Creates an error for wrong arguments.
    #[must_use]
    pub fn arguments(message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Arguments, message: message.into() }
    }
}

/// The kinds of failure of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The same call may work later.
    Transient,
    /// Another attempt does not help.
    Permanent,
    /// The arguments are wrong.
    Arguments,
    /// Another attempt does not help, and the kind of failure is known from elsewhere, such as the record
    /// of a run.
    Known(FailureKind),
}

impl ToolErrorKind {
    /// Returns the kind of failure of the step, or the call, that ran the tool.
    #[must_use]
    pub fn failure(self) -> FailureKind {
        match self {
            Self::Arguments => FailureKind::Arguments,
            Self::Transient | Self::Permanent => FailureKind::Tool,
            Self::Known(kind) => kind,
        }
    }
}

/// The kinds of failure of a step, or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The tool reported an error.
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
    /// The run was killed while the call was in progress: it is unknown whether it took effect.
    UnknownOutcome,
    /// A limit of the run was reached.
    Quota,
}
