//! The sessions in OpenCode's database, each as `opencode export` writes it.

use super::Sourced;
use super::ready::written;
use crate::error::CliError;
use foldback_kv::ForeignFile;
use foldback_transcript::{Conversations, Error as InputError, Limits, Place};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The tables that are read here.
const TABLES: [&str; 3] = ["session", "message", "part"];

/// Columns of a row: names, and values as text.
type Row<'r> = [(&'r str, Option<String>)];

/// Whether a file is a database.
pub(crate) fn is_database(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(ForeignFile::MAGIC.len() as u64).read_to_end(&mut begin));
    read.is_ok() && begin == ForeignFile::MAGIC
}

/// A database of OpenCode, at one moment.
pub(crate) struct Database {
    file: ForeignFile,
    name: String,
    /// The sessions that are still to be read, the next one last.
    sessions: Vec<String>,
    count: u64,
    /// When the database was last written.
    written: Option<SystemTime>,
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let file = ForeignFile::open(path)?;
        let name = path.display().to_string();
        let mut tables = Vec::new();
        file.rows("SELECT name FROM sqlite_master WHERE type = 'table'", &[], |row| {
            tables.push(value(row, "name").to_owned());
            Ok::<_, CliError>(())
        })?;
        if let Some(missing) = TABLES.iter().find(|table| !tables.iter().any(|own| own == *table)) {
            let found = format!("This is an SQLite database without OpenCode's table {missing:?}");
            return Err(InputError::Unknown { place: Place { file: name, line: 1 }, found }.into());
        }
        let mut sessions = Vec::new();
        file.rows("SELECT id FROM session ORDER BY time_created DESC, id DESC", &[], |row| {
            sessions.push(value(row, "id").to_owned());
            Ok::<_, CliError>(())
        })?;
        Ok(Self {
            file,
            name,
            sessions,
            count: 0,
            written: written(path).max(written(&log_of(path))),
        })
    }

    /// Drops the sessions that have not changed since `seen` was filled; `seen` is filled anew.
    pub(crate) fn changed(mut self, seen: &mut HashMap<String, String>) -> Result<Self, CliError> {
        let mut stamps: HashMap<String, String> = HashMap::new();
        for query in [
            "SELECT id, time_updated AS at, 1 AS count FROM session",
            "SELECT session_id AS id, max(time_updated) AS at, count(*) AS count FROM message GROUP BY session_id",
            "SELECT session_id AS id, max(time_updated) AS at, count(*) AS count FROM part GROUP BY session_id",
        ] {
            self.file.rows(query, &[], |row| {
                let stamp = stamps.entry(value(row, "id").to_owned()).or_default();
                stamp.push_str(&format!("{} {};", value(row, "at"), value(row, "count")));
                Ok::<_, CliError>(())
            })?;
        }
        self.sessions.retain(|session| stamps.get(session) != seen.get(session));
        *seen = stamps;
        Ok(self)
    }

    /// Returns a session, each message on a line of its own.
    fn export(&self, session: &str) -> Result<String, CliError> {
        let mut text = String::from("{\"info\":");
        self.file.rows("SELECT * FROM session WHERE id = ?", &[session], |row| {
            text.push_str(&object_of(row));
            Ok::<_, CliError>(())
        })?;
        let mut parts: HashMap<String, Vec<String>> = HashMap::new();
        let query =
            "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id";
        self.file.rows(query, &[session], |row| {
            let of = parts.entry(value(row, "message_id").to_owned()).or_default();
            of.push(self.with_id(row, "part")?);
            Ok::<_, CliError>(())
        })?;
        text.push_str(",\"messages\":[");
        let mut comma = "\n";
        let query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id";
        self.file.rows(query, &[session], |row| {
            let (info, parts) =
                (self.with_id(row, "message")?, parts.remove(value(row, "id")).unwrap_or_default());
            text.push_str(&format!("{comma}{{\"info\":{info},\"parts\":[{}]}}", parts.join(",")));
            comma = ",\n";
            Ok::<_, CliError>(())
        })?;
        text.push_str("]}");
        Ok(text)
    }

    /// Returns a row's data, with its id.
    fn with_id(&self, row: &Row<'_>, what: &str) -> Result<String, CliError> {
        let (id, data) = (value(row, "id"), value(row, "data").trim());
        let members = data.strip_prefix('{').map(str::trim_start);
        let is_json = serde_json::from_str::<&RawValue>(data).is_ok();
        let Some(members) = members.filter(|_| is_json) else {
            let what = format!("the {what} {id:?} is not a JSON object");
            return Err(InputError::Shape { place: self.place(), what }.into());
        };
        let comma = if members == "}" { "" } else { "," };
        Ok(format!("{{\"id\":{}{comma}{}", serde_json::json!(id), members.replace('\n', " ")))
    }

    fn place(&self) -> Place {
        Place { file: self.name.clone(), line: self.count }
    }
}

impl Iterator for Database {
    type Item = Result<Sourced, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let session = self.sessions.pop()?;
            self.count += 1;
            let read = self.export(&session).and_then(|text| {
                let name = format!("{}, session {session}", self.name);
                let mut read =
                    Conversations::from_reader(name, text.as_bytes(), Limits::default())?;
                Ok(read.next().transpose()?)
            });
            match read {
                // A session in which nothing was said yet.
                Ok(None) | Err(CliError::Input(InputError::NoMessages { .. })) => {}
                Ok(Some(conversation)) => {
                    let sourced = Sourced::new(conversation, self.name.clone(), self.count);
                    return Some(Ok(Sourced { written: self.written, ..sourced }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Returns the file that changes first when a database is written.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    log.into()
}

fn value<'r>(row: &'r Row<'_>, name: &str) -> &'r str {
    let column = row.iter().find(|(column, _)| *column == name);
    column.and_then(|(_, value)| value.as_deref()).unwrap_or_default()
}

/// Writes a row as a JSON object. A value that is itself a JSON object or list is copied as it is.
fn object_of(row: &Row<'_>) -> String {
    let members = row.iter().filter_map(|(name, value)| {
        let value = value.as_deref()?;
        let is_json =
            value.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(value).is_ok();
        let json =
            if is_json { value.replace('\n', " ") } else { serde_json::json!(value).to_string() };
        Some(format!("{}:{json}", serde_json::json!(name)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
