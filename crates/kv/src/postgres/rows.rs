//! Records as rows of their table.

use super::slot::{self, Slots};
use crate::{Delete, Error, Key, record};
use std::collections::BTreeMap;

/// How many rows, and how many bytes of them, one statement writes at most.
const MOST_ROWS: usize = 1_000;
const MOST_BYTES: usize = 8 << 20;

/// The rows of a deletion, both ends included.
pub(super) struct Range {
    pub(super) slot: i32,
    pub(super) todo: i32,
    pub(super) space: i16,
    pub(super) first: i64,
    pub(super) last: i64,
}

/// The rows that one statement writes, by columns.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) slots: Vec<i32>,
    pub(super) todos: Vec<i32>,
    pub(super) spaces: Vec<i16>,
    pub(super) numbers: Vec<i64>,
    pub(super) records: Vec<Vec<u8>>,
    bytes: usize,
}

/// A key as the columns of its row.
pub(super) struct Place {
    pub(super) slot: i32,
    pub(super) todo: i32,
    pub(super) space: i16,
    pub(super) n: i64,
}

impl Place {
    /// Returns the place of a key, which was checked.
    pub(super) fn of(slots: Slots, key: Key) -> Self {
        Self {
            slot: slots.of(key.todo),
            todo: slot::number(key.todo),
            space: i16::from(key.space.number()),
            n: key.n as i64,
        }
    }
}

/// Returns the rows that a deletion names, if any.
pub(super) fn range(slots: Slots, delete: &Delete) -> Result<Option<Range>, Error> {
    let Some(span) = Key::span(delete.space, delete.todo, &delete.range)? else { return Ok(None) };
    let Place { slot, todo, space, .. } =
        Place::of(slots, Key { space: delete.space, todo: delete.todo, n: 0 });
    let (first, last) = (i64::from(*span.start()), i64::from(*span.end()));
    Ok(Some(Range { slot, todo, space, first, last }))
}

/// Returns the rows of puts, each key once, in the order in which all transactions lock them.
pub(super) fn rows(slots: Slots, put: &[(Key, Vec<u8>)]) -> Vec<Rows> {
    let placed =
        put.iter().map(|one @ (key, _)| ((slots.of(key.todo), key.todo, key.space, key.n), one));
    let last: BTreeMap<_, _> = placed.collect();
    let mut all: Vec<Rows> = Vec::new();
    for (key, value) in last.into_values() {
        let fits = |rows: &&mut Rows| {
            rows.slots.len() < MOST_ROWS && rows.bytes + value.len() <= MOST_BYTES
        };
        let rows = match all.last_mut().filter(fits) {
            Some(rows) => rows,
            None => {
                all.push(Rows::default());
                let Some(rows) = all.last_mut() else { continue };
                rows
            }
        };
        let Place { slot, todo, space, n } = Place::of(slots, *key);
        rows.slots.push(slot);
        rows.todos.push(todo);
        rows.spaces.push(space);
        rows.numbers.push(n);
        rows.records.push(record::seal(*key, value));
        rows.bytes += value.len();
    }
    all
}
