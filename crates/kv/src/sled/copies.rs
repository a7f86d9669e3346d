//! Copies of a database's folder: one for each reader, and one to return to.
//!
//! sled repairs a database whenever it opens one, and takes a failed read for the end of its log, after which it
//! overwrites everything. So it never gets a folder of which there is no copy.

use super::compaction::{NEW_FOLDER, OLD_FOLDER, remove};
use super::database::{Database, connect, guarded, until_closed};
use super::last_commit;
use crate::error::{reading, writing};
use crate::folder::{self, SLED_FOLDER};
use crate::lock::Lock;
use crate::{Error, acknowledged};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The database as it was before it was opened for writing, kept until the outcome of that is known.
pub(super) const SPARE_FOLDER: &str = "store.sled.spare";
/// The prefix of readers' folders in the folder for temporary files.
const PREFIX: &str = "foldback-sled-";
/// The space that sled may need besides the copy when it opens one: a snapshot, a segment.
const ROOM: u64 = 4 << 20;

/// A copy for reading, removed when the value is dropped.
pub(super) struct PrivateCopy {
    folder: PathBuf,
    _lock: Lock,
}

impl PrivateCopy {
    /// Copies a database's folder into the folder for temporary files.
    pub(super) fn of(place: &Path) -> Result<Self, Error> {
        static COPIES: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        sweep(&parent);
        loop {
            let number = COPIES.fetch_add(1, Ordering::Relaxed);
            let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&folder) {
                // Left by a killed process with the same id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => created.map_err(writing("create", &folder))?,
            }
            if let Some(lock) = own(&folder)? {
                let copy = Self { folder, _lock: lock };
                fill(place, &copy.database())?;
                return Ok(copy);
            }
        }
    }

    /// Returns the folder of the copied database.
    pub(super) fn database(&self) -> PathBuf {
        self.folder.join(SLED_FOLDER)
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        let _ = until_closed(&self.database());
        let _ = remove(&self.folder);
    }
}

/// Takes a new folder's lock; `None` if a process that [sweeps](sweep) came first.
fn own(folder: &Path) -> Result<Option<Lock>, Error> {
    let lock = match Lock::open(folder) {
        Err(_) if !folder.exists() => return Ok(None),
        opened => opened.inspect_err(|_| drop(remove(folder)))?,
    };
    let is_taken = lock.take(Duration::ZERO, Duration::ZERO)?;
    Ok(Some(lock).filter(|_| is_taken && folder.join("LOCK").exists()))
}

/// Removes what killed readers left: nobody holds its lock.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let folder = entry.path();
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && folder.join("LOCK").exists()
            && let Ok(lock) = Lock::open(&folder)
            && lock.take(Duration::ZERO, Duration::ZERO).unwrap_or(false)
        {
            let _ = remove(&folder);
        }
    }
}

/// How to treat a store in which acknowledged commits are missing: sled would overwrite what remains of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is left as it is: [`Error::Lost`].
    IsRefused,
    /// It is opened.
    IsAccepted,
}

/// Opens a database for writing. If it does not hold what its last commit left, its folder is restored.
///
/// A failed read may look like the end of the log, so that only earlier commits seem to exist. So a copy is opened
/// first, and both openings must find the same contents.
pub(super) fn connect_for_writing(dir: &Path, missing: Missing) -> Result<Database, Error> {
    let (place, spare, copy) =
        (dir.join(SLED_FOLDER), dir.join(SPARE_FOLDER), dir.join(NEW_FOLDER));
    // An interrupted opening: nothing was acknowledged after it had begun.
    if spare.exists() {
        come_back(dir)?;
    }
    remove(&copy)?;
    fill(&place, &copy)?;
    let rehearsed = connect_whole(&copy).and_then(|database| {
        let held = guarded(&copy, || last_commit(&database.sled));
        let found = database.contents();
        database.close();
        match missing {
            Missing::IsAccepted => Ok(found),
            Missing::IsRefused => acknowledged::find_loss(dir, || held)
                .and_then(|lost| acknowledged::refuse(dir, lost))
                .map(|()| found),
        }
    });
    remove(&copy)?;
    let expected = rehearsed?;
    fill(&place, &copy)?;
    sync(&copy)?;
    fs::rename(&copy, &spare).map_err(writing("rename", &copy))?;
    folder::sync(dir)?;
    let opened = connect_whole(&place).and_then(|database| {
        if database.contents() != expected {
            database.close();
            let detail =
                "two openings of it found different records; a read may have failed".to_owned();
            return Err(Error::Damaged { path: place.clone(), detail });
        }
        match discard_spare(dir) {
            Ok(()) => Ok(database),
            Err(error) => {
                database.close();
                Err(error)
            }
        }
    });
    if opened.is_err() {
        until_closed(&place)?;
        if spare.exists() {
            come_back(dir)?;
        }
    }
    opened
}

/// Removes the spare. It is renamed first, durably and before anything is acknowledged: a partial spare, or one that a
/// power cut brings back, would be taken for a complete one.
fn discard_spare(dir: &Path) -> Result<(), Error> {
    let (spare, remains) = (dir.join(SPARE_FOLDER), dir.join(NEW_FOLDER));
    fs::rename(&spare, &remains).map_err(writing("rename", &spare))?;
    folder::sync(dir)?;
    // Its remains have a name that every opening removes.
    let _ = remove(&remains);
    Ok(())
}

/// Puts the database back as it was before an opening.
fn come_back(dir: &Path) -> Result<(), Error> {
    let (place, spare) = (dir.join(SLED_FOLDER), dir.join(SPARE_FOLDER));
    remove(&place)?;
    fs::rename(&spare, &place).map_err(writing("rename", &spare))?;
    folder::sync(dir)
}

/// Opens a copy of the database in a store's folder for reading. The folder stays as it is.
pub(super) fn connect_for_reading(dir: &Path) -> Result<(Database, PrivateCopy), Error> {
    // An interrupted opening or compaction has left the complete database under another name.
    let names = [SPARE_FOLDER, SLED_FOLDER, OLD_FOLDER].map(|name| dir.join(name));
    let mut refused = None;
    for place in names.into_iter().filter(|place| place.exists()) {
        let copy = PrivateCopy::of(&place)?;
        match connect_whole(&copy.database()) {
            Ok(database) => return Ok((database, copy)),
            Err(Error::Damaged { detail, .. }) => {
                refused = refused.or(Some(Error::Damaged { path: place, detail }));
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| Error::Format {
        path: dir.to_owned(),
        detail: folder::without(SLED_FOLDER),
    }))
}

/// Opens a database, and refuses one that does not hold what its last commit left.
pub(super) fn connect_whole(place: &Path) -> Result<Database, Error> {
    let database = connect(place)?;
    let refused = match database.count() {
        Ok(None) => return Ok(database),
        Ok(Some(detail)) => Error::Damaged { path: place.to_owned(), detail },
        Err(error) => error,
    };
    database.close();
    Err(refused)
}

/// Copies a database's folder.
fn fill(from: &Path, to: &Path) -> Result<(), Error> {
    let files = files(from)?;
    let bytes: u64 = files.iter().map(|(_, length)| length).sum();
    if let Some(free) = free(to)
        && free < bytes + ROOM
    {
        return Err(Error::NoRoom { path: to.to_owned(), needed: bytes + ROOM, free });
    }
    let copied = files.iter().try_for_each(|(name, _)| {
        let (from, to) = (from.join(name), to.join(name));
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(writing("create", parent))?;
        }
        fs::copy(&from, &to).map_err(writing("copy to", &to))?;
        // A copy of a read-only file must still be writable to be opened.
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(&to, mode).map_err(writing("open", &to))?;
        }
        Ok(())
    });
    copied.inspect_err(|_| drop(remove(to)))
}

/// Makes a copy durable.
fn sync(copy: &Path) -> Result<(), Error> {
    for (name, _) in files(copy)? {
        folder::sync(&copy.join(name))?;
    }
    folder::sync(copy)
}

/// Returns the files of a database's folder by their names in it, with their lengths.
fn files(folder: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inner) = folders.pop() {
        let here = folder.join(&inner);
        for entry in fs::read_dir(&here).map_err(reading("list", &here))? {
            let entry = entry.map_err(reading("list", &here))?;
            let name = inner.join(entry.file_name());
            let metadata = entry.metadata().map_err(reading("look at", &here))?;
            if metadata.is_dir() {
                folders.push(name);
            } else {
                found.push((name, metadata.len()));
            }
        }
    }
    Ok(found)
}

/// Returns the free bytes where a folder will be, if the system reports them.
fn free(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let room = rustix::fs::statvfs(folder.parent()?).ok()?;
        Some(room.f_bavail * room.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}
