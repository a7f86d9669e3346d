//! The reasons why a command was not run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The reason why a command was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system cannot restrict a command to its rights. Nothing is run with fewer restrictions instead.
    #[error("no sandbox is available: {0}")]
    Unavailable(String),
    /// A path that was granted cannot be opened.
    #[error("{} cannot be granted: {source}; expected an existing file or folder", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Too little space is left on a disk that the command may write to.
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
        /// How many more files can be created.
        files: u64,
    },
    /// The program does not exist.
    #[error("the program {} was not found in {}", program.display(), path.display())]
    Program {
        /// The program as it was asked for.
        program: OsString,
        /// The folders that were searched, separated by colons.
        path: OsString,
    },
    /// A name or value that cannot be passed to any command.
    #[error("{0:?} contains a NUL byte, which cannot be passed to a command")]
    Nul(OsString),
    /// The command could not be started.
    #[error("the command could not be started: {step}: {source}")]
    Start {
        /// The step that failed.
        step: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The supervisor of the command is gone; the fate of the command is unknown.
    #[error("the command was lost: its supervisor ended first")]
    Lost,
}
