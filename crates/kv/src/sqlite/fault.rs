//! What SQLite's errors mean to the caller.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use super::Sqlite;
use crate::{Engine, Error};

impl Sqlite {
    pub(super) fn fault(&self, error: rusqlite::Error) -> Error {
        of(&self.dir, error)
    }
}

/// The error of this crate for one of SQLite's.
pub(super) fn of(dir: &Path, error: rusqlite::Error) -> Error {
    let path = dir.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::Busy { path, doing: "others used it" }
        }
        Some(ErrorCode::DiskFull) => Error::Full { path },
        // The log's shared index is 32 KiB that reading needs, too.
        Some(_) if is_index_unmade(&error) => Error::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::ReadOnly { path },
        // SQLite does not say what kept it from opening a file: the folder may.
        Some(ErrorCode::CannotOpen) => match writing_in(dir) {
            Err(refused) => crate::error::writing("open", dir)(refused),
            Ok(()) => {
                Error::Engine { engine: Engine::Sqlite.name(), path, source: Box::new(error) }
            }
        },
        Some(ErrorCode::SystemIoFailure) if !is_cut_short(&error) => {
            Error::Io { doing: "read or write", path, source: io::Error::other(error) }
        }
        Some(ErrorCode::SystemIoFailure) => Error::Damaged { path, detail: error.to_string() },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Damaged { path, detail: error.to_string() }
        }
        _ => Error::Engine { engine: Engine::Sqlite.name(), path, source: Box::new(error) },
    }
}

/// Opens a file in the folder, as SQLite would open its log.
fn writing_in(dir: &Path) -> io::Result<()> {
    // Not the database itself: to close another handle of it would drop the locks of this process.
    let probe = dir.join("store.sqlite.probe");
    File::options().write(true).create(true).truncate(true).open(&probe)?;
    fs::remove_file(probe)
}

/// Whether a file ended where more was expected. A read that the disk refused (`SQLITE_IOERR_CORRUPTFS` among others,
/// which is any EIO) may be answered the next time.
fn is_cut_short(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ)
}

/// Whether the log's shared index could not be made as large as it has to be.
fn is_index_unmade(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}

/// Whether what the file holds is unknown after this error. A full disk and a busy store are not
/// of that kind: SQLite has taken everything back.
pub(super) fn poisons(error: &rusqlite::Error, committing: bool) -> bool {
    match error.sqlite_error_code() {
        Some(_) if is_index_unmade(error) => false,
        Some(ErrorCode::SystemIoFailure) => true,
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => false,
        _ => committing,
    }
}

/// The innermost words of an error, for a finding.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::Damaged { detail, .. } => detail.clone(),
        Error::Engine { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
