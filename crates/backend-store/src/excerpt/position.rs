//! A place in a payload.

use std::fmt;
use std::str::FromStr;

/// A place in a payload: a line, and for a very long line how far into it. Written as `12`, or
/// `12+4096` for the byte 4,096 bytes after the beginning of line 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u64,
    /// Bytes of that line to skip.
    pub skip: u64,
}

impl From<u64> for Position {
    /// Returns the beginning of this line.
    fn from(line: u64) -> Self {
        Self { line, skip: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.skip {
            0 => write!(f, "{}", self.line),
            skip => write!(f, "{}+{skip}", self.line),
        }
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        let (line, skip) = text.split_once('+').unwrap_or((text, "0"));
        match (number(line), number(skip)) {
            (Some(line), Some(skip)) => Ok(Self { line, skip }),
            _ => Err(PositionError(text.chars().take(40).collect())),
        }
    }
}

/// The error for a text that is not a [`Position`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a place in a payload: one looks like 12, or 12+4096 inside a long line")]
pub struct PositionError(String);
