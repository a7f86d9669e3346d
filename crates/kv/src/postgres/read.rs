//! What is read from the tables, a statement at a time.

use super::Postgres;
use super::params::{Param, Params, number};
use super::pool::Asked;
use super::rows::Place;
use super::{head, slot, token};
use crate::{Error, Key, Scans, Space, record};
use futures::future::{try_join, try_join_all};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// The records of a range.
pub(super) const SCAN: &str = "SELECT n, record FROM foldback_record WHERE slot = $1 AND todo = $2 AND space = $3 \
                               AND n BETWEEN $4 AND $5 ORDER BY slot, todo, space, n LIMIT $6";

type Read<T> = fn(&Row) -> Result<T, tokio_postgres::Error>;

impl Postgres {
    /// Reads the rows of one statement.
    pub(super) fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        params: Params,
        read: Read<T>,
    ) -> Result<Vec<T>, Error> {
        let params = Arc::new(params);
        self.pool.ask(move |client| -> Asked<Vec<T>> {
            let params = params.clone();
            Box::pin(async move { rows(&client, sql, &params, read).await })
        })
    }

    /// Reads records of a todo, in the order of the statement, each verified.
    pub(super) fn select(
        &self,
        sql: &'static str,
        (space, todo): (Space, u32),
        range: (i64, i64),
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let params = self.range(space, todo, range, limit);
        opened(space, todo, self.rows(sql, params, numbered)?)
    }

    /// Reads the head of a todo and the records of several ranges, which the server is asked for without waiting in
    /// between; it answers in their order.
    pub(super) fn scan_with_head(
        &self,
        todo: u32,
        ranges: &[(Space, Range<u64>)],
        limit: usize,
    ) -> Result<Scans, Error> {
        let params = |(space, range): &(Space, Range<u64>)| -> Result<Params, Error> {
            let span = Key::span(*space, todo, range)?;
            // Nothing is in this range.
            let (first, last) = span.map_or((1, 0), |span| (*span.start(), *span.end()));
            Ok(self.range(*space, todo, (first.into(), last.into()), limit))
        };
        let all: Arc<Vec<Params>> = Arc::new(ranges.iter().map(params).collect::<Result<_, _>>()?);
        let slots = self.slots;
        let asked = self.pool.ask(move |client| -> Asked<_> {
            let all = all.clone();
            Box::pin(async move {
                let head = head::read(client.clone(), slots, todo);
                let scans = all.iter().map(|params| rows(&client, SCAN, params, numbered));
                // The first to be polled is the first to be sent.
                try_join(head, try_join_all(scans)).await
            })
        })?;
        let (head, scans) = asked;
        let head = head.map_err(|detail| Error::CorruptHead { todo, detail })?;
        let found = ranges.iter().zip(scans).map(|((space, _), rows)| opened(*space, todo, rows));
        Ok(Scans { head, found: found.collect::<Result<_, _>>()? })
    }

    /// Reads the records of a todo that have these numbers, each verified, in the order of the numbers.
    pub(super) fn select_each(
        &self,
        space: Space,
        todo: u32,
        numbers: &[u64],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        // With a condition `n = ANY($4)` a server without statistics reads all of the todo's records of the kind.
        let sql = "SELECT a.n, (SELECT r.record FROM foldback_record AS r \
                   WHERE r.slot = $1 AND r.todo = $2 AND r.space = $3 AND r.n = a.n) FROM unnest($4::bigint[]) AS a (n)";
        let asked: Arc<Vec<i64>> = Arc::new(numbers.iter().map(|n| *n as i64).collect());
        let place = Place::of(self.slots, Key { space, todo, n: 0 });
        let (slot, of, kind) = (place.slot, place.todo, place.space);
        let found = self.pool.ask(move |client| -> Asked<BTreeMap<i64, Option<Vec<u8>>>> {
            let asked = asked.clone();
            Box::pin(async move {
                let params: [(&(dyn ToSql + Sync), Type); 4] = [
                    (&slot, Type::INT4),
                    (&of, Type::INT4),
                    (&kind, Type::INT2),
                    (&*asked, Type::INT8_ARRAY),
                ];
                let rows = client.query_typed(sql, &params).await?;
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
            })
        })?;
        let open = |n: &u64| {
            let key = Key { space, todo, n: *n };
            let stored = found.get(&(*n as i64)).and_then(Option::as_ref);
            let opened = stored.map(|stored| record::open(key, stored));
            opened.transpose().map_err(|detail| Error::Corrupt { key, detail })
        };
        numbers.iter().map(open).collect()
    }

    /// Returns a number that changes with each commit.
    pub(super) fn commits(&self) -> Result<u64, Error> {
        // A database that has lost commits may have as many again later: the digests differ.
        let sql = "SELECT COALESCE(CAST(SUM(number) AS BIGINT), 0), \
                   COALESCE(CAST(SUM(digest >> 32) AS BIGINT), 0) FROM foldback_slot WHERE slot BETWEEN $1 AND $2";
        let found = self.rows(sql, self.span(), |row| {
            let (number, digests): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok((number as u64) << 24 | (digests as u64 & 0xff_ffff))
        })?;
        Ok(found.first().copied().unwrap_or_default())
    }

    /// Returns half of the token of the last commit that expected a head of a todo; 0 if there was none.
    pub(super) fn last_commit(&self, todo: u32) -> Result<u64, Error> {
        let sql = "SELECT CAST(token AS TEXT) FROM foldback_head WHERE slot = $1 AND todo = $2";
        let (slot, todo) = (self.slots.of(todo), slot::number(todo));
        let params = vec![(slot.into(), Type::INT4), (todo.into(), Type::INT4)];
        let found = self.rows(sql, params, |row| row.try_get::<_, String>(0))?;
        Ok(found.first().map_or(0, |token| token::digest(token)))
    }

    /// Returns where the records of a todo are.
    pub(super) fn place(&self, space: Space, todo: u32) -> Params {
        let Place { slot, todo, space, .. } = Place::of(self.slots, Key { space, todo, n: 0 });
        vec![(slot.into(), Type::INT4), (todo.into(), Type::INT4), (space.into(), Type::INT2)]
    }

    /// Returns where a range of records is, and how many of it are wanted.
    fn range(&self, space: Space, todo: u32, (first, last): (i64, i64), limit: usize) -> Params {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut params = self.place(space, todo);
        params.extend([first, last, limit].map(|number| (number, Type::INT8)));
        params
    }

    /// Returns the first and the last slot.
    pub(super) fn span(&self) -> Params {
        let (first, last) = self.slots.range().into_inner();
        vec![(first.into(), Type::INT4), (last.into(), Type::INT4)]
    }
}

/// Reads the rows of one statement.
async fn rows<T>(
    client: &Client,
    sql: &str,
    params: &Params,
    read: Read<T>,
) -> Result<Vec<T>, tokio_postgres::Error> {
    let values: Vec<Param> =
        params.iter().map(|(value, of)| (number(*value, of), of.clone())).collect();
    let given: Vec<_> =
        values.iter().map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone())).collect();
    client.query_typed(sql, &given).await?.iter().map(read).collect()
}

/// Reads the number of a record, and the record as it is stored.
fn numbered(row: &Row) -> Result<(i64, Vec<u8>), tokio_postgres::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Returns the values of stored records, each verified.
fn opened(
    space: Space,
    todo: u32,
    rows: Vec<(i64, Vec<u8>)>,
) -> Result<Vec<(u64, Vec<u8>)>, Error> {
    let open = |(n, stored): (i64, Vec<u8>)| {
        let key = Key { space, todo, n: n as u64 };
        let value = record::open(key, &stored);
        value.map(|value| (key.n, value)).map_err(|detail| Error::Corrupt { key, detail })
    };
    rows.into_iter().map(open).collect()
}
