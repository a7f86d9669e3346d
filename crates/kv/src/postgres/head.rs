//! Heads, as the database has them.

use super::pool::Asked;
use super::slot::{self, Slots};
use crate::registry::{REGISTRY, own_key};
use crate::{FORGOTTEN_HEAD, Key, record};
use std::fmt;
use std::sync::Arc;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// Returns the checksum that is stored with a head.
pub(super) fn checksum(todo: u32, head: u64) -> i64 {
    let sealed = record::seal_head(todo, head);
    let bytes = sealed.get(1..9).and_then(|bytes| bytes.try_into().ok());
    i64::from_le_bytes(bytes.unwrap_or_default())
}

/// Returns a stored head, or says why it is not valid.
pub(super) fn open(todo: u32, head: i64, stored: i64) -> Result<u64, String> {
    let head = head as u64;
    match stored == checksum(todo, head) {
        true => Ok(head),
        false => Err("its checksum does not match its todo and value".to_owned()),
    }
}

/// Reads the head of a todo, with what tells a new todo from a forgotten one.
pub(super) fn read(client: Arc<Client>, slots: Slots, todo: u32) -> Asked<Result<u64, String>> {
    Box::pin(async move {
        let (slot, number) = (slots.of(todo), slot::number(todo));
        let sql = format!(
            "SELECT h.head, h.checksum, {} FROM (SELECT 1) AS one \
             LEFT JOIN foldback_head AS h ON h.slot = $1 AND h.todo = $2",
            is_not_forgotten(slots, todo)
        );
        let rows = client.query_typed(&sql, &[(&slot, Type::INT4), (&number, Type::INT4)]).await?;
        let Some(row) = rows.first() else { return Ok(Ok(0)) };
        let (head, stored): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let found = match (head, stored) {
            (Some(head), Some(stored)) => open(todo, head, stored),
            _ => Ok(0),
        };
        let is_new = todo == REGISTRY || row.try_get(2)?;
        Ok(found.map(|head| if head == 0 && !is_new { FORGOTTEN_HEAD } else { head }))
    })
}

/// Returns the condition under which a todo without a head is new: its number was not given out, or it is registered.
/// See [`missing_head`](crate::missing_head()).
pub(super) fn is_not_forgotten(slots: Slots, todo: u32) -> impl fmt::Display {
    let Key { todo: of, n, space } = own_key(todo);
    let (slot, space) = (slots.of(of), space.number());
    debug_assert_eq!(of, REGISTRY);
    format!(
        "({todo} > COALESCE((SELECT r.head FROM foldback_head AS r WHERE r.slot = {slot} AND r.todo = {of}), 0) \
         OR EXISTS (SELECT 1 FROM foldback_record AS r WHERE r.slot = {slot} AND r.todo = {of} \
         AND r.space = {space} AND r.n = {n}))"
    )
}
