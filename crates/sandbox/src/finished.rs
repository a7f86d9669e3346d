//! The result of a command.

use crate::Captured;
use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// The result of a command. Nothing that it started is running any more.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stdout; with [joined outputs](crate::Command::joined), stderr too.
    pub stdout: Captured,
    /// What it wrote to stderr.
    pub stderr: Captured,
    /// How long it took.
    pub took: Duration,
    /// The limit that ended it, if one did.
    pub killed_by: Option<KilledBy>,
}

impl Finished {
    /// Returns whether output was left out.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.stdout.omitted() > 0 || self.stderr.omitted() > 0
    }
}

/// The limit that ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KilledBy {
    /// [`Limits::time`](crate::Limits::time).
    Time,
    /// [`Limits::memory`](crate::Limits::memory), for all processes together.
    Memory,
    /// [`Limits::processes`](crate::Limits::processes).
    Processes,
    /// [`Limits::free_bytes`](crate::Limits::free_bytes).
    Disk,
    /// [`Stop::stop`](crate::Stop::stop).
    Stopped,
}

impl fmt::Display for KilledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "it took too long",
            Self::Memory => "it used too much memory",
            Self::Processes => "it started too many processes",
            Self::Disk => "too little disk space was left",
            Self::Stopped => "it was stopped",
        })
    }
}
