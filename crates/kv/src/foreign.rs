//! Reads the SQLite file of another program as it is. Nothing is written to it, and that program may keep writing.

use crate::Error;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for the program that owns the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Another program's SQLite file. All reads see one snapshot.
pub struct ForeignFile {
    connection: Connection,
    path: PathBuf,
}

impl ForeignFile {
    /// The first bytes of such a file.
    pub const MAGIC: &[u8] = b"SQLite format 3\0";

    /// Opens a file for reading.
    ///
    /// # Errors
    /// When the file cannot be read, or is not an SQLite file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            // Nothing in the file's schema can run, and a damaged page is noticed before it is followed.
            connection.pragma_update(None, "trusted_schema", false)?;
            connection.pragma_update(None, "cell_size_check", true)?;
            connection.execute_batch("BEGIN")?;
            Ok(connection)
        };
        let path = path.to_owned();
        match open() {
            Ok(connection) => Ok(Self { connection, path }),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// Passes the rows of a query to `take`, each column as its name and its value as text: `None` for NULL and
    /// for bytes that are not text.
    ///
    /// # Errors
    /// When the file is damaged or has no such tables and columns, and any error of `take`.
    pub fn rows<E: From<Error>>(
        &self,
        query: &str,
        parameters: &[&str],
        mut take: impl FnMut(&[(&str, Option<String>)]) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |error: rusqlite::Error| E::from(failed(&self.path, &error));
        let mut statement = self.connection.prepare_cached(query).map_err(failed)?;
        let names: Vec<_> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(params_from_iter(parameters)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let value = |n: usize| Ok::<_, rusqlite::Error>(text_of(row.get_ref(n)?));
            let columns = names.iter().enumerate().map(|(n, name)| Ok((name.as_str(), value(n)?)));
            take(&columns.collect::<Result<Vec<_>, _>>().map_err(failed)?)?;
        }
        Ok(())
    }
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            std::str::from_utf8(bytes).ok().map(str::to_owned)
        }
    }
}

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    Error::Foreign { path: path.to_owned(), detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_program_is_read_while_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", "wal").unwrap();
        writer
            .execute_batch(
                "CREATE TABLE t (id TEXT, n INTEGER, x BLOB);
                 INSERT INTO t VALUES ('一', 1, NULL), ('二', 2, x'ff');",
            )
            .unwrap();
        let read = |file: &ForeignFile| {
            let mut all = Vec::new();
            let query = "SELECT * FROM t WHERE n > ? ORDER BY n";
            file.rows::<Error>(query, &["0"], |row| {
                all.push(row.iter().map(|(name, v)| format!("{name}={v:?}")).collect::<Vec<_>>());
                Ok(())
            })
            .unwrap();
            all
        };
        let file = ForeignFile::open(&path).unwrap();
        let rows = read(&file);
        assert_eq!(rows[0], ["id=Some(\"一\")", "n=Some(\"1\")", "x=None"]);
        writer.execute_batch("INSERT INTO t VALUES ('三', 3, NULL)").unwrap();
        // It keeps its snapshot; opened again it gets a new one.
        assert_eq!(read(&file), rows);
        assert_eq!(read(&ForeignFile::open(&path).unwrap()).len(), 3);
        let none = |_: &[(&str, Option<String>)]| Ok::<_, Error>(());
        let error = file.rows("SELECT * FROM nothing", &[], none).unwrap_err().to_string();
        assert!(error.contains("other.db") && error.contains("nothing"), "{error}");
        std::fs::write(&path, "no database, but long enough to be read as one").unwrap();
        assert!(ForeignFile::open(&dir.path().join("missing.db")).is_err());
    }
}
