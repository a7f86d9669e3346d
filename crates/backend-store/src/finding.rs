//! What a check of everything found, and how much there is.

use std::fmt;

/// One payload that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The payload's number in its todo.
    pub n: u64,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "payload {}: {}", self.n, self.what)
    }
}

/// How much a todo has in payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// How many payloads.
    pub payloads: u64,
    /// How many of them are files.
    pub files: u64,
    /// Their bytes as they are read.
    pub bytes: u64,
    /// Their bytes as they are stored.
    pub stored: u64,
}
