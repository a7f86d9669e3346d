//! A batch that is being sealed, with the ledgers as they are once it is committed.

use super::keys::{Kind, TodoKeys, tag_of};
use super::ledger::{self, Ledger, domain_of, noted};
use super::{KEYS, SUM, Sealed, of_head};
use crate::{Batch, Delete, Error, FORGOTTEN_HEAD, Key, Kv, Space};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

pub(super) struct Draft<'s> {
    store: &'s Sealed,
    ledgers: BTreeMap<u32, Drafted>,
    /// Keys that are new with this batch.
    new: HashMap<u32, Arc<TodoKeys>>,
    /// The todo that is forgotten with it.
    forgotten: Option<u32>,
    put: Vec<(Key, Vec<u8>)>,
}

/// A ledger as it is stored, and as it will be.
struct Drafted {
    stored: Option<Vec<u8>>,
    before: Ledger,
    ledger: Ledger,
}

impl<'s> Draft<'s> {
    pub(super) fn new(store: &'s Sealed) -> Self {
        let (ledgers, new, put) = (BTreeMap::new(), HashMap::new(), Vec::new());
        Self { store, ledgers, new, forgotten: None, put }
    }

    /// Returns the batch for the engine.
    pub(super) fn seal(&mut self, batch: Batch) -> Result<Batch, Error> {
        let Batch { expect, put, mut delete } = batch;
        if let Some(expect) = expect {
            let todo = expect.todo;
            let ledger = self.ledger(todo)?;
            // The engine knows whether a todo without a head was forgotten.
            let is_expected =
                ledger.head == expect.head || ledger.head == 0 && expect.head == FORGOTTEN_HEAD;
            if !is_expected {
                let (expected, found) = (expect.head, ledger.head);
                return Err(Error::Conflict { todo, expected, found });
            }
            ledger.head = expect.next;
            if expect.next == FORGOTTEN_HEAD {
                // The key is deleted with the records, so that any remains of them cannot be read.
                self.forgotten = Some(todo);
                let key = Key { space: Space::Meta, todo: KEYS, n: u64::from(todo) };
                delete.extend([Delete::one(key), Delete::one(ledger::key_of(todo))]);
            }
        }
        for delete in &delete {
            self.delete(delete)?;
        }
        let last: HashMap<Key, usize> =
            put.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        for (at, (key, value)) in put.into_iter().enumerate() {
            // Of two puts of one key the later one stays.
            if last.get(&key) == Some(&at) {
                self.put(key, &value)?;
            }
        }
        self.close_ledgers()?;
        Ok(Batch { expect, put: std::mem::take(&mut self.put), delete })
    }

    /// Updates the cached keys after the batch is committed.
    pub(super) fn done(self) {
        self.new.into_iter().for_each(|(todo, keys)| self.store.keys.keep(todo, keys));
        self.forgotten.into_iter().for_each(|todo| self.store.keys.drop_of(todo));
    }

    fn kv(&self) -> &'s dyn Kv {
        self.store.inner.as_ref()
    }

    fn ledger(&mut self, domain: u32) -> Result<&mut Ledger, Error> {
        let (kv, keys) = (self.kv(), &self.store.keys);
        let drafted = match self.ledgers.entry(domain) {
            std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                let damaged = |error| of_head(domain, error);
                let stored = ledger::stored(kv, domain).map_err(damaged)?;
                let before = ledger::open(keys, domain, stored.as_deref()).map_err(damaged)?;
                vacant.insert(Drafted { stored, ledger: before.clone(), before })
            }
        };
        Ok(&mut drafted.ledger)
    }

    fn delete(&mut self, delete: &Delete) -> Result<(), Error> {
        let end = delete.range.end.min(noted(delete.space).end);
        let is_reserved = delete.todo >= super::RESERVED && delete.todo <= super::STORE;
        if delete.range.start >= end || is_reserved {
            return Ok(());
        }
        let is_registry = (delete.space, delete.todo) == (Space::Todo, 0);
        if self.forgotten == Some(delete.todo) && !is_registry {
            return Ok(());
        }
        for n in self.numbers(delete.space, delete.todo, delete.range.start..end)? {
            let key = Key { space: delete.space, todo: delete.todo, n };
            let domain = domain_of(key);
            if self.forgotten == Some(domain) {
                continue;
            }
            let ledger = self.ledger(domain)?;
            // Two deletions of a batch may name one record.
            if ledger.tags.insert(key, 0) != Some(0) {
                ledger.count = ledger.count.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Returns the numbers of the records in a range, including damaged ones.
    fn numbers(&self, space: Space, todo: u32, range: Range<u64>) -> Result<Vec<u64>, Error> {
        let (mut numbers, mut from) = (Vec::new(), range.start);
        loop {
            let (found, damaged) = match self.kv().scan(space, todo, from..range.end, usize::MAX) {
                Err(Error::Corrupt { key, .. }) if key.n >= from => {
                    (self.kv().scan(space, todo, from..key.n, usize::MAX)?, Some(key.n))
                }
                found => (found?, None),
            };
            numbers.extend(found.into_iter().map(|(n, _)| n).chain(damaged));
            match damaged {
                Some(damaged) => from = damaged + 1,
                None => return Ok(numbers),
            }
        }
    }

    fn put(&mut self, key: Key, value: &[u8]) -> Result<(), Error> {
        let domain = domain_of(key);
        let keys = self.keys_of(domain)?;
        let record = keys.seal(&self.store.keys, key, value)?;
        if noted(key.space).contains(&key.n) {
            let is_known = self.ledger(domain)?.tags.contains_key(&key);
            let is_there = is_known
                || match self.kv().get(key) {
                    Err(Error::Corrupt { .. }) => true,
                    found => found?.is_some(),
                };
            let ledger = self.ledger(domain)?;
            let is_new = match ledger.tags.get(&key) {
                Some(tag) => *tag == 0,
                None => !is_there,
            };
            ledger.count += u64::from(is_new);
            if is_there {
                ledger.tags.insert(key, tag_of(&record));
            }
        }
        self.put.push((key, record));
        Ok(())
    }

    fn keys_of(&mut self, domain: u32) -> Result<Arc<TodoKeys>, Error> {
        if let Some(keys) = self.new.get(&domain) {
            return Ok(keys.clone());
        }
        if let Some(keys) = self.store.keys.of(self.kv(), domain)? {
            return Ok(keys);
        }
        let (keys, record) = self.store.keys.make_for(domain)?;
        self.put.push(record);
        self.new.insert(domain, keys.clone());
        Ok(keys)
    }

    /// Writes the ledgers that have changed, and their sum.
    fn close_ledgers(&mut self) -> Result<(), Error> {
        let keys = &self.store.keys;
        let mut change = [0; 32];
        for (domain, Drafted { stored, before, ledger }) in &self.ledgers {
            if self.forgotten == Some(*domain) {
                if let Some(stored) = stored {
                    ledger::add(&mut change, &ledger::part_of_sum(keys, *domain, stored));
                }
                continue;
            }
            if stored.is_some() && before == ledger {
                continue;
            }
            let record = ledger.seal(keys, *domain)?;
            for part in stored.iter().chain([&record]) {
                ledger::add(&mut change, &ledger::part_of_sum(keys, *domain, part));
            }
            self.put.push((ledger::key_of(*domain), record));
        }
        if change == [0; 32] {
            return Ok(());
        }
        // A damaged sum stays damaged, and is a finding of every check.
        let sum = match self.kv().get(SUM) {
            Err(Error::Corrupt { .. }) => return Ok(()),
            stored => stored?.and_then(|stored| keys.open(&keys.own, Kind::Sum, SUM, &stored)),
        };
        if let Some(mut sum) = sum.and_then(|sum| <[u8; 32]>::try_from(sum).ok()) {
            ledger::add(&mut sum, &change);
            self.put.push((SUM, keys.seal(&keys.own, Kind::Sum, SUM, &sum)?));
        }
        Ok(())
    }
}
