//! Adding to the log.

use super::coding::Coding;
use super::line::{AuditLine, End, LINES_LOST, write};
use super::{AuditEvent, check_is_file};
use crate::Error;
use crate::error::Failure;
use foldback_core::Timestamp;
use foldback_kv::{Batch, Error as KvError, Key, Kv, Space};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Records of the whole store use the number that no todo has.
const ANCHOR: Key = Key { space: Space::Meta, todo: 0, n: 5 };

/// The end of the log is noted in the store every this many lines.
const PER_ANCHOR: u64 = 64;

/// The last line is first searched for in this many bytes.
const TAIL: u64 = 4 << 10;

/// The log of a store, open for appending. Other processes may append to it, too.
pub(crate) struct Log {
    path: PathBuf,
    door: String,
    key: [u8; 32],
    coding: Coding,
    /// Whether the store's records can be written.
    is_writable: bool,
    state: Mutex<State>,
}

struct State {
    /// The length of the file after this process's last write; `None` before the first, and if it failed.
    length: Option<u64>,
    /// The end of the log at that length, or as the store knows it.
    end: End,
    /// The number of the last line that the store knows of.
    anchored: u64,
}

impl Log {
    pub(super) fn open(
        path: &Path,
        door: &str,
        key: [u8; 32],
        coding: Coding,
        is_writable: bool,
    ) -> Result<Self, Error> {
        let (path, door) = (path.to_owned(), door.to_owned());
        let state = Mutex::new(State { length: None, end: End::begin(), anchored: 0 });
        let log = Self { path, door, key, coding, is_writable, state };
        // What could not be logged later is refused now.
        log.file().map_err(|source| Failure::Io { path: log.path.clone(), source })?;
        Ok(log)
    }

    /// Opens the file that has the log's name now.
    fn file(&self) -> io::Result<File> {
        check_is_file(&self.path)?;
        let mut options = File::options();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)
    }

    /// Appends a line, preceded by one that says that others are gone if the log ends before a known line. The line is
    /// handed to the operating system before this returns; it reaches the disk when the system writes it.
    pub(super) fn append(
        &self,
        at: Timestamp,
        event: &AuditEvent<'_>,
        kv: &dyn Kv,
    ) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let io = |source| Error::from(Failure::Io { path: self.path.clone(), source });
        // Opened for each line: a process that runs for days must not write to a file that was deleted or moved away.
        let mut file = self.file().map_err(io)?;
        file.lock().map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        // Others may have written after this process's last line, or it is another file.
        let is_read = state.length.take() != Some(length);
        if is_read
            && let Some(known) = anchor_of(kv)?
            && known.n > state.end.n
        {
            state.end = known;
        }
        let (mut end, is_begun) = match is_read {
            true => end_of(&mut file, length, &self.coding).map_err(io)?,
            false => (state.end.clone(), false),
        };
        // A line that was being written when a process died stays a line of its own, which the check reports.
        let mut lines = if is_begun { "\n".to_owned() } else { String::new() };
        let are_lost = end.n < state.end.n;
        if are_lost {
            let lost = AuditEvent { what: LINES_LOST, is_error: true, ..AuditEvent::default() };
            end = self.write(&mut lines, &state.end, at, &lost)?;
        }
        end = self.write(&mut lines, &end, at, event)?;
        file.write_all(lines.as_bytes()).map_err(io)?;
        drop(file);
        (state.length, state.end) = (Some(length + lines.len() as u64), end);
        if self.is_writable && (are_lost || state.end.n >= state.anchored + PER_ANCHOR) {
            self.anchor(&mut state, kv)?;
        }
        Ok(())
    }

    /// Appends the line after an end to the others, and returns the new end.
    fn write(
        &self,
        lines: &mut String,
        end: &End,
        at: Timestamp,
        event: &AuditEvent<'_>,
    ) -> Result<End, Error> {
        let written = write(&self.key, end, at, &self.door, event);
        let (line, end) =
            written.map_err(|_| Failure::Internal("a line of the log has no text"))?;
        lines.push_str(&self.coding.write(line)?);
        Ok(end)
    }

    /// Notes in the store where the log ends, so that a truncated log is recognised.
    fn anchor(&self, state: &mut State, kv: &dyn Kv) -> Result<(), Error> {
        if anchor_of(kv)?.is_none_or(|known| known.n < state.end.n) {
            let bytes = rmp_serde::to_vec(&state.end)
                .map_err(|_| Failure::Internal("the end of a log has no bytes"))?;
            match kv.commit(Batch { put: vec![(ANCHOR, bytes)], ..Batch::default() }) {
                // The line is written; a store that takes no writes can still be read.
                Ok(())
                | Err(
                    KvError::Full { .. }
                    | KvError::Lost { .. }
                    | KvError::Busy { .. }
                    | KvError::Poisoned { .. }
                    | KvError::Gone { .. }
                    | KvError::ReadOnly { .. }
                    | KvError::Unknown { .. }
                    | KvError::Unreachable { .. },
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        state.anchored = state.end.n;
        Ok(())
    }

    /// Notes the end of the log, as far as this process knows it, in the store.
    pub(crate) fn finish(&self, kv: &dyn Kv) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_writable && state.end.n > state.anchored {
            // The next process that writes notes it.
            drop(self.anchor(&mut state, kv));
        }
    }
}

/// Returns the end that the log must have reached, as far as the store knows.
pub(super) fn anchor_of(kv: &dyn Kv) -> Result<Option<End>, Error> {
    let bytes = match kv.get(ANCHOR) {
        Err(KvError::Corrupt { .. }) => None,
        bytes => bytes?,
    };
    Ok(bytes.and_then(|bytes| rmp_serde::from_slice(&bytes).ok()))
}

/// Returns the end of a log of this length in bytes, and whether its last line is incomplete.
fn end_of(file: &mut File, length: u64, coding: &Coding) -> io::Result<(End, bool)> {
    let mut tail = TAIL;
    loop {
        let from = length.saturating_sub(tail);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        io::Read::by_ref(file).take(length - from).read_to_end(&mut bytes)?;
        let is_begun = !bytes.is_empty() && !bytes.ends_with(b"\n");
        // The last valid line. Those before it are left to the check.
        let read = |line: &[u8]| serde_json::from_slice::<AuditLine>(&coding.read(line)?).ok();
        if let Some(line) = bytes.split(|byte| *byte == b'\n').rev().find_map(read) {
            return Ok((End { n: line.n, check: line.check }, is_begun));
        }
        if from == 0 {
            return Ok((End::begin(), is_begun));
        }
        tail *= 8;
    }
}
