//! Answers what a command asks: may this file's mode, owner or times be changed?

use super::attributes;
use super::kernel::{self, Answer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The questions of one command.
pub(super) struct Requests {
    listener: OwnedFd,
    /// The folders that may be written, by the paths that the kernel knows them by.
    writable: Vec<PathBuf>,
}

impl Requests {
    pub(super) fn new(listener: OwnedFd, writable: &[PathBuf]) -> Self {
        let known = |path: &PathBuf| path.canonicalize().ok();
        Self { listener, writable: writable.iter().filter_map(known).collect() }
    }

    /// Answers the next.
    ///
    /// # Errors
    /// When there is none: whoever asked was killed.
    pub(super) fn answer(&self) -> io::Result<()> {
        let listener = self.listener.as_fd();
        let question = kernel::question(listener)?;
        let answer = match attributes::of(&question) {
            Some(change) => change.make(&question, listener, &self.writable),
            None => Answer::Fail(libc::ENOSYS),
        };
        kernel::answer(listener, &question, answer);
        Ok(())
    }

    /// What becomes readable when something is asked.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
