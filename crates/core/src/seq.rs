//! One monotonic number orders everything in a todo.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The position of a message in its todo: 0, 1, 2, ... without a gap.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SeqNo(pub u64);

impl SeqNo {
    /// Returns the number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of messages, first and last included. It is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u64, u64)", into = "(u64, u64)")]
pub struct SeqRange {
    first: SeqNo,
    last: SeqNo,
}

impl SeqRange {
    /// Returns the run from `first` to `last`; `None` when it would be empty.
    #[must_use]
    pub fn new(first: SeqNo, last: SeqNo) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// Returns the first message.
    #[must_use]
    pub fn first(self) -> SeqNo {
        self.first
    }

    /// Returns the last message.
    #[must_use]
    pub fn last(self) -> SeqNo {
        self.last
    }

    /// Returns how many messages the run holds: at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    #[must_use]
    pub fn len(self) -> u64 {
        self.last.0 - self.first.0 + 1
    }

    /// Returns whether the run holds `seq`.
    #[must_use]
    pub fn contains(self, seq: SeqNo) -> bool {
        self.first <= seq && seq <= self.last
    }

    /// Returns the run as a half-open range of plain numbers, for scans.
    #[must_use]
    pub fn as_u64(self) -> std::ops::Range<u64> {
        self.first.0..self.last.0 + 1
    }

    /// Returns the sequence numbers, in order.
    pub fn iter(self) -> impl Iterator<Item = SeqNo> {
        self.as_u64().map(SeqNo)
    }
}

impl TryFrom<(u64, u64)> for SeqRange {
    type Error = String;

    fn try_from((first, last): (u64, u64)) -> Result<Self, Self::Error> {
        if last == u64::MAX {
            return Err(format!("a range of messages ends at {last}, which is out of bounds"));
        }
        Self::new(SeqNo(first), SeqNo(last))
            .ok_or_else(|| format!("a range of messages ends ({last}) before it begins ({first})"))
    }
}

impl From<SeqRange> for (u64, u64) {
    fn from(range: SeqRange) -> Self {
        (range.first.0, range.last.0)
    }
}

impl fmt::Display for SeqRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}
