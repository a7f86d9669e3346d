//! Ends commands from outside.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Ends commands from outside: from another thread, say.
#[derive(Clone, Debug)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    /// A new one, for any number of commands.
    ///
    /// # Errors
    /// When the process has too many files open.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the commands that were given this, those included that are begun later.
    pub fn stop(&self) {
        // It only fails where it was said so often that the counter is full.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// What becomes readable then, and stays so.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
