//! Why a command was not run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system cannot hold a command to its rights. Nothing is run with fewer bounds instead.
    #[error("there is no sandbox here: {0}")]
    Unavailable(String),
    /// A path that was granted cannot be opened.
    #[error("{} cannot be granted: {source}; a file or folder that exists was expected", path.display())]
    Path {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Too little room is left on a disk that the command may write.
    #[error(
        "{} has {} MiB of room left, and room for {files} files; {} MiB and 1000 files were expected",
        path.display(), bytes >> 20, needed >> 20
    )]
    Room {
        /// A folder on that disk.
        path: PathBuf,
        /// How many bytes are left.
        bytes: u64,
        /// How many are needed: [`Limits::free_bytes`](crate::Limits::free_bytes).
        needed: u64,
        /// How many files more can be made.
        files: u64,
    },
    /// The program is not there.
    #[error("the program {} was not found in {}", program.display(), path.display())]
    Program {
        /// As it was asked for.
        program: OsString,
        /// The folders that were looked in, parted by colons.
        path: OsString,
    },
    /// A name or value that no command can be given.
    #[error("{0:?} has a byte 0 in it, which no command can be given")]
    Nul(OsString),
    /// The command could not be started.
    #[error("the command could not be started: {step}: {source}")]
    Start {
        /// What was being done.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The supervisor of the command is gone; what became of the command is not known.
    #[error("the sandbox lost the command: its supervisor ended before it did")]
    Lost,
}
