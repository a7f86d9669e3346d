//! Reads how a database file identifies itself.

use super::connection::{self, PATIENCE};
use super::{fault, table};
use crate::Error;
use rusqlite::Connection;
use std::path::Path;

/// Returns the format version in the header of a store's database; `None` if the file belongs to another program or is
/// not a database.
pub(crate) fn version_of(dir: &Path, file: &Path) -> Result<Option<u64>, Error> {
    let asked = connection::reading_access(dir, file)
        .and_then(|access| connection::open(file, access, PATIENCE).map_err(|e| fault::of(dir, e)));
    let asked = asked.and_then(|open| version(&open).map_err(|error| fault::of(dir, error)));
    match asked {
        Err(Error::Damaged { .. }) => Ok(None),
        asked => asked,
    }
}

/// Like [`version_of`], for a database that is open.
pub(super) fn version(connection: &Connection) -> Result<Option<u64>, rusqlite::Error> {
    if !table::check_identity(connection)?.is_empty() {
        return Ok(None);
    }
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(u64::try_from(version).ok())
}
