//! Another program's SQLite file, read as it stands. Nothing is written to it, and its program may go on writing.

use crate::Error;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long its program is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Another program's SQLite file. Everything that is read of it is of one moment.
pub struct ForeignFile {
    connection: Connection,
    path: PathBuf,
}

impl ForeignFile {
    /// How such a file begins.
    pub const MAGIC: &[u8] = b"SQLite format 3\0";

    /// Opens a file for reading.
    ///
    /// # Errors
    /// When it cannot be read, or is no such file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            // What the file holds runs nothing, and a damaged page is noticed before it is followed.
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

    /// The rows that a query gives, each column as its name and its value as text: `None` for NULL and for bytes
    /// that are no text.
    ///
    /// # Errors
    /// When the file is damaged, or has no such tables and columns; and what `take` fails with.
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
        // It stays at its moment; opened again it is at another.
        assert_eq!(read(&file), rows);
        assert_eq!(read(&ForeignFile::open(&path).unwrap()).len(), 3);
        let none = |_: &[(&str, Option<String>)]| Ok::<_, Error>(());
        let error = file.rows("SELECT * FROM nothing", &[], none).unwrap_err().to_string();
        assert!(error.contains("other.db") && error.contains("nothing"), "{error}");
        std::fs::write(&path, "no database, but long enough to be read as one").unwrap();
        assert!(ForeignFile::open(&dir.path().join("missing.db")).is_err());
    }
}
