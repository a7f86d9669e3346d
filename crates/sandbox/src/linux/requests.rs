//! Answers a command's requests to change a file's mode, owner or times.

use super::attributes;
use super::kernel::{self, Answer};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The requests of one command.
pub(super) struct Requests {
    listener: OwnedFd,
    /// The writable folders, by the kernel's paths for them.
    writable: Vec<PathBuf>,
}

impl Requests {
    pub(super) fn new(listener: OwnedFd, writable: &[PathBuf]) -> Self {
        let known = |path: &PathBuf| path.canonicalize().ok();
        Self { listener, writable: writable.iter().filter_map(known).collect() }
    }

    /// Answers the next request.
    ///
    /// # Errors
    /// When there is none, because the asking thread was killed.
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

    /// A file that becomes readable when there is a request.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
