//! The findings of a check of all payloads, and how much a todo holds.

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

/// How much a todo holds in payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The number of payloads.
    pub payloads: u64,
    /// The number of them that are files.
    pub files: u64,
    /// Their size in bytes when read.
    pub bytes: u64,
    /// Their size in bytes as stored.
    pub stored: u64,
}
