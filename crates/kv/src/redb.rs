//! The second engine: one redb file, for one writing process at a time.
//!
//! Records and heads are in one table, under the keys of `ordered`. A commit is one transaction of redb,
//! durable with one sync; the head is compared inside it. Readers see the last commit and wait for nobody.
//!
//! The file that redb uses has our own format (`blocks`): each page carries a checksum that is verified on
//! each read. A store that is opened for reading is never written: what redb would write, such as its repair
//! after a crash, is kept in memory. redb leaves deleted data in its free pages, so compacting writes a new
//! file and puts it in the old one's place.

mod blocks;
mod changes;
mod check;
mod database;
mod overlay;

use std::fs;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ::redb::{Database, ReadableDatabase};
use parking_lot::{Mutex, RwLock};

use crate::acknowledged::{Acknowledged, Held};
use crate::error::{reading, writing};
use crate::folder::{self, REDB_FILE};
use crate::group::{Group, Turn};
use crate::lock::Lock;
use crate::place::Place;
use crate::{Batch, Engine, Error, Finding, Key, Kv, Lost, Mode, Space};
use crate::{acknowledged, ordered, record};
pub(crate) use blocks::are_in as is_store;
use changes::{Written, change, head_in, last_commit};
use database::{RECORDS, Records, close, connect, copy, create, guarded, remove};

/// The file that a compaction writes, until it is renamed into the place of the old one.
const NEW_FILE: &str = "store.redb.new";

pub(crate) struct Redb {
    dir: PathBuf,
    file: PathBuf,
    /// Empty only after it was closed permanently, by a failure that left nothing to open.
    database: RwLock<Option<Database>>,
    /// How often it was opened again. Changed while nobody reads.
    openings: AtomicU64,
    /// Batches that are committed together.
    group: Group<Batch, Result<(), Error>>,
    /// Writers take turns, and so does anything that excludes writers.
    turn: Mutex<()>,
    commits: AtomicU64,
    poisoned: AtomicBool,
    /// `None` for a store that is only read.
    acknowledged: Option<Acknowledged>,
    /// Released after the database is closed: fields are dropped in their order.
    _lock: Option<Lock>,
}

impl Redb {
    pub(crate) fn open(dir: &Path, mode: Mode) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(reading("find", dir))?;
        let file = dir.join(REDB_FILE);
        // One table holds all spaces, so a later format adds nothing to it.
        folder::open(&dir, Engine::Redb, mode, || create(&file).map(drop), || Ok(()))?;
        let lock = Lock::hold(&dir, mode)?;
        if !file.exists() {
            let detail = folder::without(REDB_FILE);
            return Err(Error::Format { path: dir, detail });
        }
        if mode == Mode::ReadWrite {
            remove(&dir.join(NEW_FILE))?;
        }
        let acknowledged =
            (mode == Mode::ReadWrite).then(|| Acknowledged::open(&dir, vec![Place::of(&file)]));
        let database = connect(&file, mode)?;
        Ok(Self {
            dir,
            file,
            database: RwLock::new(Some(database)),
            openings: AtomicU64::new(0),
            group: Group::new(),
            turn: Mutex::new(()),
            commits: AtomicU64::new(0),
            poisoned: AtomicBool::new(false),
            acknowledged,
            _lock: lock,
        })
    }

    /// Reads the records as the last commit left them.
    fn read<T>(&self, ask: impl Fn(&Records) -> Result<T, ::redb::Error>) -> Result<T, Error> {
        let look = || {
            let slot = self.database.read();
            let opening = self.openings.load(Ordering::Acquire);
            let Some(database) = slot.as_ref() else { return (opening, Err(self.poison())) };
            let found = guarded(&self.file, || ask(&database.begin_read()?.open_table(RECORDS)?));
            (opening, found)
        };
        match look() {
            // redb answers nothing after a disk error, which may have been temporary.
            (opening, Err(Error::Poisoned { .. })) => {
                self.reopen_to_read(opening)?;
                look().1
            }
            (_, answer) => answer,
        }
    }

    /// Opens the database again, to read it only, unless that was done since the opening that failed: a writer that met a
    /// full disk opens it again itself, and goes on writing.
    fn reopen_to_read(&self, failed: u64) -> Result<(), Error> {
        let mut slot = self.database.write();
        if self.openings.load(Ordering::Acquire) != failed {
            return Ok(());
        }
        self.poisoned.store(true, Ordering::Release);
        self.connect_again(&mut slot, Mode::ReadOnly)
    }

    /// Closes the database and opens it again as it is on the disk.
    fn connect_again(&self, slot: &mut Option<Database>, mode: Mode) -> Result<(), Error> {
        // Never a database of another process.
        self.acknowledged.as_ref().map_or(Ok(()), Acknowledged::find_places)?;
        // Closed before it is opened again.
        if let Some(database) = slot.take() {
            close(database);
        }
        *slot = Some(connect(&self.file, mode)?);
        self.openings.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Opens the database again after a commit for which the disk was too full. Nothing of it is durable: the header is
    /// written last. Readers whose reading failed meanwhile may have closed it for writing.
    fn reopen_to_write(&self) -> Result<(), Error> {
        let mut slot = self.database.write();
        self.connect_again(&mut slot, Mode::ReadWrite).inspect_err(|_| drop(self.poison()))?;
        self.poisoned.store(false, Ordering::Release);
        Ok(())
    }

    /// Returns a writer's knowledge of earlier commits, if writing is allowed.
    fn writable(&self) -> Result<&Acknowledged, Error> {
        match &self.acknowledged {
            None => Err(Error::ReadOnly { path: self.dir.clone() }),
            Some(_) if self.poisoned.load(Ordering::Acquire) => Err(self.poison()),
            Some(acknowledged) => Ok(acknowledged),
        }
    }

    fn poison(&self) -> Error {
        self.poisoned.store(true, Ordering::Release);
        Error::Poisoned { path: self.dir.clone() }
    }

    fn held(&self) -> Result<Held, Error> {
        self.read(last_commit)
    }

    /// Commits the batch of the thread whose turn it is, together with those that others submitted meanwhile. Returns
    /// the answer for its own.
    fn lead(&self, turn: &mut Turn<'_, Batch, Result<(), Error>>) -> Result<(), Error> {
        let _turn = self.turn.lock();
        self.writable()?;
        let is_poisoned = || self.poisoned.load(Ordering::Acquire);
        let answers = acknowledged::settle(&self.dir, &turn.take(), is_poisoned, |batches| {
            let acknowledged = self.writable()?;
            let (link, answers) = self.write(acknowledged, batches)?;
            if let Some(link) = link {
                acknowledged.add(link).inspect_err(|_| drop(self.poison()))?;
                self.commits.fetch_add(1, Ordering::AcqRel);
            }
            Ok(answers)
        });
        turn.answer(answers).unwrap_or_else(|| Err(self.poison()))
    }

    fn write(&self, acknowledged: &Acknowledged, batches: &[Batch]) -> Result<Written, Error> {
        let written = {
            let slot = self.database.read();
            // A reader may have opened it again by now, to read it only: that would be written to memory alone.
            self.writable()?;
            let database = slot.as_ref().ok_or_else(|| self.poison())?;
            guarded(&self.file, || {
                let transaction = database.begin_write()?;
                let mut records = transaction.open_table(RECORDS)?;
                let changed = change(&mut records, acknowledged, batches)?;
                drop(records);
                // Without a commit the transaction is undone.
                if matches!(changed, Ok((Some(_), _))) {
                    transaction.commit()?;
                }
                Ok(changed)
            })
        };
        match written {
            Ok(changed) => changed,
            Err(full @ Error::Full { .. }) => {
                self.reopen_to_write()?;
                Err(full)
            }
            Err(damaged @ Error::Damaged { .. }) => Err(damaged),
            Err(error) => {
                self.poison();
                Err(error)
            }
        }
    }

    fn select<T>(
        &self,
        (space, todo): (Space, u32),
        span: &RangeInclusive<u32>,
        pick: impl Fn(::redb::Range<'static, &'static ordered::Bytes, &'static [u8]>) -> T,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error>
    where
        T: Iterator<Item = Found>,
    {
        let range = ordered::span(space, todo, span);
        self.read(|records| {
            let mut found = Vec::new();
            for item in pick(records.range::<&ordered::Bytes>(range.start()..=range.end())?) {
                let (key, stored) = item?;
                match ordered::open(space, todo, key.value(), stored.value()) {
                    Ok(record) => found.push(record),
                    Err(error) => return Ok(Err(error)),
                }
            }
            Ok(Ok(found))
        })?
    }
}

type Access<V> = ::redb::AccessGuard<'static, V>;
type Found = Result<(Access<&'static ordered::Bytes>, Access<&'static [u8]>), ::redb::StorageError>;

impl Kv for Redb {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.writable()?;
        batch.check()?;
        if batch.is_empty() {
            return Ok(());
        }
        self.group
            .submit(batch, None, |turn| self.lead(turn))
            .unwrap_or_else(|_| Err(self.poison()))
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        self.read(|records| head_in(records, todo))?
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        if todos.is_empty() {
            return Ok(Vec::new());
        }
        let (first, end) = (ordered::head(todos.start), ordered::head(todos.end));
        self.read(|records| {
            let mut found = Vec::new();
            for item in records.range::<&ordered::Bytes>(&first..&end)? {
                let (key, stored) = item?;
                found.extend(ordered::open_head(key.value(), stored.value()));
            }
            Ok(found)
        })
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        key.check()?;
        let found = self.read(|records| {
            let stored = records.get(&ordered::of(key))?;
            Ok(stored.map(|stored| record::open(key, stored.value())))
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
        self.select((space, todo), &span, |found| found.take(limit))
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &(0..Key::N_END))? else { return Ok(None) };
        Ok(self.select((space, todo), &span, |found| found.rev().take(1))?.pop())
    }

    fn changed(&self) -> Result<u64, Error> {
        // One process at a time: no other can have written.
        Ok(self.commits.load(Ordering::Acquire))
    }

    fn lost(&self) -> Result<Option<Lost>, Error> {
        acknowledged::find_loss(&self.dir, || self.held())
    }

    fn accept_loss(&self) -> Result<(), Error> {
        self.writable()?;
        let _turn = self.turn.lock();
        self.writable()?.find_places()?;
        acknowledged::accept_loss(&self.dir, self.held()?)
    }

    fn compact(&self) -> Result<(), Error> {
        self.writable()?;
        let _turn = self.turn.lock();
        let acknowledged = self.writable()?;
        acknowledged::refuse(&self.dir, self.lost()?)?;
        acknowledged.find_places()?;
        let new = self.dir.join(NEW_FILE);
        let copied = self.read(|records| Ok(copy(records, &self.file, &new)))?;
        copied.inspect_err(|_| drop(fs::remove_file(&new)))?;
        // From here on readers wait.
        let mut slot = self.database.write();
        if let Some(database) = slot.take() {
            close(database);
        }
        let moved = fs::rename(&new, &self.file)
            .map_err(writing("rename", &new))
            .and_then(|()| folder::sync(&self.dir));
        acknowledged.renew_places();
        *slot = Some(connect(&self.file, Mode::ReadWrite).inspect_err(|_| drop(self.poison()))?);
        self.openings.fetch_add(1, Ordering::AcqRel);
        moved
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        let dir = std::path::absolute(dir).map_err(reading("find", dir))?;
        folder::fill(&dir, Engine::Redb, || {
            self.read(|records| Ok(copy(records, &self.file, &dir.join(REDB_FILE))))??;
            folder::sync(&dir)
        })
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        // Without writers, memory and disk hold the same.
        let _turn = self.turn.lock();
        let mut findings = self.read(|records| Ok(check::judge(records)))?;
        findings.extend(self.read(|records| Ok(check::compare(records, &self.file)))??);
        findings.extend(self.lost()?.map(Finding::Lost));
        findings.sort();
        findings.dedup();
        Ok(findings)
    }
}

impl Drop for Redb {
    fn drop(&mut self) {
        if let Some(database) = self.database.get_mut().take() {
            close(database);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(n: u64) -> Batch {
        let key = Key { space: Space::Message, todo: 1, n };
        Batch { put: vec![(key, b"kept".to_vec())], ..Batch::default() }
    }

    /// R3: a reading that fails while a writer meets a full disk does not end writing, whichever of the two opens the
    /// database again first.
    #[test]
    fn r3_a_reader_beside_a_full_disk_does_not_end_writing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Redb::open(dir.path(), Mode::ReadWrite).unwrap();
        store.commit(put(0)).unwrap();
        let failed = store.openings.load(Ordering::Acquire);
        store.reopen_to_write().unwrap();
        store.reopen_to_read(failed).unwrap();
        store.commit(put(1)).unwrap();
        let failed = store.openings.load(Ordering::Acquire);
        store.reopen_to_read(failed).unwrap();
        assert!(matches!(store.commit(put(2)), Err(Error::Poisoned { .. })));
        store.reopen_to_write().unwrap();
        store.commit(put(2)).unwrap();
        assert_eq!(store.scan(Space::Message, 1, 0..9, 9).unwrap().len(), 3);
    }
}
