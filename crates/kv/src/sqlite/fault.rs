//! What SQLite's errors mean to the caller.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::{Engine, Error};

/// The error of this crate for one of SQLite's.
pub(super) fn of(dir: &Path, error: rusqlite::Error) -> Error {
    let path = dir.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::Busy { path, doing: "others used it" }
        }
        Some(ErrorCode::DiskFull) => Error::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::ReadOnly { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Damaged { path, detail: error.to_string() }
        }
        _ => Error::Engine { engine: Engine::Sqlite.name(), path, source: Box::new(error) },
    }
}

/// Whether what the file holds is unknown after this error. A full disk and a busy store are not
/// of that kind: SQLite has taken everything back.
pub(super) fn poisons(error: &rusqlite::Error, committing: bool) -> bool {
    match error.sqlite_error_code() {
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
