//! A store that seals the values in another store.
//!
//! Every value is sealed with the key of its todo (`foldback-cipher`) and opens only under its own [`Key`], so a record
//! that was changed, truncated or moved counts as damaged. A record that is written once has no earlier value that
//! could replace it. For a record that was overwritten, a *ledger* knows which write was the last: each todo has a
//! ledger, which also holds its head at that time, and one sum covers all ledgers. So an older value in the place of a
//! newer one, and a removed record, are damage to a reader; a whole todo from an earlier time is a finding of
//! [`check`](Kv::check).
//!
//! ```text
//! meta TODO_END-14/0   the store's id, and its key, sealed with the caller's
//! meta TODO_END-14/1   the sum over the ledgers, sealed with the store's key
//! meta TODO_END-16/T   the key of todo T, random, sealed with the store's; deleted when T is forgotten
//! meta TODO_END-15/T   the ledger of todo T, sealed with the store's; deleted with it
//! ```
//!
//! The engine holds the numbers in keys and the heads of todos unencrypted: the number of todos, and the number and
//! length of each one's records, are not hidden.

mod check;
mod draft;
mod keys;
mod ledger;
mod opening;
mod turn;

pub use self::opening::{change_key, seal};
pub(crate) use self::opening::{is_sealed, seal_as};

use self::draft::Draft;
use self::keys::Keys;
use self::ledger::{Ledger, domain_of, noted};
use self::turn::Turn;
use crate::{Batch, Error, FORGOTTEN_HEAD, Finding, Key, Kv, Lost, Mode, Scans, Space};
use foldback_cipher::Cipher;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// From this todo number on, records belong to the sealing itself, or to no todo.
const RESERVED: u32 = KEYS;
/// The keys of todos, by their numbers.
const KEYS: u32 = Key::TODO_END - 16;
/// The ledgers of todos, by their numbers.
const LEDGERS: u32 = Key::TODO_END - 15;
const STORE: u32 = Key::TODO_END - 14;
/// The store's id, and its key, sealed.
const STORE_KEY: Key = Key { space: Space::Meta, todo: STORE, n: 0 };
/// The sum over all ledgers.
const SUM: Key = Key { space: Space::Meta, todo: STORE, n: 1 };

pub(crate) struct Sealed {
    inner: Arc<dyn Kv>,
    keys: Keys,
    mode: Mode,
    turn: Turn,
    /// Whether its folder says that it is encrypted. If so, the folder of a copy must say so, too.
    is_marked: bool,
}

/// A record that a batch depends on, and its value.
type Held = Option<(Key, Vec<u8>)>;

/// How a sealed batch is written.
type Write = fn(&dyn Kv, Batch, Held) -> Result<(), Error>;

impl Sealed {
    /// Writes a batch, if the record that it depends on has this value.
    fn write(&self, batch: Batch, held: Held, write: Write) -> Result<(), Error> {
        batch.check()?;
        if batch.is_empty() {
            return self.inner.commit(batch);
        }
        // While this turn is held, no other process that shares the folder changes the ledgers that are read here. A
        // read-only store refuses below.
        let _turn = match self.mode {
            Mode::ReadWrite => Some(self.turn.take()?),
            Mode::ReadOnly => None,
        };
        let until = Instant::now() + turn::PATIENCE;
        loop {
            // Processes on other machines may: then the sum over the ledgers is another one, and nothing is written.
            let sum = self.sum()?;
            if let Some((key, value)) = &held
                && self.get(*key)?.as_ref() != Some(value)
            {
                return Err(Error::Changed { key: *key });
            }
            let written = self.write_once(batch.clone(), sum.clone(), write);
            let has_changed = match &written {
                Ok(()) | Err(Error::Conflict { .. }) => false,
                Err(Error::Changed { .. }) => true,
                // What was read may have been half old and half new.
                Err(Error::Corrupt { .. } | Error::CorruptHead { .. }) => self.sum()? != sum,
                Err(_) => false,
            };
            if !has_changed || Instant::now() >= until {
                return written;
            }
        }
    }

    fn write_once(&self, batch: Batch, sum: Option<Vec<u8>>, write: Write) -> Result<(), Error> {
        let mut draft = Draft::new(self);
        let batch = draft.seal(batch)?;
        write(self.inner.as_ref(), batch, sum.map(|sum| (SUM, sum)))?;
        draft.done();
        Ok(())
    }

    /// Returns the record of the sum over all ledgers. A damaged one is a finding of every check, and stays.
    fn sum(&self) -> Result<Option<Vec<u8>>, Error> {
        match self.inner.get(SUM) {
            Err(Error::Corrupt { .. }) => Ok(None),
            sum => sum,
        }
    }

    /// Reads something of a domain that must agree with its ledger. If it does not, but the ledger has changed by then,
    /// it was written meanwhile and is read again.
    fn settled<T>(
        &self,
        domain: u32,
        read: impl Fn(&Ledger) -> Result<Result<T, Error>, Error>,
    ) -> Result<T, Error> {
        let stored = || ledger::stored(self.inner.as_ref(), domain).map_err(|e| of_head(domain, e));
        loop {
            let before = stored()?;
            let ledger = ledger::open(&self.keys, domain, before.as_deref());
            match read(&ledger.map_err(|error| of_head(domain, error))?)? {
                Ok(found) => return Ok(found),
                Err(wrong) if stored()? == before => return Err(wrong),
                Err(_) => {}
            }
        }
    }

    /// Opens a record; `None` if it has been deleted meanwhile, together with the key of its todo.
    fn open(&self, key: Key, sealed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let keys = self.keys.of(self.inner.as_ref(), domain_of(key));
        // The error is that of this record, because others may be readable.
        let keys = keys.map_err(|error| match error {
            Error::Corrupt { detail, .. } => {
                corrupt(key, &format!("the key of its todo is damaged: {detail}"))
            }
            error => error,
        });
        let Some(keys) = keys? else {
            return match self.inner.get(key)? {
                None => Ok(None),
                Some(_) => Err(corrupt(key, "there is no key to open it")),
            };
        };
        keys.open(&self.keys, key, sealed).map(Some).ok_or_else(|| corrupt(key, NOT_OPENED))
    }

    /// Opens records that an engine returned.
    fn open_all(
        &self,
        space: Space,
        todo: u32,
        found: &[(u64, Vec<u8>)],
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let mut opened = Vec::with_capacity(found.len());
        for (n, sealed) in found {
            if let Some(value) = self.open(Key { space, todo, n: *n }, sealed)? {
                opened.push((*n, value));
            }
        }
        Ok(opened)
    }

    /// Opens the records of registered todos, each checked against its own ledger.
    fn open_registered(&self, found: &[(u64, Vec<u8>)]) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let mut opened = Vec::with_capacity(found.len());
        for (n, _) in found {
            let key = Key { space: Space::Todo, todo: 0, n: *n };
            if let Some(value) = self.get(key)? {
                opened.push((*n, value));
            }
        }
        Ok(opened)
    }
}

impl Kv for Sealed {
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        self.commit_if(batch, None)
    }

    fn erase(&self, batch: Batch) -> Result<(), Error> {
        self.erase_if(batch, None)
    }

    fn commit_if(&self, batch: Batch, held: Held) -> Result<(), Error> {
        self.write(batch, held, |kv, batch, held| kv.commit_if(batch, held))
    }

    fn erase_if(&self, batch: Batch, held: Held) -> Result<(), Error> {
        self.write(batch, held, |kv, batch, held| kv.erase_if(batch, held))
    }

    fn head(&self, todo: u32) -> Result<u64, Error> {
        Key { space: Space::Todo, todo, n: 0 }.check()?;
        self.settled(todo, |ledger| {
            let head = self.inner.head(todo)?;
            let wrong = || Error::CorruptHead { todo, detail: NOT_LAST.to_owned() };
            // For a forgotten todo, neither holds anything.
            let is_last = head == ledger.head || ledger.head == 0 && head == FORGOTTEN_HEAD;
            Ok(if is_last { Ok(head) } else { Err(wrong()) })
        })
    }

    fn heads(&self, todos: Range<u32>) -> Result<Vec<(u32, u64)>, Error> {
        let mut heads = self.inner.heads(todos)?;
        heads.retain(|(todo, _)| *todo != STORE);
        Ok(heads)
    }

    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        key.check()?;
        if !noted(key.space).contains(&key.n) {
            let found = self.inner.get(key)?;
            return found.map_or(Ok(None), |sealed| self.open(key, &sealed));
        }
        let sealed = self.settled(domain_of(key), |ledger| {
            let found = self.inner.get(key)?;
            Ok(ledger.judge(key, found.as_deref()).map(|()| found))
        });
        // A damaged ledger damages what is read here, but others may be readable.
        let sealed = sealed.map_err(|error| match error {
            Error::CorruptHead { detail, .. } => corrupt(key, &detail),
            error => error,
        })?;
        sealed.map_or(Ok(None), |sealed| self.open(key, &sealed))
    }

    fn get_each(
        &self,
        space: Space,
        todo: u32,
        numbers: &[u64],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let is_noted = |n: &u64| noted(space).contains(n);
        let key = |n: u64| Key { space, todo, n };
        if numbers.iter().any(is_noted) {
            return numbers.iter().map(|n| self.get(key(*n))).collect();
        }
        let found = self.inner.get_each(space, todo, numbers)?;
        let open = |(n, sealed): (&u64, Option<Vec<u8>>)| match sealed {
            Some(sealed) => self.open(key(*n), &sealed),
            None => Ok(None),
        };
        numbers.iter().zip(found).map(open).collect()
    }

    fn scan(
        &self,
        space: Space,
        todo: u32,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let scan = || self.inner.scan(space, todo, range.clone(), limit);
        if range.start >= noted(space).end {
            return self.open_all(space, todo, &scan()?);
        }
        if (space, todo) == (Space::Todo, 0) {
            return self.open_registered(&scan()?);
        }
        let found = self.settled(todo, |ledger| {
            let found = scan()?;
            let end = match found.last() {
                Some((last, _)) if found.len() >= limit => last + 1,
                _ if limit == 0 => range.start,
                _ => range.end,
            };
            Ok(ledger.judge_all((space, todo), range.start..end, &found).map(|()| found))
        })?;
        self.open_all(space, todo, &found)
    }

    fn scan_each(
        &self,
        todo: u32,
        ranges: &[(Space, Range<u64>)],
        limit: usize,
    ) -> Result<Scans, Error> {
        let head = self.head(todo)?;
        let is_noted = |space: Space| !noted(space).is_empty();
        let others: Vec<_> =
            ranges.iter().filter(|(space, _)| !is_noted(*space)).cloned().collect();
        let mut at_once = self.inner.scan_each(todo, &others, limit)?.found.into_iter();
        let read = |(space, range): &(Space, Range<u64>)| match is_noted(*space) {
            true => self.scan(*space, todo, range.clone(), limit),
            false => self.open_all(*space, todo, &at_once.next().unwrap_or_default()),
        };
        Ok(Scans { head, found: ranges.iter().map(read).collect::<Result<_, _>>()? })
    }

    fn last(&self, space: Space, todo: u32) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let read = || self.inner.last(space, todo);
        let found = if noted(space).is_empty() || (space, todo) == (Space::Todo, 0) {
            read()?
        } else {
            self.settled(todo, |ledger| {
                let found = read()?;
                let from = found.as_ref().map_or(0, |(n, _)| *n);
                let one: Vec<_> = found.iter().cloned().collect();
                Ok(ledger.judge_all((space, todo), from..Key::N_END, &one).map(|()| found))
            })?
        };
        let Some((n, sealed)) = found else { return Ok(None) };
        let value = match (space, todo) {
            (Space::Todo, 0) => self.get(Key { space, todo, n })?,
            _ => self.open(Key { space, todo, n }, &sealed)?,
        };
        Ok(value.map(|value| (n, value)))
    }

    fn changed(&self) -> Result<u64, Error> {
        self.inner.changed()
    }

    fn changed_in(&self, todo: u32) -> Result<u64, Error> {
        self.inner.changed_in(todo)
    }

    fn wait_for_change(&self, seen: u64, most: Duration) -> Result<bool, Error> {
        self.inner.wait_for_change(seen, most)
    }

    fn lost(&self) -> Result<Option<Lost>, Error> {
        self.inner.lost()
    }

    fn accept_loss(&self) -> Result<(), Error> {
        self.inner.accept_loss()
    }

    fn compact(&self) -> Result<(), Error> {
        self.inner.compact()
    }

    fn backup(&self, dir: &Path) -> Result<(), Error> {
        self.inner.backup(dir)?;
        match self.is_marked {
            #[cfg(any(
                feature = "sqlite",
                feature = "redb",
                feature = "sled",
                feature = "postgres"
            ))]
            true => crate::folder::mark_encrypted(dir),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<Vec<Finding>, Error> {
        check::check(self)
    }

    fn shares_derived(&self) -> bool {
        self.inner.shares_derived()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn cipher(&self, todo: u32) -> Result<Option<Cipher>, Error> {
        let keys = self.keys.of(self.inner.as_ref(), todo)?;
        let missing = || {
            let key = Key { space: Space::Meta, todo: KEYS, n: u64::from(todo) };
            corrupt(key, "this todo has no key")
        };
        keys.map(|keys| Some(keys.files().clone())).ok_or_else(missing)
    }
}

/// The detail for a record that no key opens.
const NOT_OPENED: &str =
    "it was not sealed for this place with the key of its todo, or was changed since";
/// The detail for a record that is not the last one written in its place.
const NOT_LAST: &str = "it is not the last record written in this place";

/// Turns the error of a ledger into that of the todo's head: a damaged ledger affects the whole todo, as a damaged head
/// does.
fn of_head(todo: u32, error: Error) -> Error {
    match error {
        Error::Corrupt { detail, .. } => Error::CorruptHead { todo, detail },
        error => error,
    }
}

fn corrupt(key: Key, detail: &str) -> Error {
    Error::Corrupt { key, detail: detail.to_owned() }
}
