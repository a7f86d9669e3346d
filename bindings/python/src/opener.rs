//! The process that opened a store, which alone may use it.

use crate::error::{Failure, drop_detached};
use std::process;

/// The process that opened a store. A child that it forks has neither the locks of the store nor its threads.
#[derive(Clone, Copy)]
pub(crate) struct Opener(u32);

impl Opener {
    /// This process.
    pub(crate) fn this() -> Self {
        Self(process::id())
    }

    /// Whether it is this process.
    pub(crate) fn is_this(self) -> bool {
        self.0 == process::id()
    }

    /// Drops what it opened. In a fork that would wait for threads that are not there, so it is kept until the fork ends.
    pub(crate) fn let_go<T: Send>(self, opened: T) {
        if self.is_this() {
            drop_detached(opened);
        } else {
            std::mem::forget(opened);
        }
    }

    /// Refuses to work in another process.
    pub(crate) fn check(self) -> Result<(), Failure> {
        if self.is_this() {
            return Ok(());
        }
        let (own, here) = (self.0, process::id());
        Err(Failure::invalid(format!(
            "the memory was opened by process {own}, of which this process {here} is a fork; open it again here"
        )))
    }
}
