//! A format file that is damaged or gone, written again.

use crate::error::reading;
use crate::folder::{self, SLED_FOLDER, SQLITE_FILE};
use crate::{Engine, Error, FORMAT_VERSION};
use std::path::Path;

/// Writes the format file of a store again where it is damaged or gone, and what stands beside it says itself what
/// it is: SQLite's file by its application id and version, sled's by its folder. Gives the engine where
/// that was done; `None` where the format file is sound, or there is no store.
///
/// # Errors
///
/// [`Error::Format`] when the format file is damaged and what stands beside it does not say what it is;
/// [`Error::ReadOnly`] and [`Error::Full`] when it cannot be written.
pub fn repair_format(dir: &Path) -> Result<Option<Engine>, Error> {
    let dir = &std::path::absolute(dir).map_err(reading("find", dir))?;
    let damage = match folder::judge(dir) {
        Ok(()) | Err(Error::NotFound { .. }) => return Ok(None),
        Err(Error::Format { detail, .. }) => detail,
        // Only a database that has its version in itself tells a later one from a damaged number.
        Err(error @ Error::FormatVersion { .. }) if dir.join(SQLITE_FILE).exists() => {
            error.to_string()
        }
        Err(error) => return Err(error),
    };
    let wrong = |detail: String| Error::Format { path: dir.clone(), detail };
    let (sqlite, sled) = (dir.join(SQLITE_FILE), dir.join(SLED_FOLDER));
    let (engine, version) = match (sqlite.exists(), sled.join("db").is_file()) {
        #[cfg(feature = "sqlite")]
        (true, false) => match crate::sqlite::version_of(dir, &sqlite)? {
            Some(version) => (Engine::Sqlite, version),
            None => {
                return Err(wrong(format!(
                    "{damage}, and its {SQLITE_FILE} is not one of a store"
                )));
            }
        },
        // One tree holds all spaces of all versions.
        (false, true) => (Engine::Sled, FORMAT_VERSION),
        (true, true) => {
            return Err(wrong(format!(
                "{damage}, and it has both {SQLITE_FILE} and {SLED_FOLDER}"
            )));
        }
        _ => return Err(wrong(damage)),
    };
    folder::restore(dir, engine, version)?;
    Ok(Some(engine))
}
