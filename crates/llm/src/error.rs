//! Why a model did not answer.

use std::time::Duration;

/// A request that was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind, for whoever decides what to do next.
    pub kind: ModelErrorKind,
    /// What happened, as a sentence; never a key.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// An error; `message` is a sentence that says what was wrong and what was expected.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing or refused.
    Authentication,
    /// The account has nothing left to spend.
    Quota,
    /// The request is refused as it is.
    Request,
    /// The request is longer than the model's window.
    ContextLength,
    /// There are too many requests.
    RateLimit,
    /// The provider fails or cannot be reached.
    Unavailable,
    /// It took too long.
    Timeout,
    /// The answer cannot be read.
    Response,
    /// Settings are missing or do not fit each other.
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

    /// The name, as records and recordings hold it.
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

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether the same request may be answered later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Unavailable | Self::Timeout)
    }
}
