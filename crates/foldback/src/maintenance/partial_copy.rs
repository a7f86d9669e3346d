//! A copy of a store that is being made, and what is left of one whose process was killed.
//!
//! The copy is made in a folder beside its destination, `.NAME.partial-PID`, which is locked for as long as
//! its process lives. The store keeps a note of it in `backups`, so that it is found again: its remains may
//! hold what is forgotten meanwhile.

use crate::Error;
use foldback_kv::Error as KvError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// A copy that is being made. If dropped before it is finished, it is removed.
pub(super) struct PartialCopy {
    folder: PathBuf,
    note: Option<PathBuf>,
    _lock: FolderLock,
    is_finished: bool,
}

/// The lock of a folder. The system releases it when the process ends, however it ends.
struct FolderLock {
    _file: Option<File>,
}

/// The name, in a store's folder, of the notes about copies that are being made.
const NOTES: &str = "backups";

/// How the names in the folder of a copy begin. A folder that holds anything else must not be removed.
const PARTS: [&str; 6] =
    ["FORMAT", "audit.jsonl", "payloads", "store.redb", "store.sled", "store.sqlite"];

impl PartialCopy {
    /// Begins a copy of the store to `target`. The remains of killed copies there are removed.
    pub(super) fn begin(store: Option<&Path>, target: &Path) -> Result<Self, Error> {
        let target = std::path::absolute(target).map_err(failed("find", target))?;
        let parent = target.parent().unwrap_or(&target);
        let stem = stem(&target);
        fs::create_dir_all(parent).map_err(failed("make", parent))?;
        remove_beside(parent, &stem)?;
        let mut attempt = 0;
        loop {
            let mut name = stem.clone();
            name.push(std::process::id().to_string());
            if attempt > 0 {
                name.push(format!("-{attempt}"));
            }
            attempt += 1;
            let folder = parent.join(name);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.map_err(failed("make a folder in", parent))?,
            }
            // Between the two, another backup may have taken it for an abandoned one.
            let Some(lock) = lock(&folder).map_err(failed("lock", &folder))? else { continue };
            // A store that cannot be written can still be copied.
            let note = store.and_then(|store| write_note(store, &folder).ok());
            return Ok(Self { folder, note, _lock: lock, is_finished: false });
        }
    }

    /// Returns the folder in which the copy is being made.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Moves the complete copy to its destination.
    pub(super) fn finish(mut self, target: &Path) -> Result<(), Error> {
        fs::rename(&self.folder, target).map_err(failed("finish the backup in", target))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for PartialCopy {
    /// The remains of a failed copy are useless; what cannot be removed now is found by its note.
    fn drop(&mut self) {
        let is_gone = self.is_finished || fs::remove_dir_all(&self.folder).is_ok();
        if let Some(note) = self.note.as_ref().filter(|_| is_gone) {
            drop(fs::remove_file(note));
        }
    }
}

/// Returns the folders that killed backups of a store have left.
pub(super) fn left_of(store: &Path) -> Vec<PathBuf> {
    let left = notes(store).filter_map(|note| noted(&note));
    left.filter(|folder| matches!(take(folder), Ok(Some(_)))).collect()
}

/// Removes what killed backups of a store have left.
pub(super) fn remove_left_of(store: &Path) -> Result<(), Error> {
    for note in notes(store) {
        let Some(folder) = noted(&note) else { continue };
        let is_there = fs::symlink_metadata(&folder).is_ok();
        if is_there {
            let Some(_lock) = take(&folder).map_err(failed("look into", &folder))? else {
                continue;
            };
            fs::remove_dir_all(&folder).map_err(failed("remove", &folder))?;
        } else if !folder.parent().is_some_and(Path::exists) {
            // It is on a disk that is not mounted now.
            continue;
        }
        // A note about a missing folder does no harm.
        drop(fs::remove_file(&note));
    }
    Ok(())
}

/// Removes what killed backups to a place have left beside it.
fn remove_beside(parent: &Path, stem: &OsString) -> Result<(), Error> {
    let stem = stem.as_encoded_bytes();
    for entry in fs::read_dir(parent).map_err(failed("list", parent))?.flatten() {
        let is_left = entry.file_name().as_encoded_bytes().starts_with(stem);
        let folder = entry.path();
        // A folder that cannot be opened belongs to somebody else.
        if is_left && let Ok(Some(_lock)) = take(&folder) {
            fs::remove_dir_all(&folder).map_err(failed("remove", &folder))?;
        }
    }
    Ok(())
}

/// Returns how the name of a copy to `target` begins.
fn stem(target: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".partial-");
    name
}

/// Takes the lock of a folder that holds a copy, if no process is making it.
fn take(folder: &Path) -> io::Result<Option<FolderLock>> {
    if cfg!(not(unix)) {
        // Without a lock nobody knows whose the folder is.
        return Ok(None);
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if !fs::symlink_metadata(folder)?.is_dir() || !name.contains(".partial-") {
        return Ok(None);
    }
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !PARTS.iter().any(|part| name.as_encoded_bytes().starts_with(part.as_bytes())) {
            return Ok(None);
        }
    }
    lock(folder)
}

/// Takes the lock of a folder; `None` if another process has it, or has removed the folder.
#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<Option<FolderLock>> {
    use std::os::unix::fs::MetadataExt as _;
    let file = match File::open(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    let held = file.metadata()?;
    let is_it = fs::symlink_metadata(folder)
        .is_ok_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino()));
    Ok(is_it.then_some(FolderLock { _file: Some(file) }))
}

#[cfg(not(unix))]
fn lock(_: &Path) -> io::Result<Option<FolderLock>> {
    Ok(Some(FolderLock { _file: None }))
}

fn write_note(store: &Path, folder: &Path) -> io::Result<PathBuf> {
    let notes = store.join(NOTES);
    fs::create_dir_all(&notes)?;
    let path = folder.as_os_str().as_encoded_bytes();
    let note = notes.join(format!("{:016x}", xxh3_64(path)));
    fs::write(&note, path)?;
    Ok(note)
}

/// Returns the notes of a store.
fn notes(store: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(store.join(NOTES)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Returns the folder that a note is about.
fn noted(note: &Path) -> Option<PathBuf> {
    let path = fs::read(note).ok()?;
    #[cfg(unix)]
    return Some(PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(path)));
    #[cfg(not(unix))]
    return String::from_utf8(path).ok().map(PathBuf::from);
}

/// Says what could not be done with which file or folder.
pub(super) fn failed<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => KvError::Full { path }.into(),
            _ => KvError::Io { doing, path, source }.into(),
        }
    }
}
