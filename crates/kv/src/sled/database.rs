//! The open database: how it is opened, made durable and closed.

use super::contents::{self, Contents};
use crate::error::{reading, writing};
use crate::folder;
use crate::guard::unpanicked;
use crate::{Engine, Error, ordered};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An open database, with our own handle on its log.
///
/// sled's flush is not enough: on Linux it calls `sync_file_range`, which syncs neither the file's
/// metadata nor the disk's own cache (strace saw 12 fsyncs in 2,000 flushes), and it never syncs
/// the files of large values. Its lock is an `flock`, which another handle does not disturb.
pub(super) struct Database {
    pub(super) sled: ::sled::Db,
    log: File,
    folder: PathBuf,
    /// The greatest number of a large value's file that is known to be durable. In a store that was
    /// just opened, none is known to be: the previous process may have died before it synced.
    blob: AtomicI64,
    contents: Mutex<Contents>,
}

impl Database {
    /// Reads everything, and returns what is wrong with it, if anything.
    pub(super) fn count(&self) -> Result<Option<String>, Error> {
        guarded(&self.folder, || {
            let found = Contents::of(&self.sled)?;
            *self.contents.lock() = found;
            found.missing(&self.sled)
        })
    }

    /// Returns the contents.
    pub(super) fn contents(&self) -> Contents {
        *self.contents.lock()
    }

    /// Makes changes durable: the new value of each key, or `None` for no value.
    pub(super) fn apply(
        &self,
        changes: BTreeMap<ordered::Bytes, Option<Vec<u8>>>,
    ) -> Result<(), ::sled::Error> {
        let mut contents = self.contents.lock();
        let (mut next, mut batch) = (*contents, ::sled::Batch::default());
        for (key, stored) in changes {
            if let Some(old) = self.sled.get(key)? {
                next.take(&key, &old);
            }
            if let Some(stored) = stored {
                next.add(&key, &stored);
                batch.insert(&key, stored);
            } else {
                batch.remove(&key);
            }
        }
        batch.insert(&contents::KEY, next.seal());
        self.sled.apply_batch(batch)?;
        self.sync()?;
        *contents = next;
        Ok(())
    }

    /// Closes the database. sled panics if that fails.
    pub(super) fn close(self) {
        let _ = unpanicked(|| drop(self.sled));
    }

    /// Makes everything that was applied durable.
    pub(super) fn sync(&self) -> Result<(), ::sled::Error> {
        self.sled.flush()?;
        // sled numbers these files upwards and writes each once, so only new ones are synced.
        let folder = self.folder.join("blobs");
        let known = self.blob.load(Ordering::Acquire);
        let mut newest = known;
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse::<i64>().ok());
            if let Some(number) = number.filter(|number| *number > known) {
                match File::open(folder.join(&name)) {
                    Ok(file) => file.sync_all()?,
                    // sled has already replaced it.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Err(error.into()),
                }
                newest = newest.max(number);
            }
        }
        if newest > known {
            File::open(&folder)?.sync_all()?;
            self.blob.store(newest, Ordering::Release);
        }
        self.log.sync_data()?;
        Ok(())
    }
}

/// Opens a database. A recently dropped handle of this process may still be closing, which sled
/// reports as a lock that it could not get.
pub(super) fn connect(folder: &Path) -> Result<Database, Error> {
    let config = ::sled::Config::new()
        .path(folder)
        .cache_capacity(CACHE_BYTES)
        .mode(::sled::Mode::LowSpace)
        // Every commit flushes, so a flusher would have nothing to do.
        .flush_every_ms(None);
    remove_unfinished_snapshots(folder)?;
    let begin = Instant::now();
    let sled = loop {
        match guarded(folder, || config.open()) {
            Err(Error::Engine { source, .. })
                if source.to_string().contains("could not acquire lock") =>
            {
                if begin.elapsed() > PATIENCE / 4 {
                    return Err(Error::Locked { path: folder.to_owned() });
                }
                thread::sleep(STEP);
            }
            other => break other?,
        }
    };
    let path = folder.join("db");
    let log = File::open(&path).map_err(reading("open", &path))?;
    folder::sync(folder)?;
    let (folder, blob) = (folder.to_owned(), AtomicI64::new(-1));
    Ok(Database { sled, log, folder, blob, contents: Mutex::default() })
}

/// How long opening waits for another handle to close; an answer is promised within a second.
pub(super) const PATIENCE: Duration = Duration::from_millis(700);

pub(super) const STEP: Duration = Duration::from_millis(10);

/// sled's own default is 1 GB.
const CACHE_BYTES: u64 = 64 << 20;

/// Removes unfinished snapshots. sled writes a new one beside the last, renames it and only then
/// removes the last; but when it opens it also takes an unfinished one for the newest, and refuses
/// the store.
fn remove_unfinished_snapshots(folder: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(reading("list", folder))?,
    };
    for entry in entries {
        let path = entry.map_err(reading("list", folder))?.path();
        if path.extension().is_some_and(|extension| extension == "generating") {
            fs::remove_file(&path).map_err(writing("remove", &path))?;
        }
    }
    Ok(())
}

/// Waits until a dropped database is closed: its tasks may still write into its folder, and its
/// lock is released with the last of them.
pub(super) fn until_closed(folder: &Path) -> Result<(), Error> {
    let path = folder.join("db");
    let file = File::open(&path).map_err(reading("open", &path))?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if begin.elapsed() >= PATIENCE => {
                let doing = "its database was closing";
                return Err(Error::Busy { path: folder.to_owned(), doing });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(STEP),
            Err(TryLockError::Error(error)) => return Err(reading("lock", &path)(error)),
        }
    }
}

/// Calls sled. It panics on some damaged files; that becomes an error like the others.
pub(super) fn guarded<T>(
    path: &Path,
    ask: impl FnOnce() -> Result<T, ::sled::Error>,
) -> Result<T, Error> {
    let path = path.to_owned();
    let error = match unpanicked(ask) {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => error,
        Err(words) => {
            let detail = format!("sled stopped: {words}");
            return Err(Error::Damaged { path, detail });
        }
    };
    Err(match error {
        ::sled::Error::Corruption { .. } => Error::Damaged { path, detail: error.to_string() },
        ::sled::Error::Io(source) if source.kind() != ErrorKind::Other => {
            writing("use", &path)(source)
        }
        error => Error::Engine { engine: Engine::Sled.name(), path, source: Box::new(error) },
    })
}
