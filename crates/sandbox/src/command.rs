//! A command to run.

use crate::Stop;
use std::ffi::OsString;
use std::path::PathBuf;

/// A command to run.
#[derive(Clone, Debug)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) folder: PathBuf,
    pub(crate) joined: bool,
    pub(crate) stop: Option<Stop>,
}

impl Command {
    /// Runs a program by its path, or by its name, which is then looked up in the sandbox's `PATH`. It receives no
    /// input and runs in `/`.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            stdin: Vec::new(),
            folder: PathBuf::from("/"),
            joined: false,
            stop: None,
        }
    }

    /// Adds these arguments after the existing ones.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Merges errors into the other output, in the order in which they are written.
    #[must_use]
    pub fn joined(mut self) -> Self {
        self.joined = true;
        self
    }

    /// Lets this stop the command.
    #[must_use]
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }
}
