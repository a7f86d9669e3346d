//! Systems on which commands cannot be sandboxed: nothing is run.

use crate::{Command, Finished, Sandbox, SandboxError};
use std::io;

/// Stops commands from outside; here there are none.
#[derive(Clone, Debug)]
pub struct Stop;

impl Stop {
    /// Creates one for any number of commands.
    ///
    /// # Errors
    /// Never here.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Stops the commands that were given this.
    pub fn stop(&self) {}
}

pub(crate) fn available() -> Result<(), SandboxError> {
    Err(SandboxError::Unavailable("it needs Linux 6.12 on x86_64 or aarch64".to_owned()))
}

pub(crate) fn run(_sandbox: &Sandbox, _command: &Command) -> Result<Finished, SandboxError> {
    available().and_then(|()| Err(SandboxError::Lost))
}
