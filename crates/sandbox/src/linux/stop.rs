//! Stops commands from outside.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Stops commands from outside, for example from another thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    /// Creates one for any number of commands.
    ///
    /// # Errors
    /// When the process has too many files open.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Stops the commands that were given this, including those that begin later.
    pub fn stop(&self) {
        // It only fails if it was called so often that the counter is full.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// A file that becomes readable then, and stays so.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
