//! A row of a table: the two numbers in an id, and the columns of a record.

use super::table;
use crate::witness::Link;
use crate::{DAMAGED_HEAD, Key, missing_head, record};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use std::ops::RangeInclusive;

/// Returns a todo's head, or why the stored one is not valid.
pub(super) fn head(connection: &Connection, todo: u32) -> Result<Stored<u64>, rusqlite::Error> {
    let stored = |todo| head_record(connection, i64::from(todo));
    if let Some(stored) = stored(todo)? {
        return Ok(stored.and_then(|bytes| record::open_head(todo, &bytes)));
    }
    let head = |todo| {
        let opened =
            |bytes: Stored<Vec<u8>>| bytes.and_then(|bytes| record::open_head(todo, &bytes));
        Ok(stored(todo)?.map_or(0, |stored| opened(stored).unwrap_or(DAMAGED_HEAD)))
    };
    let has = |key: Key| connection.prepare_cached(table::of(key.space).get)?.exists((id(key),));
    missing_head(todo, head, has).map(Ok)
}

fn head_record(
    connection: &Connection,
    id: i64,
) -> Result<Option<Stored<Vec<u8>>>, rusqlite::Error> {
    connection
        .prepare_cached(table::HEADS.get)?
        .query_row((id,), |row| Ok(blob(row, 0)?.map(<[u8]>::to_vec)))
        .optional()
}

/// Returns the last commit that the connection sees, or why the stored one is not valid. A store from before commits
/// had numbers has none.
pub(super) fn last_commit(connection: &Connection) -> Result<Stored<Link>, rusqlite::Error> {
    let stored = head_record(connection, table::LAST_COMMIT)?;
    Ok(stored.map_or(Ok(Link::default()), |stored| Link::open(&stored?)))
}

type Stored<T> = Result<T, String>;

/// Returns a column's bytes, or why it has none: a damaged cell may claim another type.
pub(super) fn blob<'a>(
    row: &'a Row<'_>,
    column: usize,
) -> Result<Stored<&'a [u8]>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Ok(bytes),
        other => Err(format!("it should be a blob and is {}", other.data_type())),
    })
}

pub(super) fn id(key: Key) -> i64 {
    let (first, _) = ids(key.todo, &(0..=0));
    // The key was checked: its `n` is below 2^32.
    first | i64::from(u32::try_from(key.n).unwrap_or(u32::MAX))
}

/// Returns the ids of a span of one todo, both ends included.
pub(super) fn ids(todo: u32, span: &RangeInclusive<u32>) -> (i64, i64) {
    let base = i64::from(todo) << 32;
    (base | i64::from(*span.start()), base | i64::from(*span.end()))
}

/// Returns the todo in an id.
pub(super) fn high(id: i64) -> u32 {
    (id >> 32) as u32
}

/// Returns the number in an id.
pub(super) fn low(id: i64) -> u32 {
    id as u32
}
