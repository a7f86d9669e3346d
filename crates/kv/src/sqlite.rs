//! The default engine: one SQLite file in WAL mode, for any number of processes.
//!
//! The engine relies on this: `synchronous=FULL` syncs the log before a commit returns; a writer
//! begins with `BEGIN IMMEDIATE`, so it never finds out half way that another was first; readers
//! see a whole commit or nothing and never wait for a writer. Inside a process one connection
//! writes, others read, and one only watches; each is opened when it is first needed.
//!
//! The database file is never opened by other means while it is in use: closing such a handle
//! would drop the locks of the whole process. The log may be (SQLite holds no locks on it).

mod check;
mod checkpoint;
mod connection;
mod erase;
mod fault;
mod identity;
mod log;
mod loss;
mod publish;
mod room;
mod row;
mod table;
mod writer;

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;

use self::checkpoint::Checkpointer;
use self::connection::{Access, PATIENCE};
use self::publish::publish;
use self::row::{blob, id, ids, low};
use self::writer::Writer;
use crate::folder::{self, SQLITE_FILE};
use crate::group::{Group, Turn, Unanswered};
use crate::{
    Batch, DAMAGED_HEAD, Engine, Error, FORMAT_VERSION, Finding, Key, Kv, Lost, Mode, Space,
};
use crate::{acknowledged, record, witness};

pub(crate) use self::identity::version_of;

/// How many idle readers' connections are kept.
const IDLE_READERS: usize = 4;

pub(crate) struct Sqlite {
    dir: PathBuf,
    file: PathBuf,
    /// How readers may open the file; `Access::Write` for a store that is open for writing.
    access: Access,
    /// The file's format version as last seen; spaces that came later are empty.
    format: AtomicU64,
    /// Batches that are committed together.
    group: Group<Batch, Result<(), Error>>,
    writer: Mutex<Option<Writer>>,
    readers: Mutex<Vec<Connection>>,
    /// A connection that never writes, so that `data_version` moves for this process too.
    watcher: Mutex<Option<Connection>>,
    commits: AtomicU64,
    poisoned: Arc<AtomicBool>,
    checkpointer: Checkpointer,
    /// The damage that the log showed before anything else looked at it. It is remembered because a
    /// later commit may write over it.
    log_at_open: Option<Finding>,
    /// For a frozen file: what was lost when it was opened.
    frozen_loss: OnceLock<Option<Lost>>,
}

impl Sqlite {
    pub(crate) fn open(dir: &Path, mode: Mode) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(crate::error::reading("find", dir))?;
        let file = dir.join(SQLITE_FILE);
        // Before any connection, which may copy the log into the file.
        let suspected = log::damage(&connection::log_of(&file));
        let has_witness = witness::is_there(&dir);
        let make_tables =
            |connection: &mut _| table::create(connection).map_err(|error| fault::of(&dir, error));
        let is_there = || {
            let detail = folder::without(SQLITE_FILE);
            if file.exists() { Ok(()) } else { Err(Error::Format { path: dir.clone(), detail }) }
        };
        let make = || publish(&dir, make_tables);
        let upgrade = || {
            is_there()?;
            let opened = connection::open(&file, Access::Write, PATIENCE);
            make_tables(&mut opened.map_err(|error| fault::of(&dir, error))?)
        };
        let format = folder::open(&dir, Engine::Sqlite, mode, make, upgrade)?;
        is_there()?;
        let access = match mode {
            Mode::ReadWrite => Access::Write,
            Mode::ReadOnly => connection::reading_access(&dir, &file)?,
        };
        let poisoned = Arc::new(AtomicBool::new(false));
        let mut store = Self {
            checkpointer: Checkpointer::new(file.clone(), poisoned.clone()),
            dir,
            file,
            access,
            format: AtomicU64::new(format),
            group: Group::new(),
            writer: Mutex::new(None),
            readers: Mutex::new(Vec::new()),
            watcher: Mutex::new(None),
            commits: AtomicU64::new(0),
            poisoned,
            log_at_open: None,
            frozen_loss: OnceLock::new(),
        };
        if format < FORMAT_VERSION {
            // The file is upgraded before the folder says so.
            if let Ok(Some(own)) = store.read(identity::version) {
                store.format.fetch_max(own, Ordering::AcqRel);
            }
        }
        store.log_at_open = store.log_at_opening(suspected, has_witness);
        if store.access == Access::Frozen {
            // If this fails now, the caller that asks for it later gets the error.
            let _ = store.find_loss();
        }
        Ok(store)
    }

    /// Opens a connection that reads. In a store that is open for writing it is opened like the
    /// writer's (the log's index must be writable to be shared) and set to refuse changes.
    fn connect(&self) -> Result<Connection, Error> {
        connection::open(&self.file, self.access, PATIENCE)
            .and_then(|connection| {
                connection.pragma_update(None, "query_only", true)?;
                Ok(connection)
            })
            .map_err(|error| self.fault(error))
    }

    /// Lends a reader's connection. Reads run in parallel with each other and with the writer.
    fn read<T>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, Error> {
        let idle = self.readers.lock().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => self.connect()?,
        };
        // A failed connection is closed rather than lent again.
        let answer = ask(&reader).map_err(|error| self.fault(error))?;
        let mut readers = self.readers.lock();
        if readers.len() < IDLE_READERS {
            readers.push(reader);
        }
        Ok(answer)
    }

    /// Returns whether the file has a table for the space. Another process may have created it meanwhile.
    fn has(&self, space: Space) -> Result<bool, Error> {
        if space.since() > self.format.load(Ordering::Acquire) {
            let now = folder::version(&self.dir, Engine::Sqlite)?;
            self.format.fetch_max(now, Ordering::AcqRel);
        }
        Ok(space.since() <= self.format.load(Ordering::Acquire))
    }

    /// Returns the records of a span, in the order of the statement, each verified.
    fn select(
        &self,
        sql: &'static str,
        (space, todo): (Space, u32),
        span: &RangeInclusive<u32>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        if !self.has(space)? {
            return Ok(Vec::new());
        }
        let (first, last) = ids(todo, span);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        // The checksum is verified on SQLite's own bytes, so a value is copied once.
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query((first, last, limit))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let n = u64::from(low(row.get(0)?));
                let key = Key { space, todo, n };
                match blob(row, 1)?.and_then(|bytes| record::open(key, bytes)) {
                    Ok(value) => found.push((n, value)),
                    Err(detail) => {
                        return Ok(Err(Error::Corrupt { key, detail }));
                    }
                }
            }
            Ok(Ok(found))
        })?
    }
}

impl Kv for Sqlite {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        if self.access != Access::Write {
            return Err(Error::ReadOnly { path: self.dir.clone() });
        }
        batch.check()?;
        if batch.is_empty() {
            return Ok(());
        }
        let lead = |turn: &mut Turn<'_, _, _>| self.lead(turn);
        self.group.submit(batch, Some(PATIENCE), lead).unwrap_or_else(|unanswered| {
            Err(match unanswered {
                Unanswered::Late => Error::Busy { path: self.dir.clone(), doing: "others wrote" },
                Unanswered::Abandoned => self.poison(),
            })
        })
    }

    fn erase(&self, batch: Batch) -> Result<(), Error> {
        // What the log holds is copied while there is room: a deletion that does not fit fills the disk at first. If
        // this is not possible, the commit fails too.
        let copied =
            |writer: &Writer| room::copy(&writer.connection).map_err(|e| self.refused(e, false));
        let _ = self.write("its log was copied", copied);
        match self.commit(batch.clone()) {
            Err(Error::Full { .. }) => self.erase_in_steps(batch),
            committed => committed,
        }
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        let head = self.read(|connection| row::head(connection, todo))?;
        head.map_err(|detail| Error::CorruptHead { todo, detail })
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        let Some(last) = todos.end.checked_sub(1).filter(|last| todos.start <= *last) else {
            return Ok(Vec::new());
        };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(table::HEADS.scan)?;
            let mut rows = statement.query((todos.start, last, i64::MAX))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let todo = low(row.get(0)?);
                let head = blob(row, 1)?.and_then(|bytes| record::open_head(todo, bytes));
                found.push((todo, head.unwrap_or(DAMAGED_HEAD)));
            }
            Ok(found)
        })
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        key.check()?;
        if !self.has(key.space)? {
            return Ok(None);
        }
        let found = self.read(|connection| {
            let mut statement = connection.prepare_cached(table::of(key.space).get)?;
            let mut rows = statement.query((id(key),))?;
            let Some(row) = rows.next()? else { return Ok(None) };
            Ok(Some(blob(row, 0)?.and_then(|bytes| record::open(key, bytes))))
        })?;
        found.transpose().map_err(|detail| Error::Corrupt { key, detail })
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &range)? else { return Ok(Vec::new()) };
        self.select(table::of(space).scan, (space, todo), &span, limit)
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &(0..Key::N_END))? else { return Ok(None) };
        Ok(self.select(table::of(space).last, (space, todo), &span, 1)?.pop())
    }

    fn changed(&self) -> Result<u64, Error> {
        // This is read first, so that a commit between the two reads shows in the next answer at the latest.
        let own = self.commits.load(Ordering::Acquire);
        let mut slot = self.watcher.lock();
        let watcher = match slot.take() {
            Some(watcher) => slot.insert(watcher),
            None => slot.insert(self.connect()?),
        };
        let version: u32 = watcher
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row((), |row| row.get(0)))
            .map_err(|error| self.fault(error))?;
        Ok(own << 32 | u64::from(version))
    }

    fn lost(&self) -> Result<Option<Lost>, Error> {
        self.find_loss()
    }

    fn accept_loss(&self) -> Result<(), Error> {
        self.witness_what_is_held()
    }

    fn compact(&self) -> Result<(), Error> {
        acknowledged::refuse(&self.dir, self.find_loss()?)?;
        self.write("space was returned", |writer| {
            let refused = |error| self.refused(error, false);
            // The log first: what was already copied out of it need not be written again.
            checkpoint::truncate(&writer.connection).map_err(refused)?;
            foldback_core::failpoint!("kv.compact.log-emptied");
            writer.connection.execute_batch("VACUUM").map_err(refused)?;
            foldback_core::failpoint!("kv.compact.done");
            if checkpoint::truncate(&writer.connection).map_err(refused)? {
                Ok(())
            } else {
                let doing = "a reader kept old pages in use";
                Err(Error::Busy { path: self.dir.clone(), doing })
            }
        })
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        let dir = std::path::absolute(dir).map_err(crate::error::reading("find", dir))?;
        let source = self.connect()?;
        folder::fill(&dir, Engine::Sqlite, || {
            publish(&dir, |target| {
                let fault = |error| fault::of(&dir, error);
                let copy = Backup::new(&source, target).map_err(fault)?;
                // All pages in one step, which gives one snapshot, however much is written meanwhile.
                match copy.step(-1).map_err(fault)? {
                    StepResult::Done => {}
                    _ => {
                        return Err(Error::Busy { path: self.dir.clone(), doing: "it was copied" });
                    }
                }
                drop(copy);
                // The copy's folder will state the present version, whatever version this store is of.
                table::create(target).map_err(fault)
            })
        })
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = self.check_log()?;
        self.check_engine(&mut findings)?;
        self.check_records(&mut findings)?;
        findings.sort();
        findings.dedup();
        Ok(findings)
    }
}

impl Drop for Sqlite {
    /// Copies the log into the file and empties it: damage to a log silently drops commits, while
    /// damage to the file is noticed. After a failed write everything is left as it is on the disk.
    fn drop(&mut self) {
        self.checkpointer.stop();
        let poisoned = self.poisoned.load(Ordering::Acquire);
        self.readers.get_mut().clear();
        *self.watcher.get_mut() = None;
        let Some(Writer { mut connection, .. }) = self.writer.get_mut().take() else { return };
        if poisoned {
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        } else if connection::set_patience(&mut connection, checkpoint::PATIENCE).is_ok() {
            // If others keep the log in use, the last of them empties it.
            let _ = checkpoint::truncate(&connection);
        }
    }
}

#[cfg(test)]
mod tests;
