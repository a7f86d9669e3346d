//! Publishes a new database file, complete or not at all.

use super::{connection, fault};
use crate::Error;
use crate::error::writing;
use crate::folder::{self, SQLITE_FILE};
use rusqlite::Connection;
use std::fs;
use std::path::Path;

/// Builds a database beside its place, syncs it, and renames it into place.
pub(super) fn publish(
    dir: &Path,
    fill: impl FnOnce(&mut Connection) -> Result<(), Error>,
) -> Result<(), Error> {
    let file = dir.join(SQLITE_FILE);
    let new = dir.join("store.sqlite.new");
    for old in [new.clone(), connection::log_of(&new), connection::log_index_of(&new)] {
        if old.exists() {
            fs::remove_file(&old).map_err(writing("remove", &old))?;
        }
    }
    let fault = |error| fault::of(dir, error);
    let mut connection = connection::create(&new).map_err(fault)?;
    fill(&mut connection)?;
    connection::finish(connection).map_err(fault)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&new, mode).map_err(writing("close to others", &new))?;
    }
    folder::sync(&new)?;
    fs::rename(&new, &file).map_err(writing("rename into", &file))?;
    foldback_core::failpoint!("kv.sqlite.published");
    folder::sync(dir)
}
