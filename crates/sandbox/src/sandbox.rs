//! What a command may do.

use crate::{Command, Finished, Limits, SandboxError, system};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What a command may do: nothing but what is granted here.
///
/// Each run has an empty folder of its own, which is removed after it; `TMPDIR` and, unless set otherwise, `HOME` name
/// it.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) system: bool,
    pub(crate) network: bool,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) limits: Limits,
}

impl Sandbox {
    /// Grants nothing, within the [default limits](Limits::default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks whether commands can be sandboxed here, and if not, why: some containers forbid a part of it. The first
    /// time, a command that does nothing is run to find out.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`].
    pub fn available() -> Result<(), SandboxError> {
        system::available()
    }

    /// Lets what is under this path be read and run.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Lets what is under this path be read, run, written, created and removed: including what others run from there
    /// later, such as the programs in `.git/hooks`, which git runs.
    ///
    /// Nothing below it can be kept from being written: a [`read`](Self::read) of a path inside adds nothing.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Lets the system's programs and libraries be read and run, with those of its settings that programs expect to
    /// find and that hold no secrets.
    #[must_use]
    pub fn read_system(mut self) -> Self {
        self.system = true;
        self
    }

    /// Sets whether the network may be reached: TCP and UDP, this machine's own servers included.
    #[must_use]
    pub fn allow_network(mut self, allow: bool) -> Self {
        self.network = allow;
        self
    }

    /// Adds this variable to the environment, which otherwise has only `PATH`, `HOME` and `TMPDIR`.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Copies this variable from the environment of the process, if it is set there.
    #[must_use]
    pub fn pass_env(self, name: impl AsRef<OsStr>) -> Self {
        match std::env::var_os(name.as_ref()) {
            Some(value) => self.env(name.as_ref(), value),
            None => self,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs a command, and waits until it and everything that it started are gone. It blocks its thread.
    ///
    /// # Errors
    /// When it could not be run. A command that fails is not an error: see [`Finished::status`].
    pub fn run(&self, command: &Command) -> Result<Finished, SandboxError> {
        system::run(self, command)
    }
}
