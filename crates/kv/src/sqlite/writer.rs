//! The one connection of a process that writes, and the turns of its writers.

use super::connection::{Access, PATIENCE};
use super::row::{id, ids, last_commit};
use super::{Sqlite, checkpoint, connection, fault, row, table};
use crate::acknowledged::{self, Acknowledged, Answers};
use crate::group::Turn;
use crate::lock::Lock;
use crate::place::Place;
use crate::witness::Link;
use crate::{Batch, Error, Expect, Key, record};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) struct Writer {
    pub(super) connection: Connection,
    /// Held while the writer waits to begin, and released as soon as it has begun. So only one
    /// process at a time asks SQLite for its write lock, a process that has just committed queues
    /// behind those that waited, and none is starved.
    pub(super) turn: Lock,
    pub(super) acknowledged: Acknowledged,
}

impl Writer {
    fn open(dir: &Path, file: &Path) -> Result<Self, Error> {
        // SQLite keeps its log for as long as a connection is open; until then another process may remove it.
        let places = vec![Place::of(file), Place::yet_to_be(connection::log_of(file))];
        let acknowledged = Acknowledged::open(dir, places);
        let connection = connection::open(file, Access::Write, PATIENCE);
        Ok(Self {
            connection: connection.map_err(|error| fault::of(dir, error))?,
            turn: Lock::open(dir)?,
            acknowledged,
        })
    }
}

impl Sqlite {
    /// Runs `work` on the writer's connection while holding this process's place in the queue for the write lock.
    pub(super) fn write<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Writer) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.access != Access::Write {
            return Err(Error::ReadOnly { path: self.dir.clone() });
        }
        let busy = || Error::Busy { path: self.dir.clone(), doing };
        let mut slot = self.writer.try_lock_for(PATIENCE).ok_or_else(busy)?;
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned { path: self.dir.clone() });
        }
        let writer = match slot.take() {
            Some(writer) => slot.insert(writer),
            None => slot.insert(Writer::open(&self.dir, &self.file)?),
        };
        if !writer.turn.take(PATIENCE, TURN_STEP)? {
            return Err(busy());
        }
        let answer = work(writer);
        // Releasing twice is harmless, and the work may have failed before it released the lock.
        writer.turn.give()?;
        answer
    }

    /// Poisons the writer if the disk, rather than a rule, refused.
    pub(super) fn refused(&self, error: rusqlite::Error, committing: bool) -> Error {
        if fault::poisons(&error, committing) {
            self.poisoned.store(true, Ordering::Release);
        }
        self.fault(error)
    }

    /// Acknowledges a durable commit.
    fn acknowledge(&self, writer: &Writer, link: Link) -> Result<(), Error> {
        writer.acknowledged.add(link).inspect_err(|_| {
            // A log that has lost its name is copied into the file, if that still has one: this saves what was
            // acknowledged before.
            let _ = checkpoint::truncate(&writer.connection);
            self.poisoned.store(true, Ordering::Release);
        })
    }

    /// Commits the batch of the thread whose turn it is, together with the batches that others submit until it has the
    /// store to itself. Returns the answer for its own.
    pub(super) fn lead(&self, turn: &mut Turn<'_, Batch, Result<(), Error>>) -> Result<(), Error> {
        self.write("others wrote", |writer| {
            self.begin(writer)?;
            let batches = turn.take();
            let mut has_begun = true;
            let answers = acknowledged::settle(
                &self.dir,
                &batches,
                || self.poisoned.load(Ordering::Acquire),
                |batches| {
                    if !std::mem::take(&mut has_begun) {
                        self.begin(writer)?;
                    }
                    self.commit_together(writer, batches)
                },
            );
            turn.answer(answers).unwrap_or_else(|| Err(self.poison()))
        })
    }

    pub(super) fn poison(&self) -> Error {
        self.poisoned.store(true, Ordering::Release);
        Error::Poisoned { path: self.dir.clone() }
    }

    /// Waits until no other process writes. From then on the next one may queue up.
    fn begin(&self, writer: &Writer) -> Result<(), Error> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(self.poison());
        }
        let connection = &writer.connection;
        self.shorten_log(connection)?;
        table::run(connection, "BEGIN IMMEDIATE", ())
            .map_err(|error| self.refused(error, false))?;
        writer.turn.give().inspect_err(|_| roll_back(connection))
    }

    /// Ends a transaction that has begun: the batches whose answer is `Ok` are durable, and the others have changed
    /// nothing.
    fn commit_together(&self, writer: &Writer, batches: &[Batch]) -> Result<Answers, Error> {
        let connection = &writer.connection;
        let has_room = self.check_room(connection, batches);
        let ended =
            has_room.and_then(|()| self.apply(writer, batches)).and_then(|(link, answers)| {
                let Some(link) = link else { return Ok((None, answers)) };
                let committed = table::run(connection, "COMMIT", ());
                committed.map(|_| (Some(link), answers)).map_err(|error| self.refused(error, true))
            });
        // A committed transaction is left as it is.
        roll_back(connection);
        let (link, answers) = ended?;
        let Some(link) = link else { return Ok(answers) };
        self.acknowledge(writer, link)?;
        self.commits.fetch_add(1, Ordering::AcqRel);
        batches.iter().for_each(|batch| self.checkpointer.committed(batch));
        // The commit is durable even if this fails; the next one asks again.
        let _ = self.shorten_log(connection);
        Ok(answers)
    }

    /// Writes the batches that find the heads that they expect. Returns the link of the last one, if there is any.
    fn apply(&self, writer: &Writer, batches: &[Batch]) -> Result<(Option<Link>, Answers), Error> {
        let connection = &writer.connection;
        foldback_core::failpoint!("kv.commit.begun");
        let refused = |error| self.refused(error, false);
        let held = writer.acknowledged.last(last_commit(connection).map_err(refused)?)?;
        let mut link = held;
        let mut answers = Vec::with_capacity(batches.len());
        for batch in batches {
            let answer = self.check_head(connection, batch)?;
            if answer.is_ok() {
                self.write_batch(connection, batch)?;
                link = link.next(batch);
            }
            answers.push(answer);
        }
        if link == held {
            return Ok((None, answers));
        }
        table::run(connection, table::HEADS.put, (table::LAST_COMMIT, link.seal()))
            .map_err(refused)?;
        foldback_core::failpoint!("kv.commit.applied");
        Ok((Some(link), answers))
    }

    /// Checks that the head is the one that the batch expects.
    fn check_head(
        &self,
        connection: &Connection,
        batch: &Batch,
    ) -> Result<Result<(), Error>, Error> {
        let Some(Expect { todo, head: expected, .. }) = batch.expect else { return Ok(Ok(())) };
        let head = row::head(connection, todo).map_err(|error| self.refused(error, false))?;
        Ok(match head {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(Error::Conflict { todo, expected, found }),
            Err(detail) => Err(Error::CorruptHead { todo, detail }),
        })
    }

    fn write_batch(&self, connection: &Connection, batch: &Batch) -> Result<(), Error> {
        let refused = |error| self.refused(error, false);
        if let Some(expect) = batch.expect {
            let Expect { todo, head, .. } = expect;
            match expect.stored() {
                None => {
                    table::run(connection, table::HEADS.delete, (todo, todo)).map_err(refused)?;
                }
                Some(next) if next == head => {}
                Some(next) => {
                    let sealed = record::seal_head(todo, next);
                    table::run(connection, table::HEADS.put, (todo, sealed)).map_err(refused)?;
                }
            }
        }
        for delete in &batch.delete {
            let Some(span) = Key::span(delete.space, delete.todo, &delete.range)? else { continue };
            if !self.has(delete.space)? {
                continue;
            }
            let (first, last) = ids(delete.todo, &span);
            let sql = table::of(delete.space).delete;
            table::run(connection, sql, (first, last)).map_err(refused)?;
        }
        for (key, value) in &batch.put {
            if !self.has(key.space)? {
                // A store keeps an earlier version only if damage prevented the upgrade.
                let detail = format!("it could not be upgraded to hold a {}", key.space);
                return Err(Error::Damaged { path: self.file.clone(), detail });
            }
            let sealed = record::seal(*key, value);
            let sql = table::of(key.space).put;
            table::run(connection, sql, (id(*key), sealed)).map_err(refused)?;
        }
        Ok(())
    }
}

/// How often a writer that is not next asks whether it is.
const TURN_STEP: Duration = Duration::from_micros(500);

pub(super) fn roll_back(connection: &Connection) {
    // After some errors SQLite has already rolled back; then there is nothing to do. If this fails,
    // it rolls back when the connection is next used or closed.
    if !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
}
