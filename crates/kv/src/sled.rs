//! The third engine: a sled folder, for one process at a time, kept for existing sled stores.
//!
//! Records and heads are in one tree, under the keys of `ordered`. sled acknowledges nothing by itself:
//! every commit ends with our own flush and sync, and readers wait until it is durable, so that nothing
//! is seen that a crash could undo. It keeps deleted data in its segments, so compacting writes a new
//! database and puts it in the old one's place.
//!
//! It repairs a database whenever it opens one, and takes a failed read for the end of its log, which it then
//! overwrites. So it never opens a folder that has no copy (`copies`), and every commit records how much there is
//! (`contents`). Damage that looks like the end of the log still loses whole commits at the end: the witness shows
//! that, and until the loss is accepted the store is read from a copy. A write that the disk refuses may leave a commit
//! waiting forever. sled refuses much else by panicking, which becomes [`Error::Damaged`] here.

mod compaction;
mod contents;
mod copies;
mod database;

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Bound, Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::acknowledged::{Acknowledged, Held};
use crate::error::{reading, writing};
use crate::folder::{self, SLED_FOLDER};
use crate::lock::Lock;
use crate::place::Place;
use crate::{Batch, Engine, Error, Expect, Finding, Key, Kv, Lost, Mode, Space};
use crate::{DAMAGED_HEAD, acknowledged, missing_head, ordered, record};
use compaction::{NEW_FOLDER, OLD_FOLDER, mend, remove};
use copies::{Missing, PrivateCopy, connect_for_reading, connect_for_writing, connect_whole};
use database::{Database, connect, guarded, until_closed};

/// How many records a check reads before it lets writers in.
const CHECK_STEP: usize = 1000;

pub(crate) struct Sled {
    dir: PathBuf,
    /// Readers share it; a commit has exclusive use of it until it is durable. Empty only when a
    /// compaction could not open what it had written.
    database: RwLock<Option<Database>>,
    /// Writers take turns: the head is compared and changed under it.
    turn: Mutex<()>,
    commits: AtomicU64,
    poisoned: AtomicBool,
    /// `None` for a store that is only read.
    acknowledged: Option<Acknowledged>,
    /// The copy that is read in place of a store that is only read, or that has lost commits. Removed after the
    /// database is closed: fields are dropped in their order.
    copy: Mutex<Option<PrivateCopy>>,
    /// Released after the database is closed.
    _lock: Option<Lock>,
}

impl Sled {
    pub(crate) fn open(dir: &Path, mode: Mode) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(reading("find", dir))?;
        let make = || {
            // sled creates its files when it opens; the remains of an earlier attempt are not trusted.
            remove(&dir.join(SLED_FOLDER))?;
            let database = connect(&dir.join(SLED_FOLDER))?;
            let begun = guarded(&dir, || database.apply(BTreeMap::new()));
            database.close();
            begun
        };
        // One tree holds all spaces, so a later format adds nothing to it.
        folder::open(&dir, Engine::Sled, mode, make, || Ok(()))?;
        let lock = Lock::hold(&dir, mode)?;
        let writing = (mode == Mode::ReadWrite).then(|| {
            mend(&dir)?;
            connect_for_writing(&dir, Missing::IsRefused)
        });
        let (database, copy) = match writing {
            Some(Ok(database)) => (database, None),
            Some(Err(error)) if !matches!(error, Error::Lost { .. }) => return Err(error),
            // The remains of lost commits stay as they are until the loss is accepted.
            _ => connect_for_reading(&dir).map(|(database, copy)| (database, Some(copy)))?,
        };
        let acknowledged = (mode == Mode::ReadWrite)
            .then(|| Acknowledged::open(&dir, vec![Place::of(&log(&dir))]));
        Ok(Self {
            dir,
            database: RwLock::new(Some(database)),
            turn: Mutex::new(()),
            commits: AtomicU64::new(0),
            poisoned: AtomicBool::new(false),
            acknowledged,
            copy: Mutex::new(copy),
            _lock: lock,
        })
    }

    fn read<T>(
        &self,
        ask: impl FnOnce(&::sled::Db) -> Result<T, ::sled::Error>,
    ) -> Result<T, Error> {
        let slot = self.database.read();
        let database = slot.as_ref().ok_or_else(|| self.poison())?;
        guarded(&self.dir, || ask(&database.sled))
    }

    /// Applies a batch and makes it durable before anything reads it.
    fn write(&self, changes: BTreeMap<ordered::Bytes, Option<Vec<u8>>>) -> Result<(), Error> {
        let slot = self.database.write();
        let database = slot.as_ref().ok_or_else(|| self.poison())?;
        guarded(&self.dir, || database.apply(changes))
    }

    /// Returns a writer's knowledge of earlier commits, if writing is allowed.
    fn writable(&self) -> Result<&Acknowledged, Error> {
        match &self.acknowledged {
            None => Err(Error::ReadOnly { path: self.dir.clone() }),
            Some(_) if self.poisoned.load(Ordering::Acquire) => Err(self.poison()),
            Some(acknowledged) => Ok(acknowledged),
        }
    }

    /// Checks that it is the store itself that is open.
    fn is_own(&self) -> Result<(), Error> {
        // A copy that lacks nothing is refused too: a later opening read what the first one did not.
        if self.copy.lock().is_some() { Err(self.poison()) } else { Ok(()) }
    }

    fn held(&self) -> Result<Held, Error> {
        self.read(last_commit)
    }

    fn poison(&self) -> Error {
        self.poisoned.store(true, Ordering::Release);
        Error::Poisoned { path: self.dir.clone() }
    }

    fn records(
        &self,
        space: Space,
        todo: u32,
        span: &RangeInclusive<u32>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.read(|database| {
            let mut found = Vec::new();
            for item in database.range(ordered::span(space, todo, span)).take(limit) {
                let (key, stored) = item?;
                match ordered::open(space, todo, &key, &stored) {
                    Ok(record) => found.push(record),
                    Err(error) => return Ok(Err(error)),
                }
            }
            Ok(Ok(found))
        })?
    }
}

impl Kv for Sled {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.writable()?;
        batch.check()?;
        if batch.is_empty() {
            return Ok(());
        }
        let _turn = self.turn.lock();
        let acknowledged = self.writable()?;
        let link = acknowledged.last(self.held()?)?.next(&batch);
        self.is_own()?;
        let mut changes = BTreeMap::from([(ordered::LINK, Some(link.seal()))]);
        if let Some(expect) = batch.expect {
            let Expect { todo, head: expected, .. } = expect;
            let found = self.head(todo)?;
            if found != expected {
                return Err(Error::Conflict { todo, expected, found });
            }
            let stored = expect.stored().map(|next| record::seal_head(todo, next));
            changes.insert(ordered::head(todo), stored);
        }
        for delete in &batch.delete {
            let Some(span) = Key::span(delete.space, delete.todo, &delete.range)? else { continue };
            let range = ordered::span(delete.space, delete.todo, &span);
            let gone: Vec<::sled::IVec> =
                self.read(|database| database.range(range).keys().collect())?;
            let gone = gone.iter().filter_map(|key| ordered::Bytes::try_from(&**key).ok());
            changes.extend(gone.map(|key| (key, None)));
        }
        for (key, value) in &batch.put {
            changes.insert(ordered::of(*key), Some(record::seal(*key, value)));
        }
        foldback_core::failpoint!("kv.commit.applied");
        // sled finds some of its files by their names. Past this point the disk may hold some of the batch.
        let written = acknowledged.find_places().and_then(|()| self.write(changes));
        let written = written.or_else(|error| acknowledged.find_places().and(Err(error)));
        written.and_then(|()| acknowledged.add(link)).inspect_err(|_| drop(self.poison()))?;
        self.commits.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        let stored = |todo| {
            let stored = self.read(|database| database.get(ordered::head(todo)))?;
            Ok::<_, Error>(stored.map(|stored| record::open_head(todo, &stored)))
        };
        if let Some(head) = stored(todo)? {
            return head.map_err(|detail| Error::CorruptHead { todo, detail });
        }
        let head = |todo| Ok(stored(todo)?.map_or(0, |head| head.unwrap_or(DAMAGED_HEAD)));
        missing_head(todo, head, |key| {
            self.read(|database| database.contains_key(ordered::of(key)))
        })
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        if todos.is_empty() {
            return Ok(Vec::new());
        }
        self.read(|database| {
            let mut found = Vec::new();
            for item in database.range(ordered::head(todos.start)..ordered::head(todos.end)) {
                let (bytes, stored) = item?;
                found.extend(ordered::open_head(&bytes, &stored));
            }
            Ok(found)
        })
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        key.check()?;
        let stored = self.read(|database| database.get(ordered::of(key)))?;
        stored
            .map(|stored| record::open(key, &stored))
            .transpose()
            .map_err(|detail| Error::Corrupt { key, detail })
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &range)? else { return Ok(Vec::new()) };
        self.records(space, todo, &span, limit)
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let Some(span) = Key::span(space, todo, &(0..Key::N_END))? else { return Ok(None) };
        let last = self.read(|database| {
            let range = ordered::span(space, todo, &span);
            database.range(range).next_back().transpose()
        })?;
        last.map(|(key, stored)| ordered::open(space, todo, &key, &stored)).transpose()
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
        let acknowledged = self.writable()?;
        acknowledged.find_places()?;
        let mut slot = self.database.write();
        if let Some(copy) = self.copy.lock().take() {
            if let Some(database) = slot.take() {
                database.close();
            }
            *slot = Some(connect_for_writing(&self.dir, Missing::IsAccepted)?);
            acknowledged.renew_places();
            drop(copy);
        }
        drop(slot);
        acknowledged::accept_loss(&self.dir, self.held()?)
    }

    fn compact(&self) -> Result<(), Error> {
        self.writable()?;
        let _turn = self.turn.lock();
        let acknowledged = self.writable()?;
        acknowledged::refuse(&self.dir, self.lost()?)?;
        self.is_own()?;
        acknowledged.find_places()?;
        let new = self.dir.join(NEW_FOLDER);
        remove(&new)?;
        self.read_copy(&new).inspect_err(|_| drop(remove(&new)))?;
        // From here on readers wait. The steps are those that `mend` undoes or finishes.
        let mut slot = self.database.write();
        if let Some(database) = slot.take() {
            database.close();
        }
        let place = self.dir.join(SLED_FOLDER);
        let old = self.dir.join(OLD_FOLDER);
        let moved = until_closed(&place)
            .and_then(|()| remove(&old))
            .and_then(|()| fs::rename(&place, &old).map_err(writing("rename", &place)))
            .and_then(|()| fs::rename(&new, &place).map_err(writing("rename", &new)))
            .and_then(|()| folder::sync(&self.dir))
            .and_then(|()| remove(&old))
            .and_then(|()| connect_whole(&place));
        acknowledged.renew_places();
        match moved {
            Ok(database) => {
                *slot = Some(database);
                Ok(())
            }
            Err(error) => {
                self.poisoned.store(true, Ordering::Release);
                // Whatever can be opened can be read.
                *slot = mend(&self.dir).and_then(|()| connect_whole(&place)).ok();
                Err(error)
            }
        }
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        let dir = std::path::absolute(dir).map_err(reading("find", dir))?;
        // Without writers the copy is a snapshot.
        let _turn = self.turn.lock();
        folder::fill(&dir, Engine::Sled, || {
            self.read_copy(&dir.join(SLED_FOLDER))?;
            folder::sync(&dir)
        })
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let turn = self.turn.lock();
        let missing = self.read(|database| contents::Contents::of(database)?.missing(database));
        drop(turn);
        findings.extend(missing.ok().flatten().map(|detail| Finding::Engine { detail }));
        match self.check_records(&mut findings) {
            Ok(()) => {}
            Err(Error::Damaged { detail, .. }) => findings.push(Finding::Engine { detail }),
            Err(Error::Engine { source, .. }) => {
                findings.push(Finding::Engine { detail: source.to_string() });
            }
            Err(error) => return Err(error),
        }
        findings.extend(self.lost()?.map(Finding::Lost));
        findings.sort();
        Ok(findings)
    }
}

/// Returns the file that is open for as long as the database is.
fn log(dir: &Path) -> PathBuf {
    dir.join(SLED_FOLDER).join("db")
}

/// Returns the last commit of a database.
fn last_commit(database: &::sled::Db) -> Result<Held, ::sled::Error> {
    Ok(ordered::open_link(database.get(ordered::LINK)?.as_deref()))
}

impl Drop for Sled {
    fn drop(&mut self) {
        if let Some(database) = self.database.get_mut().take() {
            database.close();
        }
    }
}

impl Sled {
    /// Reads the records in steps, so that writers wait only for the present step.
    fn check_records(&self, findings: &mut Vec<Finding>) -> Result<(), Error> {
        let mut from = Bound::Unbounded;
        loop {
            let last = self.read(|database| {
                let mut last = None;
                let range = (from.clone(), Bound::Unbounded);
                for item in database.range::<::sled::IVec, _>(range).take(CHECK_STEP) {
                    let (bytes, stored) = item?;
                    if *bytes != contents::KEY {
                        findings.extend(ordered::judge(&bytes, &stored));
                    }
                    last = Some(bytes);
                }
                Ok(last)
            })?;
            let Some(last) = last else { return Ok(()) };
            from = Bound::Excluded(last);
        }
    }
}
