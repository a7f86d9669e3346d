//! Why something was not recorded.

/// Why an exchange was not recorded: a sentence without its full stop.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Unkept {
    /// The request has no known shape.
    #[error("{0}")]
    Unreadable(String),
    /// The answer has none. The request was recorded.
    #[error("{0}")]
    Answer(String),
    /// The store refused it.
    #[error("{0}")]
    Store(String),
}
