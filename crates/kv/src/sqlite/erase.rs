//! Deleting on a full disk.
//!
//! A commit writes every page that it touches into the log before any of them is free, and deleted bytes are
//! overwritten, so deleting much data takes as much free space. If there is none, rows are deleted a few at a time,
//! and the log is emptied after each step, which frees space for the next.

use super::row::ids;
use super::writer::roll_back;
use super::{Sqlite, checkpoint, table};
use crate::{Batch, Delete, Error, Key, Kv as _};
use rusqlite::Connection;

/// How many rows are deleted in the first step. A step that does not fit is tried again with a quarter of them.
const MOST_ROWS: usize = 1 << 10;

impl Sqlite {
    /// Deletes step by step what the batch deletes, and then commits it. If interrupted, some records are gone
    /// and the head is unchanged.
    pub(super) fn erase_in_steps(&self, batch: Batch) -> Result<(), Error> {
        // The log itself may hold space.
        self.write("its log was emptied", |writer| {
            checkpoint::truncate(&writer.connection).map_err(|error| self.refused(error, false))
        })?;
        let erased = self.erase_rows(&batch).and_then(|()| self.commit(batch));
        self.overwrite("ON").and(erased)
    }

    fn erase_rows(&self, batch: &Batch) -> Result<(), Error> {
        let mut rows = MOST_ROWS;
        // Single records say what exists, so they are deleted together with the head, at the end.
        let is_range = |delete: &&Delete| delete.range.end > delete.range.start.saturating_add(1);
        for delete in batch.delete.iter().filter(is_range) {
            loop {
                match self.erase_some(delete, rows) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(Error::Full { .. }) if rows > 1 => rows = (rows / 4).max(1),
                    // One row is larger than the free space: its bytes stay in free pages until the
                    // store is compacted.
                    Err(Error::Full { .. }) if rows == 1 => {
                        self.overwrite("FAST")?;
                        rows = 0;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Sets whether deleted bytes are overwritten even if that means writing more pages.
    fn overwrite(&self, how: &str) -> Result<(), Error> {
        self.write("others wrote", |writer| {
            let set = writer.connection.pragma_update(None, "secure_delete", how);
            set.map_err(|error| self.refused(error, false))
        })
    }

    /// Deletes the first rows of a range, at most `rows` and at least one. Returns whether there were any.
    fn erase_some(&self, delete: &Delete, rows: usize) -> Result<bool, Error> {
        let Some(span) = Key::span(delete.space, delete.todo, &delete.range)? else {
            return Ok(false);
        };
        if !self.has(delete.space)? {
            return Ok(false);
        }
        let (first, end) = ids(delete.todo, &span);
        let sql = table::of(delete.space);
        self.write("others wrote", |writer| {
            let connection = &writer.connection;
            let refused = |error| self.refused(error, false);
            let last = last_of(connection, sql.scan, (first, end, rows.max(1) as i64));
            let Some(last) = last.map_err(refused)? else { return Ok(false) };
            table::run(connection, "BEGIN IMMEDIATE", ()).map_err(refused)?;
            let deleted = table::run(connection, sql.delete, (first, last))
                .and_then(|_| table::run(connection, "COMMIT", ()));
            if let Err(error) = deleted {
                roll_back(connection);
                return Err(self.refused(error, true));
            }
            writer.turn.give()?;
            checkpoint::truncate(connection).map_err(refused)?;
            Ok(true)
        })
    }
}

/// Returns the last of the ids that a scan yields.
fn last_of(
    connection: &Connection,
    scan: &str,
    range: (i64, i64, i64),
) -> Result<Option<i64>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(scan)?;
    let mut found = statement.query(range)?;
    let mut last = None;
    while let Some(row) = found.next()? {
        last = Some(row.get(0)?);
    }
    Ok(last)
}
