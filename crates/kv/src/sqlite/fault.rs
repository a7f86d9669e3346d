//! Maps SQLite's errors to what they mean to the caller.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use super::Sqlite;
use crate::folder::SQLITE_FILE;
use crate::{Engine, Error};

impl Sqlite {
    pub(super) fn fault(&self, error: rusqlite::Error) -> Error {
        of(&self.dir, error)
    }
}

/// Returns this crate's error for one of SQLite's.
pub(super) fn of(dir: &Path, error: rusqlite::Error) -> Error {
    let path = dir.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::Busy { path, doing: "others used it" }
        }
        Some(ErrorCode::DiskFull) => Error::Full { path },
        // Reading also needs the log's shared index, which takes 32 KiB.
        Some(_) if is_index_unmade(&error) => Error::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::ReadOnly { path },
        // SQLite does not say why it could not open a file; the folder may show it.
        Some(ErrorCode::CannotOpen) => match writing_in(dir) {
            Err(refused) if refused.kind() == io::ErrorKind::NotFound => Error::Gone { path },
            Err(refused) => crate::error::writing("open", dir)(refused),
            Ok(()) => match readable(&dir.join(SQLITE_FILE)) {
                Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                    Error::Io { doing: "open", path: dir.join(SQLITE_FILE), source }
                }
                _ => engine_error(path, error),
            },
        },
        Some(ErrorCode::SystemIoFailure) if !is_cut_short(&error) => {
            Error::Io { doing: "read or write", path, source: io::Error::other(error) }
        }
        Some(ErrorCode::SystemIoFailure) => Error::Damaged { path, detail: error.to_string() },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Damaged { path, detail: error.to_string() }
        }
        // The folder states a complete store, whose tables a database has from the beginning.
        _ if error.to_string().contains("no such table") => {
            Error::Damaged { path, detail: error.to_string() }
        }
        _ => engine_error(path, error),
    }
}

fn engine_error(path: PathBuf, error: rusqlite::Error) -> Error {
    Error::Engine { engine: Engine::Sqlite.name(), path, source: Box::new(error) }
}

/// Asks whether a file may be read without opening it: closing another handle of the database would drop the locks of
/// this process.
#[cfg(unix)]
fn readable(file: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(file, rustix::fs::Access::READ_OK)?)
}

#[cfg(not(unix))]
fn readable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens a file in the folder, as SQLite would open its log.
fn writing_in(dir: &Path) -> io::Result<()> {
    // Not the database itself: closing another handle of it would drop the locks of this process.
    let probe = dir.join("store.sqlite.probe");
    File::options().write(true).create(true).truncate(true).open(&probe)?;
    fs::remove_file(probe)
}

/// Returns whether a file ended where more was expected. A read that the disk refused (`SQLITE_IOERR_CORRUPTFS` among
/// others, which is any EIO) may succeed the next time.
fn is_cut_short(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ)
}

/// Returns whether the log's shared index could not be extended to the required size.
fn is_index_unmade(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}

/// Returns whether the contents of the file are unknown after this error. After a full disk or a
/// busy store they are known: SQLite has rolled everything back.
pub(super) fn poisons(error: &rusqlite::Error, committing: bool) -> bool {
    match error.sqlite_error_code() {
        Some(_) if is_index_unmade(error) => false,
        Some(ErrorCode::SystemIoFailure) => true,
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => false,
        _ => committing,
    }
}

/// Returns the innermost message of an error, for a finding.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::Damaged { detail, .. } => detail.clone(),
        Error::Engine { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
