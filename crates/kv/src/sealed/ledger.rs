//! Ledgers: what is known about a todo's records, apart from the records. A ledger holds the todo's head, the number
//! of its records and, for those that were overwritten or deleted, which write was the last.

use super::keys::{Keys, Kind, tag_of};
use super::{LEDGERS, NOT_LAST, NOT_OPENED, corrupt};
use crate::{Error, Key, Kv, Space};
use std::collections::BTreeMap;
use std::ops::Range;

/// The ledger of a todo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) head: u64,
    /// How many records the todo has in the spaces that are tracked.
    pub(super) count: u64,
    /// The last write of each record that was overwritten; 0 for a deleted one.
    pub(super) tags: BTreeMap<Key, u64>,
}

const ENTRY_BYTES: usize = 17;

impl Ledger {
    /// Checks that a record is the one that the ledger knows, and exists if the ledger knows it.
    pub(super) fn judge(&self, key: Key, found: Option<&[u8]>) -> Result<(), Error> {
        match self.tags.get(&key) {
            Some(tag) if found.map_or(0, tag_of) != *tag => Err(corrupt(key, NOT_LAST)),
            _ => Ok(()),
        }
    }

    /// Like [`judge`](Self::judge), for all records in a range.
    pub(super) fn judge_all(
        &self,
        (space, todo): (Space, u32),
        range: Range<u64>,
        found: &[(u64, Vec<u8>)],
    ) -> Result<(), Error> {
        if range.start >= range.end || self.tags.is_empty() {
            return Ok(());
        }
        for (n, record) in found {
            self.judge(Key { space, todo, n: *n }, Some(record))?;
        }
        let is_there = |n| found.binary_search_by_key(&n, |(n, _)| *n).is_ok();
        let key = |n| Key { space, todo, n };
        let known = self.tags.range(key(range.start)..key(range.end));
        let mut gone = known.filter(|(key, tag)| **tag != 0 && !is_there(key.n));
        gone.next().map_or(Ok(()), |(key, _)| Err(corrupt(*key, NOT_LAST)))
    }

    fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.tags.len() * ENTRY_BYTES);
        bytes.extend_from_slice(&self.head.to_le_bytes());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        for (key, tag) in &self.tags {
            bytes.push(key.space.number());
            bytes.extend_from_slice(&key.todo.to_le_bytes());
            bytes.extend_from_slice(&(key.n as u32).to_le_bytes());
            bytes.extend_from_slice(&tag.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let mut tags = BTreeMap::new();
        for entry in rest.chunks(ENTRY_BYTES) {
            let (space, entry) = entry.split_first()?;
            let (todo, entry) = entry.split_first_chunk::<4>()?;
            let (n, tag) = entry.split_first_chunk::<4>()?;
            let (space, todo) = (Space::from_number(*space)?, u32::from_le_bytes(*todo));
            let key = Key { space, todo, n: u64::from(u32::from_le_bytes(*n)) };
            tags.insert(key, u64::from_le_bytes(tag.try_into().ok()?));
        }
        Some(Self { head: u64::from_le_bytes(*head), count: u64::from_le_bytes(*count), tags })
    }

    /// Returns the ledger as it is stored.
    pub(super) fn seal(&self, keys: &Keys, domain: u32) -> Result<Vec<u8>, Error> {
        keys.seal(&keys.own, Kind::Ledger, key_of(domain), &self.write())
    }
}

/// Returns the key of a todo's ledger.
pub(super) fn key_of(domain: u32) -> Key {
    Key { space: Space::Meta, todo: LEDGERS, n: u64::from(domain) }
}

/// Reads the ledger of a todo as it is stored.
pub(super) fn stored(kv: &dyn Kv, domain: u32) -> Result<Option<Vec<u8>>, Error> {
    kv.get(key_of(domain))
}

/// Opens a stored ledger; a todo without one has an empty ledger.
pub(super) fn open(keys: &Keys, domain: u32, stored: Option<&[u8]>) -> Result<Ledger, Error> {
    let Some(stored) = stored else { return Ok(Ledger::default()) };
    let at = key_of(domain);
    let opened = keys.open(&keys.own, Kind::Ledger, at, stored);
    opened.and_then(|bytes| Ledger::read(&bytes)).ok_or_else(|| corrupt(at, NOT_OPENED))
}

/// Returns what a stored ledger adds to the sum. Nobody can compute it without the key, so nobody can make other
/// ledgers with the same sum.
pub(super) fn part_of_sum(keys: &Keys, domain: u32, stored: &[u8]) -> [u8; 32] {
    let nonce = stored.get(..25).unwrap_or(stored);
    keys.own.digest(&[&domain.to_le_bytes(), nonce].concat())
}

/// Adds a part to a sum, or removes it.
pub(super) fn add(sum: &mut [u8; 32], part: &[u8; 32]) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum ^= part);
}

/// Returns the todo whose key seals a record, and whose ledger knows it. The registry's record of a todo belongs to
/// that todo.
pub(super) fn domain_of(key: Key) -> u32 {
    match (key.space, key.todo) {
        (Space::Name, _) => 0,
        (Space::Todo, 0) => u32::try_from(key.n).ok().filter(|n| *n < Key::TODO_END).unwrap_or(0),
        (_, todo) => todo,
    }
}

/// Returns the numbers of a space whose overwrites are tracked. Other records are written once, or a later value says the
/// same, or which model it is from, or a tracked record has their checksums.
pub(super) fn noted(space: Space) -> Range<u64> {
    match space {
        Space::Name
        | Space::Message
        | Space::Block
        | Space::Vector
        | Space::Payload
        | Space::PayloadBytes
        | Space::PayloadHash => 0..0,
        Space::Index => 0..Key::INDEX_CHUNKS,
        Space::Meta
        | Space::Todo
        | Space::Session
        | Space::File
        | Space::Grant
        | Space::Plan
        | Space::Sent
        | Space::Parked => 0..Key::N_END,
    }
}
