//! Keeps room on the disk for what the log has yet to copy.
//!
//! Deleting needs a log that can be emptied, and the log is emptied by copying it into the file, which may have to grow
//! for that. So a write is refused if the file could not grow far enough after it, and while the disk has little space
//! the log is copied after each commit: other files, such as indexes, fill the disk too.

use super::{Sqlite, connection};
use crate::{Batch, Error};
use rusqlite::Connection;
use std::fs;
use std::path::Path;

/// With less than this much free beside the log, the log is kept short.
const LITTLE: u64 = 64 << 20;
/// A log of this many bytes is short. The reserve of a store is larger.
const SHORT: u64 = 256 << 10;
const PAGE_BYTES: u64 = 4096;

/// Copies what can be copied of the log without waiting for anybody.
pub(super) fn copy(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()))
}

/// Returns an estimate of how many pages the records of a batch take: a leaf, its overflow, and the head's leaf; inner
/// pages are few.
pub(super) fn pages_of(batch: &Batch) -> u64 {
    batch.put.iter().map(|(_, value)| value.len() as u64 / PAGE_BYTES + 2).sum()
}

impl Sqlite {
    /// Copies the log if the disk has little space left. A disk that is too full for that is no error.
    pub(super) fn shorten_log(&self, connection: &Connection) -> Result<(), Error> {
        let log = bytes_of(&connection::log_of(&self.file));
        let is_little = || free_bytes(&self.dir).is_some_and(|free| free < LITTLE + log);
        if log <= SHORT || !is_little() {
            return Ok(());
        }
        match copy(connection).map_err(|error| self.refused(error, false)) {
            Err(Error::Full { .. } | Error::Busy { .. }) => Ok(()),
            copied => copied,
        }
    }

    /// Refuses batches that add records if the disk has no room both for them in the log and for the log in the file.
    /// Asked within the transaction that is to write them.
    pub(super) fn check_room(
        &self,
        connection: &Connection,
        batches: &[Batch],
    ) -> Result<(), Error> {
        let more = batches.iter().map(pages_of).sum::<u64>().saturating_mul(PAGE_BYTES);
        let log = bytes_of(&connection::log_of(&self.file));
        let Some(free) = free_bytes(&self.dir) else { return Ok(()) };
        if more == 0 || free >= log.saturating_add(more.saturating_mul(2)) {
            return Ok(());
        }
        // Much of the log may be copied already, or replace what the file holds.
        let pages = |sql| connection.query_row(sql, (), |row| row.get::<_, u32>(0));
        let refused = |error| self.refused(error, false);
        let file = u64::from(pages("PRAGMA page_count").map_err(refused)?) * PAGE_BYTES;
        let unused = u64::from(pages("PRAGMA freelist_count").map_err(refused)?) * PAGE_BYTES;
        let growth = file.saturating_sub(bytes_of(&self.file)) + more.saturating_sub(unused);
        if free < more.saturating_add(growth) {
            return Err(Error::Full { path: self.dir.clone() });
        }
        Ok(())
    }
}

fn bytes_of(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

#[cfg(unix)]
fn free_bytes(dir: &Path) -> Option<u64> {
    // Some file systems, over a network for example, report no size at all.
    let disk = rustix::fs::statvfs(dir).ok().filter(|disk| disk.f_blocks > 0)?;
    // A part may be for the system's administrator alone.
    let is_root = rustix::process::geteuid().is_root();
    let blocks = if is_root { disk.f_bfree } else { disk.f_bavail };
    blocks.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}
