//! All rows of the tables, in steps.

use super::pool::Asked;
use super::slot::Slots;
use crate::Error;
use std::sync::Arc;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// How many records are read at once, and how many bytes of them, beside the last record.
const RECORDS: i64 = 256;
const BYTES: i64 = 4 << 20;
/// How many heads are read at once.
const HEADS: i64 = 1_000;

/// A record as it is stored: its slot, todo, space and number, and its bytes.
pub(super) type Stored = ([i64; 4], Vec<u8>);
/// A head as it is stored: its slot, todo, value and checksum.
pub(super) type StoredHead = [i64; 4];

/// Gives every record of a store to `each`, in the order of the keys. `ask` asks for one step.
pub(super) fn records(
    slots: Slots,
    mut ask: impl FnMut(Box<dyn Fn(Arc<Client>) -> Asked<Vec<Stored>>>) -> Result<Vec<Stored>, Error>,
    mut each: impl FnMut(Stored) -> Result<(), Error>,
) -> Result<(), Error> {
    let (first, last_slot) = slots.range().into_inner();
    let mut after = [i64::from(first), -1, -1, -1];
    loop {
        let found = ask(Box::new(move |client| Box::pin(next_records(client, after, last_slot))))?;
        let Some((last, _)) = found.last() else { return Ok(()) };
        after = *last;
        found.into_iter().try_for_each(&mut each)?;
    }
}

/// Gives every head of a store to `each`.
pub(super) fn heads(
    slots: Slots,
    mut ask: impl FnMut(
        Box<dyn Fn(Arc<Client>) -> Asked<Vec<StoredHead>>>,
    ) -> Result<Vec<StoredHead>, Error>,
    mut each: impl FnMut(StoredHead) -> Result<(), Error>,
) -> Result<(), Error> {
    let (first, last_slot) = slots.range().into_inner();
    let mut after = [i64::from(first), -1];
    loop {
        let found = ask(Box::new(move |client| Box::pin(next_heads(client, after, last_slot))))?;
        let Some([slot, todo, ..]) = found.last() else { return Ok(()) };
        after = [*slot, *todo];
        found.into_iter().try_for_each(&mut each)?;
    }
}

async fn next_records(
    client: Arc<Client>,
    [slot, todo, space, n]: [i64; 4],
    last_slot: i32,
) -> Result<Vec<Stored>, tokio_postgres::Error> {
    let sql = "SELECT slot::bigint, todo::bigint, space::bigint, n, record FROM ( \
               SELECT *, sum(bytes) OVER (ORDER BY slot, todo, space, n) - bytes AS before FROM ( \
               SELECT slot, todo, space, n, record, octet_length(record) AS bytes FROM foldback_record \
               WHERE (slot, todo, space, n) > ($1, $2, $3, $4) AND slot <= $7 ORDER BY slot, todo, space, n LIMIT $5) AS page \
               ) AS page WHERE before < $6 ORDER BY slot, todo, space, n";
    let (slot, todo, space) = (slot as i32, todo as i32, space as i16);
    let params: [(&(dyn ToSql + Sync), Type); 7] = [
        (&slot, Type::INT4),
        (&todo, Type::INT4),
        (&space, Type::INT2),
        (&n, Type::INT8),
        (&RECORDS, Type::INT8),
        (&BYTES, Type::INT8),
        (&last_slot, Type::INT4),
    ];
    let rows = client.query_typed(sql, &params).await?;
    rows.iter().map(|row| Ok((four(row)?, row.try_get(4)?))).collect()
}

async fn next_heads(
    client: Arc<Client>,
    [slot, todo]: [i64; 2],
    last_slot: i32,
) -> Result<Vec<StoredHead>, tokio_postgres::Error> {
    let sql = "SELECT slot::bigint, todo::bigint, head, checksum FROM foldback_head \
               WHERE (slot, todo) > ($1, $2) AND slot <= $4 ORDER BY slot, todo LIMIT $3";
    let (slot, todo) = (slot as i32, todo as i32);
    let params: [(&(dyn ToSql + Sync), Type); 4] =
        [(&slot, Type::INT4), (&todo, Type::INT4), (&HEADS, Type::INT8), (&last_slot, Type::INT4)];
    client.query_typed(sql, &params).await?.iter().map(four).collect()
}

fn four(row: &Row) -> Result<[i64; 4], tokio_postgres::Error> {
    Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?])
}
