//! The lock file of a store's folder.
//!
//! It is held while a store is created, by SQLite's writers while they wait for their turn, and by
//! sled for as long as the store is open. The kernel gives it back when its holder dies, so a lock
//! that was left by a killed process never blocks.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::error::writing;

/// The lock file, open. Dropping it gives the lock back.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Opens the lock file of a folder, and makes it if there is none. Takes no lock yet.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("LOCK");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(writing("open", &path))?;
        Ok(Self { file, path })
    }

    /// Takes the lock, asking again every `step` until `patience` is over. Says whether it has it.
    ///
    /// Asking, unlike waiting in the kernel, has an end: a holder that was stopped must not stop
    /// everybody else for ever.
    pub(crate) fn take(&self, patience: Duration, step: Duration) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= patience => return Ok(false),
                Err(TryLockError::WouldBlock) => thread::sleep(step),
                Err(TryLockError::Error(error)) => return Err(writing("lock", &self.path)(error)),
            }
        }
    }

    /// Gives the lock back.
    #[cfg(feature = "sqlite")]
    pub(crate) fn give(&self) -> Result<(), Error> {
        self.file.unlock().map_err(writing("unlock", &self.path))
    }
}
