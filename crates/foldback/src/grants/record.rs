//! Stored grants: where each is, how it is read, and which belong to a todo.

use super::Grant;
use crate::Error;
use crate::error::Failure;
use crate::memory::Shared;
use foldback_core::{Reference, Timestamp, TodoId};
use foldback_kv::{Batch, Error as KvError, Key, Registry, Space};
use serde::{Deserialize, Serialize};

/// A stored grant, as MessagePack: an array of these fields in this order. The reference names the
/// todo that gave it.
///
/// A payload's record may exist because of blocks alone. Then it holds as long as one of those is
/// granted: that is looked up, so that no late write of this record can make it hold longer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) to_id: TodoId,
    pub(super) reference: Reference,
    pub(super) at: i64,
    /// Whether it was granted by itself.
    #[serde(default = "yes")]
    pub(super) direct: bool,
    /// The granted blocks whose messages contain the payload.
    #[serde(default)]
    pub(super) blocks: Vec<u32>,
}

/// Records without the last two fields are of payloads and blocks granted by themselves.
fn yes() -> bool {
    true
}

impl Record {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        rmp_serde::to_vec(self).map_err(|_| Failure::Internal("a grant has no bytes").into())
    }

    pub(super) fn grant(&self) -> Grant {
        Grant {
            from: self.reference.todo().clone(),
            to: self.to_id.clone(),
            reference: self.reference.clone(),
            at: Timestamp(self.at),
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.from, self.to, &self.reference) == (other.from, other.to, &other.reference)
    }

    /// Returns whether both todos are still the same ones.
    pub(super) fn holds(&self, registry: &Registry) -> Result<bool, Error> {
        let lives = |id: &TodoId, no: u32| -> Result<bool, Error> {
            Ok(registry.find(id)?.is_some_and(|todo| todo.no() == no))
        };
        Ok(lives(self.reference.todo(), self.from)? && lives(&self.to_id, self.to)?)
    }
}

/// Grants whose content has the same hash are stored side by side, up to this many.
pub(super) const SLOTS: u64 = 8;

/// Returns where `holder` may store the record.
pub(super) fn slots(
    memory: &Shared,
    holder: u32,
    record: &Record,
) -> Result<impl Iterator<Item = Key> + use<>, Error> {
    slots_of(memory, holder, (record.from, record.to), &record.reference)
}

fn slots_of(
    memory: &Shared,
    holder: u32,
    (from, to): (u32, u32),
    reference: &Reference,
) -> Result<impl Iterator<Item = Key> + use<>, Error> {
    let name = format!("{from} {to} {reference}");
    // A block's name contains that of its todo: in an encrypted store no number may reveal it.
    let hash = match memory.kv.cipher(holder)? {
        Some(cipher) => cipher
            .digest(name.as_bytes())
            .first_chunk()
            .map_or(0, |first| u64::from_le_bytes(*first)),
        None => xxhash_rust::xxh3::xxh3_64(name.as_bytes()),
    };
    let first = hash % (Key::N_END - SLOTS);
    Ok((first..first + SLOTS).map(move |n| Key { space: Space::Grant, todo: holder, n }))
}

/// What is stored under a number.
pub(super) enum Slot {
    Free,
    Held(Record),
    /// Not free: its contents may come back with a backup.
    Damaged,
}

pub(super) fn held(memory: &Shared, key: Key) -> Result<Slot, Error> {
    match memory.kv.get(key) {
        Ok(None) => Ok(Slot::Free),
        Ok(Some(bytes)) => Ok(read(&bytes).map_or(Slot::Damaged, Slot::Held)),
        Err(KvError::Corrupt { .. }) => Ok(Slot::Damaged),
        Err(error) => Err(error.into()),
    }
}

fn read(bytes: &[u8]) -> Option<Record> {
    rmp_serde::from_slice(bytes).ok()
}

/// Returns the record that `holder` stores of a reference, if it exists and can be read: a damaged
/// grant is none. A missing one costs the same reads, whatever it is.
pub(super) fn lookup(
    memory: &Shared,
    holder: u32,
    (from, to): (u32, u32),
    reference: &Reference,
) -> Result<Option<(Key, Record)>, Error> {
    for key in slots_of(memory, holder, (from, to), reference)? {
        if let Slot::Held(record) = held(memory, key)?
            && (record.from, record.to, &record.reference) == (from, to, reference)
        {
            return Ok(Some((key, record)));
        }
    }
    Ok(None)
}

/// Copies the grants stored with the todo of this number to where another store has them. A damaged one is none.
pub(crate) fn copy(source: &Shared, target: &Shared, no: u32) -> Result<(), Error> {
    for (_, record) in records(source, no)? {
        for key in slots(target, no, &record)? {
            match held(target, key)? {
                Slot::Free => {
                    let put = vec![(key, record.to_bytes()?)];
                    target.kv.commit(Batch { put, ..Batch::default() })?;
                    break;
                }
                Slot::Held(held) if held.is_same(&record) => break,
                Slot::Held(_) | Slot::Damaged => {}
            }
        }
    }
    Ok(())
}

/// Grants are read in steps of this many.
const STEP: usize = 512;

/// Returns all grants stored with the todo of this number, given and received. A damaged one is none.
pub(super) fn records(memory: &Shared, no: u32) -> Result<Vec<(Key, Record)>, Error> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < Key::N_END {
        let step = match memory.kv.scan(Space::Grant, no, from..Key::N_END, STEP) {
            Err(KvError::Corrupt { key, .. }) if key.n >= from => {
                let before = memory.kv.scan(Space::Grant, no, from..key.n, usize::MAX)?;
                from = key.n + 1;
                before
            }
            step => {
                let step = step?;
                from = match step.last() {
                    Some((last, _)) if step.len() == STEP => last + 1,
                    _ => Key::N_END,
                };
                step
            }
        };
        found.extend(step.into_iter().filter_map(|(n, bytes)| {
            Some((Key { space: Space::Grant, todo: no, n }, read(&bytes)?))
        }));
    }
    Ok(found)
}
