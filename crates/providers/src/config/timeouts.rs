//! How patiently a model is asked.

use std::time::Duration;

/// How long to wait for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a whole answer. Of one that is streamed: for the first piece, and for any other while the
    /// provider gives nothing but signs of life (comments, pings).
    pub answer: Duration,
    /// For the next piece, or the next sign of life, of an answer that is streamed.
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
    /// The same, waiting so long for a connection.
    #[must_use]
    pub fn with_connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// The same, waiting so long for a whole answer.
    #[must_use]
    pub fn with_answer(self, answer: Duration) -> Self {
        Self { answer, ..self }
    }

    /// The same, waiting so long for the next piece of an answer.
    #[must_use]
    pub fn with_silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }
}
