//! A line of the log.

use super::AuditEvent;
use foldback_core::{Timestamp, TodoId};
use serde::{Deserialize, Serialize};

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    /// Its number, from 1 on.
    pub n: u64,
    /// When it was written, in RFC 3339 format.
    pub at: String,
    /// The way by which it came: `cli`, `mcp`, `gateway`, `run`, or a program's name for itself.
    pub door: String,
    /// The todo; `None` for all of them.
    #[serde(default)]
    pub todo: Option<String>,
    /// What was done: `search_block`, `load`, `grant`, ...; or `lines_lost`, in the first line after lines that are
    /// gone.
    pub what: String,
    /// The references that were named.
    #[serde(default)]
    pub asked: Vec<String>,
    /// A keyed digest of the rest of the request, as 32 hexadecimal digits.
    #[serde(default)]
    pub query: Option<String>,
    /// The references that were returned.
    #[serde(default)]
    pub given: Vec<String>,
    /// Whether it was refused or found nothing.
    #[serde(default)]
    pub error: bool,
    /// The check of the previous line.
    pub before: String,
    /// A keyed digest of `before` and of this line up to here.
    pub check: String,
}

/// A line as it is written, without its check.
#[derive(Serialize)]
pub(super) struct Written<'e> {
    pub(super) n: u64,
    pub(super) at: String,
    pub(super) door: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) todo: Option<&'e TodoId>,
    pub(super) what: &'e str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) asked: &'e [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) given: &'e [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) error: bool,
    pub(super) before: &'e str,
}

/// A request.
pub(super) struct Asked<'e> {
    pub(super) references: &'e [String],
    pub(super) query: Option<String>,
}

/// The end of the log: its last line and that line's check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) n: u64,
    pub(super) check: String,
}

impl End {
    /// Returns the end of an empty log.
    pub(super) fn begin() -> Self {
        Self { n: 0, check: "0".repeat(2 * BYTES) }
    }
}

/// The length of digests in bytes.
const BYTES: usize = 16;

/// The entry that records that lines are gone from the log.
pub(super) const LINES_LOST: &str = "lines_lost";

/// The text before a line's check, which is its last key.
const CHECK: &str = ",\"check\":\"";

/// Returns the bytes of the line after an end, with its line break, and the new end.
pub(super) fn write(
    key: &[u8; 32],
    end: &End,
    at: Timestamp,
    door: &str,
    event: &AuditEvent<'_>,
) -> Result<(String, End), serde_json::Error> {
    let asked = super::asked(event, key);
    let mut line = serde_json::to_string(&Written {
        n: end.n + 1,
        at: at.to_rfc3339(),
        door,
        todo: event.todo,
        what: event.what,
        asked: asked.references,
        query: asked.query,
        given: event.given,
        error: event.is_error,
        before: &end.check,
    })?;
    line.pop();
    let check = digest(key, &line);
    line.push_str(CHECK);
    line.push_str(&check);
    line.push_str("\"}\n");
    Ok((line, End { n: end.n + 1, check }))
}

/// Parses a line without its line break, as it was written; or returns what is wrong with it.
pub(super) fn read(key: &[u8; 32], line: &[u8]) -> Result<AuditLine, String> {
    let text = str::from_utf8(line).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let read: AuditLine =
        serde_json::from_str(text).map_err(|_| "it is not a line of this log".to_owned())?;
    let said = text.rsplit_once(CHECK).map(|(said, _)| said).unwrap_or_default();
    if digest(key, said) != read.check {
        return Err(
            "its check does not match: it was changed, or written with another secret".to_owned()
        );
    }
    Ok(read)
}

impl AuditLine {
    /// Checks that this line follows an end; or returns what is wrong with it.
    pub(super) fn follow(&self, end: &End) -> Result<(), String> {
        if self.before == end.check && self.n == end.n + 1 {
            return Ok(());
        }
        let expected = end.n + 1;
        Err(match self.what == LINES_LOST && self.n > expected {
            true => format!(
                "lines {expected} to {} were in the log before it, and are gone",
                self.n - 1
            ),
            false => {
                format!("it does not follow on the line before it: line {expected} was expected")
            }
        })
    }
}

/// Returns a keyed digest of a text.
pub(super) fn digest(key: &[u8; 32], text: &str) -> String {
    let hash = blake3::keyed_hash(key, text.as_bytes());
    data_encoding::HEXLOWER.encode(hash.as_bytes().get(..BYTES).unwrap_or_default())
}
