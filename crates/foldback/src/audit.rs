//! The audit log: what was asked of a store and what it returned. The log is append-only and reveals changes to
//! itself.

mod check;
mod coding;
mod line;
mod log;

pub use check::{AuditFilter, AuditReport};
pub use line::AuditLine;
pub(crate) use log::Log;

use crate::error::Failure;
use crate::memory::Shared;
use crate::secret::Secret;
use crate::{Error, Memory};
use coding::Coding;
use foldback_blockstore::Hit;
use foldback_core::{Reference, TodoId, ToolCall};
use foldback_disclosure::Answer;
use foldback_kv::Kv;
use line::Asked;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// The log's name in the store's folder.
const FILE: &str = "audit.jsonl";

/// Turns on the log of look-ups; see [`Options::audit`](crate::Options::audit).
///
/// ```
/// use foldback::core::{Message, TodoId};
/// use foldback::{Audit, AuditFilter, Memory, Options};
///
/// let dir = tempfile::tempdir()?;
/// let memory = Memory::open(dir.path(), Options::default().with_audit(Audit::new("example")))?;
/// let todo = TodoId::new("trip")?;
/// memory.session(&todo)?.record(Message::user("The ferry leaves at nine."))?;
/// memory.recall(&todo, "search_block", r#"{"query": "ferry"}"#)?;
///
/// let report = memory.audit().read(&AuditFilter::default(), |line| {
///     assert_eq!((line.door.as_str(), line.what.as_str()), ("example", "search_block"));
///     assert_eq!(line.given, ["b_trip_001"]);
/// })?;
/// assert_eq!((report.lines, report.broken), (1, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Audit {
    door: String,
}

impl Audit {
    /// Creates a setting under which this memory's lines carry this `door`: the way by which a program or a person
    /// came.
    #[must_use]
    pub fn new(door: &str) -> Self {
        Self { door: door.to_owned() }
    }
}

/// A look-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditEvent<'e> {
    /// The todo that was searched; `None` for all of them.
    pub todo: Option<&'e TodoId>,
    /// What was done: `search_block`, `load`, `grant`, ...
    pub what: &'e str,
    /// The references that were named.
    pub references: &'e [String],
    /// The rest of the request; only a keyed digest of it is logged.
    pub query: Option<&'e str>,
    /// The references that were returned.
    pub given: &'e [String],
    /// Whether it was refused or found nothing.
    pub is_error: bool,
}

/// The log of look-ups in a store.
#[derive(Clone, Copy)]
pub struct AuditLog<'a> {
    memory: &'a Shared,
}

impl Memory {
    /// Returns the log of look-ups. It can be read whether or not this memory adds to it.
    #[must_use]
    pub fn audit(&self) -> AuditLog<'_> {
        AuditLog::of(&self.shared)
    }
}

impl<'a> AuditLog<'a> {
    pub(crate) fn of(memory: &'a Shared) -> Self {
        Self { memory }
    }

    /// Logs a look-up that was not made by one of the memory's own methods; those log themselves.
    /// Without [`Options::audit`](crate::Options::audit) it does nothing.
    ///
    /// # Errors
    /// When the line cannot be written. The result should then be withheld.
    pub fn note(self, event: &AuditEvent<'_>) -> Result<(), Error> {
        self.memory.note(event)
    }
}

/// The parts of a tool's arguments that are logged.
#[derive(Default, Deserialize)]
struct Arguments {
    r#ref: Option<String>,
    query: Option<String>,
    pattern: Option<String>,
}

impl Shared {
    pub(crate) fn note(&self, event: &AuditEvent<'_>) -> Result<(), Error> {
        match &self.audit {
            Some(log) => log.append((self.clock)(), event, self.kv.as_ref()),
            None => Ok(()),
        }
    }

    /// Logs a call of a recall tool and its answer.
    pub(crate) fn note_call(
        &self,
        todo: Option<&TodoId>,
        tool: &str,
        arguments: &str,
        answer: &Answer,
    ) -> Result<(), Error> {
        if self.audit.is_none() {
            return Ok(());
        }
        let read: Option<Arguments> = serde_json::from_str(arguments).ok();
        // Arguments that cannot be read are logged as the query.
        let all = read.is_none().then_some(arguments);
        let read = read.unwrap_or_default();
        let references: Vec<String> = read.r#ref.into_iter().map(|one| shortened(&one)).collect();
        self.note(&AuditEvent {
            todo,
            what: tool,
            references: &references,
            query: read.query.as_deref().or(read.pattern.as_deref()).or(all),
            given: &answer.references,
            is_error: answer.is_error,
        })
    }

    /// Logs a search and what it found.
    pub(crate) fn note_search(
        &self,
        todo: Option<&TodoId>,
        query: &str,
        hits: &[Hit],
    ) -> Result<(), Error> {
        if self.audit.is_none() {
            return Ok(());
        }
        let given: Vec<String> =
            hits.iter().map(|hit| hit.block.header.block_id.to_string()).collect();
        let (query, given) = (Some(query), &*given);
        self.note(&AuditEvent { todo, what: "search", query, given, ..AuditEvent::default() })
    }

    /// Logs references that were named, and whether they were returned.
    pub(crate) fn note_references(
        &self,
        todo: &TodoId,
        what: &str,
        references: &[Reference],
        is_given: bool,
    ) -> Result<(), Error> {
        if self.audit.is_none() {
            return Ok(());
        }
        let references: Vec<String> = references.iter().map(ToString::to_string).collect();
        let given = if is_given { &*references } else { &[] };
        let (todo, references) = (Some(todo), &*references);
        self.note(&AuditEvent { todo, what, references, given, ..AuditEvent::default() })
    }

    /// Logs a call as [`note_call`](Self::note_call) does.
    pub(crate) fn note_tool(
        &self,
        todo: &TodoId,
        call: &ToolCall,
        answer: &Answer,
    ) -> Result<(), Error> {
        self.note_call(Some(todo), &call.name, &call.arguments, answer)
    }

    /// Returns the path of the log; `None` in memory.
    fn audit_path(&self) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(FILE))
    }
}

/// Refuses anything but a file under the log's name: opening or reading a pipe would wait for its other end.
fn check_is_file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
        _ => Ok(()),
    }
}

/// Returns a reference as a model wrote it, which may be anything.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Derives the key for the digests and checks of a store's log.
fn key_of(secret: &Secret) -> [u8; 32] {
    blake3::derive_key("foldback 2026-11-26 audit log", secret)
}

/// Opens the log of a memory with these options; `secret` is the store's, if it is kept.
pub(crate) fn log_of(
    audit: Option<&Audit>,
    dir: Option<&PathBuf>,
    secret: Option<&Secret>,
    kv: &dyn Kv,
    is_writable: bool,
) -> Result<Option<Log>, Error> {
    let Some(audit) = audit else { return Ok(None) };
    let Some(dir) = dir else { return Err(Failure::NoAuditFolder.into()) };
    let Some(secret) = secret else { return Err(Failure::NoAuditSecret.into()) };
    let coding = Coding::of(kv)?;
    Log::open(&dir.join(FILE), &audit.door, key_of(secret), coding, is_writable).map(Some)
}

/// Returns what a log line may hold of a request: a digest, without its words.
fn asked<'e>(event: &AuditEvent<'e>, key: &[u8; 32]) -> Asked<'e> {
    Asked { references: event.references, query: event.query.map(|query| line::digest(key, query)) }
}

#[cfg(test)]
mod tests;
