//! Timeouts.

use std::time::Duration;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a whole answer. For a streamed answer: for its first piece, and for any other while the
    /// provider sends only keep-alives (comments, pings).
    pub answer: Duration,
    /// For the next piece, or the next keep-alive, of a streamed answer.
    pub silence: Duration,
}

impl Default for Timeouts {
    /// Ten minutes for an answer, as the providers' own clients wait; two for a silent stream.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(600),
            silence: Duration::from_secs(120),
        }
    }
}

impl Timeouts {
    /// Sets how long to wait for a connection.
    #[must_use]
    pub fn with_connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// Sets how long to wait for a whole answer.
    #[must_use]
    pub fn with_answer(self, answer: Duration) -> Self {
        Self { answer, ..self }
    }

    /// Sets how long to wait for the next piece of an answer.
    #[must_use]
    pub fn with_silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }
}
