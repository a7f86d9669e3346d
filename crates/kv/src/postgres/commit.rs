//! One commit: a transaction that is sent whole, and answered in one round trip.
//!
//! The statements are sent without waiting for each other's answers: `BEGIN`, with what must hold; deletions; puts; the
//! slot's counter; `COMMIT`. What does not hold is made an error by a division by zero, so the transaction is rolled
//! back whatever was sent after it. A commit has a random *token*, which is a row of its own:
//!
//! - A commit whose answer was lost is sent again with its token. If the first one was made after all, the second one
//!   fails on the token, and nothing is made twice. If the first one is still being made, the second one waits for it.
//! - A deletion, a put or a count does nothing unless the transaction itself has put the token there: its time is then
//!   that of the transaction. If `BEGIN` alone were refused, what follows it would otherwise be made piece by piece.
//!
//! Heads are compared and set in one statement, which locks their row. So the statements are right under READ COMMITTED,
//! and under anything stricter that a server may use instead. Rows are written in the order of their keys, and the
//! counter comes last: it is shared by the todos of a slot, and held for the shortest time.

use super::address::Address;
use super::connect::connect;
use super::pool::{Asked, Found};
use super::rows::{self, Place, Range, Rows};
use super::slot::Slots;
use super::{head, token};
use crate::witness::Link;
use crate::{Batch, Error, Expect, FORGOTTEN_HEAD, Key, record};
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error as ClientError, SimpleQueryMessage};

/// How long a commit may take, beside the time for its bytes. Each of its statements may wait for a lock meanwhile.
const LIMIT: Duration = Duration::from_secs(15);
/// How many bytes are sent in a second at least, and how long they may take at most.
const BYTES_A_SECOND: u64 = 256 << 10;
const MOST_SECONDS: u64 = 10 * 60;
/// A deletion that spans this many numbers or more may take any length of time.
const MANY: i64 = 1_000;

/// A batch, ready to be sent as often as needed.
pub(super) struct Draft {
    token: String,
    slot: i32,
    begin: String,
    /// A record that must still have the value that the batch was built on.
    held: Option<(Place, Vec<u8>)>,
    deletes: Vec<Range>,
    puts: Vec<Rows>,
    /// The last commit of the slot that this store knows was acknowledged.
    known: Link,
    digest: u64,
    limit: Duration,
}

/// The outcome of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is durable, and this is the last commit of its slot, or was when it was made.
    Made(Link),
    /// The head is not the expected one.
    Moved,
    /// The record that it depends on has changed.
    Changed,
    /// The slot does not hold the last commit that was acknowledged.
    Lost,
    /// Nothing was made, because the row of its token is not there.
    NotCounted,
}

/// Selects a row if the server has been working on a commit for a while.
const BUSY: &str = "ROLLBACK; SELECT 1 FROM pg_stat_activity AS of JOIN pg_locks AS held ON held.pid = of.pid \
     WHERE of.state = 'active' AND of.pid <> pg_backend_pid() AND held.granted \
     AND held.relation = 'foldback_commit'::regclass AND held.mode = 'RowExclusiveLock' \
     AND of.xact_start < clock_timestamp() - INTERVAL '5 seconds' LIMIT 1";

impl Draft {
    /// Builds the statements of a batch, which was checked and is not empty. `known` is asked for the slot's last
    /// acknowledged commit.
    pub(super) fn of(
        slots: Slots,
        batch: &Batch,
        held: Option<(Key, Vec<u8>)>,
        known: impl FnOnce(i32) -> Link,
    ) -> Result<Self, Error> {
        let first = batch.expect.map(|expect| expect.todo);
        let first = first.or_else(|| batch.put.first().map(|(key, _)| key.todo));
        let first = first.or_else(|| batch.delete.first().map(|delete| delete.todo));
        let slot = slots.of(first.unwrap_or_default());
        let token = token::random_id();
        // Half of the token is a digest that no other commit has.
        let digest = token::digest(&token);
        let mut begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'; \
             INSERT INTO foldback_commit (slot, token) VALUES ({slot}, '{token}')"
        );
        if let Some(expect) = batch.expect {
            expect_head(&mut begin, slots, expect, &token);
        }
        let mut deletes = batch
            .delete
            .iter()
            .filter_map(|d| rows::range(slots, d).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        deletes.sort_by_key(|range| (range.slot, range.todo, range.space, range.first));
        let bytes: u64 = batch.put.iter().map(|(_, value)| value.len() as u64).sum();
        let limit = LIMIT + Duration::from_secs((bytes / BYTES_A_SECOND).min(MOST_SECONDS));
        let (puts, known) = (rows::rows(slots, &batch.put), known(slot));
        let held = held.map(|(key, value)| (Place::of(slots, key), record::seal(key, &value)));
        Ok(Self { token, slot, begin, held, deletes, puts, known, digest, limit })
    }

    /// Returns how long the server may take for it. After that, unless it [is being made](Self::is_being_made), the commit
    /// is sent again: the server may be hanging, and another one may know what came of it.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns whether the server is still making an earlier try: asked on another connection, only that try can have
    /// the lock of its token. A commit that deletes little is taken for lost instead, because a server that has not been
    /// sent the whole of it has the lock, too.
    pub(super) fn is_being_made(self: &Arc<Self>, address: Arc<Address>) -> Found {
        let draft = self.clone();
        Box::pin(async move {
            if draft.deletes.iter().all(|range| range.last - range.first < MANY) {
                return false;
            }
            let Ok(session) = connect(&address, || {}).await else { return false };
            let Self { slot, token, .. } = &*draft;
            let sql = format!(
                "BEGIN; SET LOCAL lock_timeout = '1s'; \
                 INSERT INTO foldback_commit (slot, token) VALUES ({slot}, '{token}'); ROLLBACK"
            );
            let is_busy = async {
                let held = session.client.batch_execute(&sql).await.err()?;
                if held.code() != Some(&SqlState::LOCK_NOT_AVAILABLE) {
                    return None;
                }
                // A server that was not sent the rest has the lock, too, and waits for its client.
                let rows = session.client.simple_query(BUSY).await.ok()?;
                rows.iter().any(|row| matches!(row, SimpleQueryMessage::Row(_))).then_some(())
            };
            matches!(tokio::time::timeout(address.limit, is_busy).await, Ok(Some(())))
        })
    }

    pub(super) fn slot(&self) -> i32 {
        self.slot
    }

    /// Sends the commit.
    pub(super) fn send(self: &Arc<Self>, client: Arc<Client>) -> Asked<Outcome> {
        let draft = self.clone();
        Box::pin(async move {
            let sent = draft.statements(&client).await;
            match draft.outcome(sent)? {
                Some(outcome) => Ok(outcome),
                None => draft.confirm(&client).await,
            }
        })
    }

    /// Sends all statements, and returns the answer to each.
    async fn statements(&self, client: &Client) -> Vec<(Step, Result<Option<i64>, ClientError>)> {
        let mut steps: Vec<(Step, Sent<'_>)> = vec![(Step::Begin, simple(client, &self.begin))];
        if let Some((place, record)) = &self.held {
            steps.push((Step::Held, Box::pin(held(client, place, record))));
        }
        for range in &self.deletes {
            steps.push((Step::Write, Box::pin(self.delete(client, range))));
        }
        for rows in &self.puts {
            steps.push((Step::Write, Box::pin(self.put(client, rows))));
        }
        steps.push((Step::Count, Box::pin(self.count(client))));
        steps.push((Step::Commit, simple(client, "COMMIT")));
        in_order(steps).await
    }

    /// Returns the outcome of a commit, judged by the answers to its statements. `None` if an earlier try has made it.
    fn outcome(
        &self,
        answers: Vec<(Step, Result<Option<i64>, ClientError>)>,
    ) -> Result<Option<Outcome>, ClientError> {
        let mut number = None;
        for (step, answer) in answers {
            match answer {
                Ok(Some(found)) if step == Step::Count => number = u64::try_from(found).ok(),
                Ok(_) => {}
                // The statements after the first that failed fail because of it.
                Err(error) => {
                    return match (step, error.code()) {
                        (Step::Begin, Some(&SqlState::UNIQUE_VIOLATION)) => Ok(None),
                        (Step::Begin, Some(&SqlState::DIVISION_BY_ZERO)) => {
                            Ok(Some(Outcome::Moved))
                        }
                        (Step::Held, Some(&SqlState::DIVISION_BY_ZERO)) => {
                            Ok(Some(Outcome::Changed))
                        }
                        (Step::Count, Some(&SqlState::NOT_NULL_VIOLATION)) => {
                            Ok(Some(Outcome::Lost))
                        }
                        (Step::Count, Some(&SqlState::DIVISION_BY_ZERO)) => {
                            Ok(Some(Outcome::NotCounted))
                        }
                        _ => Err(error),
                    };
                }
            }
        }
        let made = |number| Outcome::Made(Link::new(number, self.digest));
        Ok(Some(number.map_or(Outcome::NotCounted, made)))
    }

    /// Makes a commit durable whose answer was lost. It is in the database, but a standby that must have it may not: the
    /// server that answered may have been started again since. A commit after it is only answered once both are there.
    async fn confirm(&self, client: &Client) -> Result<Outcome, ClientError> {
        let sql = concat!(
            "WITH c AS (UPDATE foldback_commit SET made = now() WHERE slot = $1 AND token = $2::text::uuid) ",
            "SELECT number, digest FROM foldback_slot WHERE slot = $1"
        );
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.slot, Type::INT4), (&self.token, Type::TEXT)];
        let rows = client.query_typed(sql, &params).await?;
        let Some(row) = rows.first() else { return Ok(Outcome::NotCounted) };
        let (number, digest): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Outcome::Made(Link::new(number as u64, digest as u64)))
    }

    async fn delete(&self, client: &Client, range: &Range) -> Result<Option<i64>, ClientError> {
        let sql = concat!(
            "DELETE FROM foldback_record WHERE slot = $1 AND todo = $2 AND space = $3 AND n BETWEEN $4 AND $5 ",
            "AND EXISTS (SELECT 1 FROM foldback_commit AS c WHERE c.slot = $6 AND c.token = $7::text::uuid ",
            "AND c.made = now())"
        );
        let Range { slot, todo, space, first, last } = range;
        let params: [(&(dyn ToSql + Sync), Type); 7] = [
            (slot, Type::INT4),
            (todo, Type::INT4),
            (space, Type::INT2),
            (first, Type::INT8),
            (last, Type::INT8),
            (&self.slot, Type::INT4),
            (&self.token, Type::TEXT),
        ];
        client.execute_typed(sql, &params).await.map(|_| None)
    }

    async fn put(&self, client: &Client, rows: &Rows) -> Result<Option<i64>, ClientError> {
        let sql = concat!(
            "INSERT INTO foldback_record (slot, todo, space, n, record) ",
            "SELECT p.slot, p.todo, p.space, p.n, p.record ",
            "FROM unnest($1::integer[], $2::integer[], $3::smallint[], $4::bigint[], $5::bytea[]) ",
            "AS p (slot, todo, space, n, record) ",
            "WHERE EXISTS (SELECT 1 FROM foldback_commit AS c WHERE c.slot = $6 AND c.token = $7::text::uuid ",
            "AND c.made = now()) ",
            "ON CONFLICT (slot, todo, space, n) DO UPDATE SET record = excluded.record"
        );
        let params: [(&(dyn ToSql + Sync), Type); 7] = [
            (&rows.slots, Type::INT4_ARRAY),
            (&rows.todos, Type::INT4_ARRAY),
            (&rows.spaces, Type::INT2_ARRAY),
            (&rows.numbers, Type::INT8_ARRAY),
            (&rows.records, Type::BYTEA_ARRAY),
            (&self.slot, Type::INT4),
            (&self.token, Type::TEXT),
        ];
        client.execute_typed(sql, &params).await.map(|_| None)
    }

    /// Counts the commit. A slot that has lost an acknowledged commit, or all of them, is not counted on: its number
    /// becomes null, which the table refuses. Without the token, a division by zero ends the transaction.
    async fn count(&self, client: &Client) -> Result<Option<i64>, ClientError> {
        let sql = concat!(
            "INSERT INTO foldback_slot AS s (slot, number, digest) SELECT $1, ",
            "CASE WHEN $4 < 0 OR EXISTS (SELECT 1 FROM foldback_slot AS o WHERE o.slot = $1) THEN 1 END ",
            "/ (SELECT count(*) FROM foldback_commit AS c WHERE c.slot = $1 AND c.token = $3::text::uuid ",
            "AND c.made = now()), $2 ",
            "ON CONFLICT (slot) DO UPDATE SET digest = excluded.digest, number = CASE ",
            "WHEN s.number > $4 OR (s.number = $4 AND s.digest = $5) THEN s.number + 1 END ",
            "RETURNING number"
        );
        let (digest, known) = (self.digest as i64, self.known);
        let (number, known_digest) = if known == Link::default() {
            (-1, 0)
        } else {
            (known.number as i64, known.digest() as i64)
        };
        let params: [(&(dyn ToSql + Sync), Type); 5] = [
            (&self.slot, Type::INT4),
            (&digest, Type::INT8),
            (&self.token, Type::TEXT),
            (&number, Type::INT8),
            (&known_digest, Type::INT8),
        ];
        let rows = client.query_typed(sql, &params).await?;
        rows.first().map(|row| row.try_get(0)).transpose()
    }
}

/// Which part of a commit a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Held,
    Write,
    Count,
    Commit,
}

/// A statement that is being sent, with a number if it returns one.
type Sent<'a> = Pin<Box<dyn Future<Output = Result<Option<i64>, ClientError>> + Send + 'a>>;

fn simple<'a>(client: &'a Client, sql: &'a str) -> Sent<'a> {
    Box::pin(async move { client.batch_execute(sql).await.map(|()| None) })
}

/// Locks a record, and fails unless it has this value.
async fn held(
    client: &Client,
    place: &Place,
    record: &Vec<u8>,
) -> Result<Option<i64>, ClientError> {
    let sql = concat!(
        "SELECT 1 / count(*) FROM (SELECT 1 FROM foldback_record WHERE slot = $1 AND todo = $2 AND space = $3 ",
        "AND n = $4 AND record = $5 FOR UPDATE) AS held"
    );
    let params: [(&(dyn ToSql + Sync), Type); 5] = [
        (&place.slot, Type::INT4),
        (&place.todo, Type::INT4),
        (&place.space, Type::INT2),
        (&place.n, Type::INT8),
        (record, Type::BYTEA),
    ];
    client.query_typed(sql, &params).await.map(|_| None)
}

/// A statement that is being sent, and what it will answer.
type Begun<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Waits for all, which are begun in their order. (The client sends what is asked when it is first looked at.)
async fn in_order<T>(steps: Vec<(Step, Begun<'_, T>)>) -> Vec<(Step, T)> {
    let mut waiting: Vec<_> =
        steps.into_iter().map(|(step, sent)| (step, Some(sent), None)).collect();
    future::poll_fn(|context| {
        let mut are_all_done = true;
        for (_, sent, answer) in &mut waiting {
            let Some(asked) = sent else { continue };
            match asked.as_mut().poll(context) {
                Poll::Ready(found) => (*sent, *answer) = (None, Some(found)),
                Poll::Pending => are_all_done = false,
            }
        }
        if are_all_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(step, _, answer)| Some((step, answer?))).collect()
}

/// Adds the comparison of a head with the expected one, and its change. A head that is removed keeps its row, as 0 or as
/// forgotten: a writer that comes second must find the row that the first one locked.
fn expect_head(sql: &mut String, slots: Slots, expect: Expect, token: &str) {
    use std::fmt::Write as _;
    let Expect { todo, head, next } = expect;
    let (slot, forgotten) = (slots.of(todo), FORGOTTEN_HEAD as i64);
    let (now, checksum) = (next as i64, head::checksum(todo, next));
    let was = match head {
        0 => "(0)".to_owned(),
        FORGOTTEN_HEAD => format!("(0, {forgotten})"),
        head => format!("({})", head as i64),
    };
    // Writing to a string never fails.
    let _ = match head {
        0 | FORGOTTEN_HEAD => write!(
            sql,
            "; INSERT INTO foldback_head AS h (slot, todo, head, checksum, token) \
             VALUES ({slot}, {todo}, {now}, {checksum}, '{token}') ON CONFLICT (slot, todo) DO UPDATE \
             SET head = excluded.head, checksum = excluded.checksum, token = excluded.token WHERE h.head IN {was}"
        ),
        _ => write!(
            sql,
            "; UPDATE foldback_head SET head = {now}, checksum = {checksum}, token = '{token}' \
             WHERE slot = {slot} AND todo = {todo} AND head IN {was} AND checksum = {}",
            head::checksum(todo, head)
        ),
    };
    let _ = write!(
        sql,
        "; SELECT 1 / count(*) FROM foldback_head WHERE slot = {slot} AND todo = {todo} AND token = '{token}'"
    );
    let _ = match head {
        0 if todo != 0 => write!(sql, " AND {}", head::is_not_forgotten(slots, todo)),
        FORGOTTEN_HEAD if todo != 0 => {
            write!(sql, " AND NOT {}", head::is_not_forgotten(slots, todo))
        }
        // The registry itself is never forgotten.
        FORGOTTEN_HEAD => write!(sql, " AND FALSE"),
        _ => Ok(()),
    };
}
