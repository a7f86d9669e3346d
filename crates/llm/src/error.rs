//! Why a model did not answer.

use crate::Usage;
use std::time::Duration;

/// A request that was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, for the caller to decide what to do next.
    pub kind: ModelErrorKind,
    /// What happened, as a sentence; never a key.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// The tokens that the failed answer took, if there was one; all 0 if the provider did not report them.
    pub usage: Option<Usage>,
}

impl ModelError {
    /// Creates an error; `message` is a sentence that says what was wrong and what was expected.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, usage: None }
    }

    /// Sets the tokens that the failed answer took.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing or was refused.
    Authentication,
    /// The account has no credit left.
    Quota,
    /// The request was refused as it is.
    Request,
    /// The request is longer than the model's window.
    ContextLength,
    /// There are too many requests.
    RateLimit,
    /// The provider failed or could not be reached.
    Unavailable,
    /// It took too long.
    Timeout,
    /// The answer could not be read.
    Response,
    /// Settings are missing or contradict each other.
    Configuration,
}

impl ModelErrorKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Authentication,
        Self::Quota,
        Self::Request,
        Self::ContextLength,
        Self::RateLimit,
        Self::Unavailable,
        Self::Timeout,
        Self::Response,
        Self::Configuration,
    ];

    /// Returns the name, as records and recordings hold it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Quota => "quota",
            Self::Request => "request",
            Self::ContextLength => "context_length",
            Self::RateLimit => "rate_limit",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Response => "response",
            Self::Configuration => "configuration",
        }
    }

    /// Returns the kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Unavailable | Self::Timeout)
    }
}
