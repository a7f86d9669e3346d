//! Restores a format file that is damaged or missing.

use crate::error::reading;
use crate::folder::{self, REDB_FILE, SLED_FOLDER, SQLITE_FILE};
use crate::open::open_engine;
use crate::sealed::is_sealed;
use crate::{Engine, Error, FORMAT_VERSION, Mode};
use std::path::Path;

/// Rewrites the format file of a store if it is damaged or missing and the database beside it identifies itself:
/// SQLite's file by its application id and version, redb's by its header, sled's by its folder. Returns the engine if
/// the file was rewritten; `None` if the format file is sound, or there is no store.
///
/// # Errors
///
/// [`Error::Format`] when the format file is damaged and the files beside it do not identify
/// themselves; [`Error::ReadOnly`] and [`Error::Full`] when it cannot be written.
pub fn repair_format(dir: &Path) -> Result<Option<Engine>, Error> {
    let dir = &std::path::absolute(dir).map_err(reading("find", dir))?;
    let (sqlite, redb, sled) = (dir.join(SQLITE_FILE), dir.join(REDB_FILE), dir.join(SLED_FOLDER));
    let own = || match sqlite.exists() {
        #[cfg(feature = "sqlite")]
        true => crate::sqlite::version_of(dir, &sqlite),
        _ => Ok(None),
    };
    let damage = match folder::judge(dir) {
        Ok(()) | Err(Error::NotFound { .. }) => return Ok(None),
        // Only a database that states its own version can tell a later version from a damaged number.
        Err(Error::FormatVersion { .. }) if own()?.is_none() => return Ok(None),
        Err(error @ Error::FormatVersion { .. }) => error.to_string(),
        Err(Error::Format { detail, .. }) => detail,
        Err(error) => return Err(error),
    };
    let wrong = |detail: String| Error::Format { path: dir.clone(), detail };
    let (engine, version) = match (own()?, says_redb(&redb), sled.join("db").is_file()) {
        (Some(version), false, false) if !redb.exists() => (Engine::Sqlite, version),
        // One table (redb) or one tree (sled) holds all spaces of all versions.
        (None, true, false) if !sqlite.exists() => (Engine::Redb, FORMAT_VERSION),
        (None, false, true) if !sqlite.exists() && !redb.exists() => (Engine::Sled, FORMAT_VERSION),
        _ => {
            return Err(wrong(format!(
                "{damage}, and no single database beside it identifies itself as a store's"
            )));
        }
    };
    folder::restore(dir, engine, version)?;
    // Only its records show whether it is encrypted.
    if open_engine(dir, engine, Mode::ReadOnly).is_ok_and(|kv| is_sealed(kv.as_ref())) {
        folder::mark_encrypted(dir)?;
    }
    Ok(Some(engine))
}

/// Returns whether a file has the header of a redb store.
fn says_redb(file: &Path) -> bool {
    match file.exists() {
        #[cfg(feature = "redb")]
        true => crate::redb::is_store(file),
        _ => false,
    }
}
