//! Texts that are not messages.

/// A text that is not a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The text is not JSON, or not an object.
    #[error("a message is a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// A key that every message has is missing.
    #[error("a message has the key {key:?}, but this one does not")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A key has a value of another shape.
    #[error("the key {key:?} of a message must be {expected}, not {found}")]
    Shape {
        /// The key.
        key: &'static str,
        /// What it holds in chat-completions.
        expected: &'static str,
        /// The beginning of the value found.
        found: String,
    },
}
