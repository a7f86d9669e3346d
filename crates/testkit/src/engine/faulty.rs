//! An engine that fails at random, as a disk does.

use crate::Random;
use foldback_kv::{Batch, Error, Finding, Key, Kv, Lost, Space};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One process's view of an engine that several share. Some of its calls fail: a commit is refused, or
/// fails before or after the moment at which it becomes durable, or a read fails.
pub struct Faulty {
    truth: Arc<dyn Kv>,
    dice: Mutex<Random>,
    /// Whether calls may fail now.
    fails: AtomicBool,
    /// After a commit with an unknown outcome, this process commits nothing more.
    is_poisoned: AtomicBool,
    faults: AtomicU64,
}

/// How many of 100 commits fail, evenly by kind of failure, and how many of 100 reads.
const COMMITS: usize = 12;
const READS: usize = 2;

impl Faulty {
    /// Returns a view of `truth` without failures until [`fail`](Self::fail) starts them.
    pub fn new(truth: Arc<dyn Kv>, seed: u64) -> Self {
        Self {
            truth,
            dice: Mutex::new(Random::new(seed)),
            fails: AtomicBool::new(false),
            is_poisoned: AtomicBool::new(false),
            faults: AtomicU64::new(0),
        }
    }

    /// Sets whether calls fail from now on.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    /// Returns how many calls have failed.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Returns a random number below `share` if the call is to fail.
    fn throw(&self, share: usize) -> Option<usize> {
        if !self.fails.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.dice.lock().unwrap_or_else(PoisonError::into_inner).below(100);
        let fails = number < share;
        self.faults.fetch_add(u64::from(fails), Ordering::Relaxed);
        fails.then_some(number)
    }

    fn read<T>(&self, read: impl FnOnce(&dyn Kv) -> Result<T, Error>) -> Result<T, Error> {
        match self.throw(READS) {
            Some(_) => Err(broken("read")),
            None => read(self.truth.as_ref()),
        }
    }

    fn poisoned(&self) -> Error {
        self.is_poisoned.store(true, Ordering::Relaxed);
        broken("write")
    }
}

fn store() -> PathBuf {
    PathBuf::from("(simulated)")
}

fn broken(doing: &'static str) -> Error {
    Error::Io { doing, path: store(), source: io::Error::from_raw_os_error(5) }
}

impl Kv for Faulty {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        if self.is_poisoned.load(Ordering::Relaxed) {
            return Err(Error::Poisoned { path: store() });
        }
        match self.throw(COMMITS).map(|number| number % 4) {
            None => self.truth.commit(batch),
            Some(0) => Err(Error::Full { path: store() }),
            Some(1) => Err(Error::Busy { path: store(), doing: "others wrote" }),
            // Before it is durable, and after.
            Some(2) => Err(self.poisoned()),
            Some(_) => self.truth.commit(batch).and(Err(self.poisoned())),
        }
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        self.read(|kv| kv.head(todo))
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        self.read(|kv| kv.heads(todos))
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        self.read(|kv| kv.get(key))
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.read(|kv| kv.scan(space, todo, range, limit))
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        self.read(|kv| kv.last(space, todo))
    }

    fn changed(&self) -> Result<u64, Error> {
        self.read(|kv| kv.changed())
    }

    fn lost(&self) -> Result<Option<Lost>, Error> {
        self.read(|kv| kv.lost())
    }

    fn compact(&self) -> Result<(), Error> {
        self.read(|kv| kv.compact())
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        self.read(|kv| kv.backup(dir))
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        self.read(|kv| kv.check())
    }
}
