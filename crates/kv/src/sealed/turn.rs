//! One writer at a time, so that a batch changes the same ledgers that it read.

use crate::Error;
use crate::error::writing;
use parking_lot::{Mutex, MutexGuard};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a writer waits for the others.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_micros(500);

pub(super) struct Turn {
    /// The folder that several processes share, if there is one.
    dir: Option<PathBuf>,
    file: Mutex<Option<File>>,
}

/// A writer's turn, which ends when it is dropped.
pub(super) struct Taken<'t> {
    file: MutexGuard<'t, Option<File>>,
}

impl Turn {
    pub(super) fn new(dir: Option<&Path>) -> Self {
        Self { dir: dir.map(Path::to_owned), file: Mutex::new(None) }
    }

    /// Waits for the turn.
    pub(super) fn take(&self) -> Result<Taken<'_>, Error> {
        let begin = Instant::now();
        let busy = || {
            let path = self.dir.clone().unwrap_or_default();
            Error::Busy { path, doing: "others wrote" }
        };
        let mut file = self.file.try_lock_for(PATIENCE).ok_or_else(busy)?;
        let Some(dir) = &self.dir else { return Ok(Taken { file }) };
        let path = dir.join("LEDGERS");
        let opened = match file.take() {
            Some(opened) => opened,
            None => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(false);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                options.open(&path).map_err(writing("open", &path))?
            }
        };
        loop {
            match opened.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begin.elapsed() >= PATIENCE => return Err(busy()),
                Err(TryLockError::WouldBlock) => thread::sleep(STEP),
                Err(TryLockError::Error(error)) => return Err(writing("lock", &path)(error)),
            }
        }
        *file = Some(opened);
        Ok(Taken { file })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.file.as_ref().is_some_and(|file| file.unlock().is_err()) {
            // Closing the file releases the lock.
            *self.file = None;
        }
    }
}
