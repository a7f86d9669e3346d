//! The lock file of a store's folder.
//!
//! It is held while a store is created, by SQLite's writers while they wait for their turn, and by the other
//! engines for as long as the store is open: exclusively, or shared by readers. The kernel releases it when its
//! holder dies, so a killed process never leaves a lock that blocks.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
#[cfg(any(feature = "redb", feature = "sled"))]
use crate::Mode;
use crate::error::writing;

/// How long opening a store waits for the process that has it to itself; an answer is promised within a second.
#[cfg(any(feature = "redb", feature = "sled"))]
const PATIENCE: Duration = Duration::from_millis(700);
#[cfg(any(feature = "redb", feature = "sled"))]
const STEP: Duration = Duration::from_millis(10);

/// The lock file, open. Dropping it releases the lock.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Opens the lock file of a folder, and creates it if there is none. Takes no lock yet.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("LOCK");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(writing("open", &path))?;
        Ok(Self { file, path })
    }

    /// Takes the exclusive lock of a store for writing, or shares it with other readers; returns
    /// [`Error::Locked`] within a second. `None` if a folder that cannot be written has no lock file.
    #[cfg(any(feature = "redb", feature = "sled"))]
    pub(crate) fn hold(dir: &Path, mode: Mode) -> Result<Option<Self>, Error> {
        let (lock, taken) = match mode {
            Mode::ReadWrite => {
                let lock = Self::open(dir)?;
                let taken = lock.ask(File::try_lock, PATIENCE, STEP)?;
                (Some(lock), taken)
            }
            Mode::ReadOnly => {
                let lock = Self::open_shared(dir)?;
                let share = |lock: &Self| lock.ask(File::try_lock_shared, PATIENCE, STEP);
                let taken = lock.as_ref().map_or(Ok(true), share)?;
                (lock, taken)
            }
        };
        if taken { Ok(lock) } else { Err(Error::Locked { path: dir.to_owned() }) }
    }

    /// Opens the lock file to share it. `None` if there is none and none can be created: a process
    /// that can write here creates it first.
    #[cfg(any(feature = "redb", feature = "sled"))]
    fn open_shared(dir: &Path) -> Result<Option<Self>, Error> {
        match Self::open(dir) {
            Err(Error::ReadOnly { path } | Error::Full { path }) => match File::open(&path) {
                Ok(file) => Ok(Some(Self { file, path })),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(crate::error::reading("open", &path)(error)),
            },
            opened => opened.map(Some),
        }
    }

    /// Tries to take the lock every `step` until `patience` is over. Returns whether it was taken.
    ///
    /// Unlike waiting in the kernel, polling has an end: a stopped process that holds the lock must
    /// not stop everybody else forever.
    pub(crate) fn take(&self, patience: Duration, step: Duration) -> Result<bool, Error> {
        self.ask(File::try_lock, patience, step)
    }

    fn ask(
        &self,
        lock: fn(&File) -> Result<(), TryLockError>,
        patience: Duration,
        step: Duration,
    ) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            match lock(&self.file) {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if begin.elapsed() >= patience => return Ok(false),
                Err(TryLockError::WouldBlock) => thread::sleep(step),
                Err(TryLockError::Error(error)) => return Err(writing("lock", &self.path)(error)),
            }
        }
    }

    /// Releases the lock.
    #[cfg(feature = "sqlite")]
    pub(crate) fn give(&self) -> Result<(), Error> {
        self.file.unlock().map_err(writing("unlock", &self.path))
    }
}
