//! Opens connections, with the settings that the store's promises rely on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{checkpoint, fault};
use crate::Error;

/// How long to wait for others before it is an error.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How a database file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// For writing, and for reading while others write.
    Write,
    /// For reading; the folder lets the log's index be shared with writers.
    Read,
    /// For reading a file in a folder that cannot be written and has no log: SQLite takes no locks
    /// and notices no changes. If another process can write there after all, records may be old or
    /// fail their checksum.
    Frozen,
}

/// Opens an existing database.
pub(super) fn open(
    file: &Path,
    access: Access,
    patience: Duration,
) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match access {
        Access::Write => {
            Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)?
        }
        Access::Read => {
            Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)?
        }
        Access::Frozen => Connection::open_with_flags(
            frozen(file),
            flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        )?,
    };
    set_patience(&mut connection, patience)?;
    connection.set_prepared_statement_cache_capacity(64);
    // A damaged schema must not run anything, and a damaged page must be noticed before it is
    // followed.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // Without this a statement is prepared again for each range that is bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if access == Access::Write {
        make_durable(&connection)?;
    }
    Ok(connection)
}

/// Creates a new database.
pub(super) fn create(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = Connection::open_with_flags(file, flags)?;
    set_patience(&mut connection, PATIENCE)?;
    make_durable(&connection)?;
    Ok(connection)
}

/// Closes a new database, with everything in the file itself and nothing in a log.
pub(super) fn finish(connection: Connection) -> Result<(), rusqlite::Error> {
    // A copy brings its own header along, so the mode is set again.
    make_durable(&connection)?;
    checkpoint::truncate(&connection)?;
    connection.close().map_err(|(_, error)| error)
}

/// Waits for others in short steps. SQLite's own handler sleeps up to 100 ms at a time; with it,
/// some of four measured processes got a tenth of the turns.
pub(super) fn set_patience(
    connection: &mut Connection,
    patience: Duration,
) -> Result<(), rusqlite::Error> {
    let mut begin = Instant::now();
    connection.busy_handler(Some(move |count| {
        if count == 0 {
            begin = Instant::now();
        }
        let wait = if count < 100 { Duration::from_micros(100) } else { Duration::from_millis(1) };
        thread::sleep(wait);
        begin.elapsed() < patience
    }))
}

/// Determines how a store can be read: while others write if the folder allows it, and otherwise as
/// a frozen file.
pub(super) fn reading_access(dir: &Path, file: &Path) -> Result<Access, Error> {
    let asked = open(file, Access::Read, PATIENCE).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0))
    });
    let Err(error) = asked else { return Ok(Access::Read) };
    let is_pending = std::fs::metadata(log_of(file)).is_ok_and(|log| log.len() > 0);
    match (error.sqlite_error_code(), fault::of(dir, error)) {
        // There is no room for the log's index either.
        (_, Error::Full { .. }) if !is_pending => Ok(Access::Frozen),
        (_, error @ (Error::Io { .. } | Error::Full { .. })) => Err(error),
        (Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied), _) => {
            if is_pending {
                Err(Error::PendingLog { path: dir.to_owned() })
            } else {
                Ok(Access::Frozen)
            }
        }
        (_, error) => Err(error),
    }
}

/// Returns the path of a database's log (`-wal`).
pub(super) fn log_of(file: &Path) -> PathBuf {
    beside(file, "-wal")
}

/// Returns the path of the log's shared index (`-shm`).
pub(super) fn log_index_of(file: &Path) -> PathBuf {
    beside(file, "-shm")
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(end);
    PathBuf::from(name)
}

fn make_durable(connection: &Connection) -> Result<(), rusqlite::Error> {
    // SQLite answers with the present mode, which differs if the mode could not be changed.
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("the journal mode is {mode} and could not be changed to WAL")),
        ));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Otherwise the bytes of deleted records stay in free pages (45 copies of 40 canaries did).
    connection.pragma_update(None, "secure_delete", true)?;
    // A backstop of 32 MiB; the checkpointer's thread normally acts first.
    connection.pragma_update(None, "wal_autocheckpoint", 8192)
}

/// Returns the URI that opens a file as one that nobody changes. Every byte with a special meaning
/// in a URI is escaped.
fn frozen(file: &Path) -> String {
    let mut address = String::from("file:");
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address.push_str("?immutable=1");
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_address_escapes_what_means_something() {
        assert_eq!(frozen(Path::new("/a b/?#%/库")), "file:/a%20b/%3F%23%25/%E5%BA%93?immutable=1");
    }
}
