//! The keys of a store: its own, and one for each todo.

use super::{KEYS, RESERVED, corrupt};
use crate::{Error, Key, Kv, Space};
use foldback_cipher::{Cipher, EncryptionKey, OVERHEAD_BYTES};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

/// The first byte of everything that is sealed.
const VERSION: u8 = 1;
/// The bytes of a store's id.
pub(super) const ID_BYTES: usize = 16;
/// How many keys of todos are cached.
const MOST_AT_HAND: usize = 4_096;

/// The kind of a sealed value, which is part of its place.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Record = 1,
    Ledger = 2,
    Sum = 3,
    TodoKey = 4,
    StoreKey = 5,
}

/// The keys of a store.
pub(super) struct Keys {
    id: [u8; ID_BYTES],
    /// Seals ledgers, their sum, and keys of todos.
    pub(super) own: Cipher,
    store: Arc<TodoKeys>,
    at_hand: RwLock<HashMap<u32, Arc<TodoKeys>>>,
}

/// The key of a todo, for its two purposes.
pub(super) struct TodoKeys {
    records: Cipher,
    files: Cipher,
}

/// New keys of a todo, and the record from which they are read later.
type Made = (Arc<TodoKeys>, (Key, Vec<u8>));

impl Keys {
    fn of_store(id: [u8; ID_BYTES], key: &Cipher) -> Self {
        let store = Arc::new(TodoKeys::of(key));
        Self { id, own: key.derive("keys and ledgers"), store, at_hand: RwLock::default() }
    }

    /// Creates the keys of a new store, and the record from which they are read later.
    pub(super) fn make(key: &EncryptionKey) -> Result<(Self, Vec<u8>), Error> {
        let (own, drawn) = (Cipher::random()?, Cipher::random()?);
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(drawn.key()).for_each(|(to, from)| *to = *from);
        let record = wrapped(id, &own, key)?;
        Ok((Self::of_store(id, &own), record))
    }

    /// Reads the keys of a store from their record; `None` if this key does not open it.
    pub(super) fn read(record: &[u8], key: &EncryptionKey) -> Option<Self> {
        let (id, own) = unwrapped(record, key)?;
        Some(Self::of_store(id, &own))
    }

    /// Returns the keys of a todo, or of records that belong to no single todo; `None` if there are none.
    pub(super) fn of(&self, kv: &dyn Kv, domain: u32) -> Result<Option<Arc<TodoKeys>>, Error> {
        if domain == 0 || domain >= RESERVED {
            return Ok(Some(self.store.clone()));
        }
        if let Some(keys) = self.at_hand.read().get(&domain) {
            return Ok(Some(keys.clone()));
        }
        let at = key_of(domain);
        let Some(sealed) = kv.get(at)? else { return Ok(None) };
        let opened = self.open(&self.own, Kind::TodoKey, at, &sealed);
        let key = opened.and_then(|key| <[u8; 32]>::try_from(key).ok());
        let key = key.ok_or_else(|| corrupt(at, super::NOT_OPENED))?;
        let keys = Arc::new(TodoKeys::of(&Cipher::new(key)));
        self.keep(domain, keys.clone());
        Ok(Some(keys))
    }

    /// Creates keys for a todo that has none, and their record.
    pub(super) fn make_for(&self, domain: u32) -> Result<Made, Error> {
        let key = Cipher::random()?;
        let at = key_of(domain);
        let record = self.seal(&self.own, Kind::TodoKey, at, key.key())?;
        Ok((Arc::new(TodoKeys::of(&key)), (at, record)))
    }

    pub(super) fn keep(&self, domain: u32, keys: Arc<TodoKeys>) {
        let mut at_hand = self.at_hand.write();
        if at_hand.len() >= MOST_AT_HAND {
            at_hand.clear();
        }
        at_hand.insert(domain, keys);
    }

    pub(super) fn drop_of(&self, domain: u32) {
        self.at_hand.write().remove(&domain);
    }

    /// Clears the cache, so that the keys of todos are read again.
    pub(super) fn drop_all(&self) {
        self.at_hand.write().clear();
    }

    pub(super) fn seal(
        &self,
        cipher: &Cipher,
        kind: Kind,
        key: Key,
        value: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let sealed = cipher.seal(&place(&self.id, kind, key), value)?;
        let mut record = Vec::with_capacity(1 + sealed.len());
        record.push(VERSION);
        record.extend_from_slice(&sealed);
        Ok(record)
    }

    pub(super) fn open(
        &self,
        cipher: &Cipher,
        kind: Kind,
        key: Key,
        record: &[u8],
    ) -> Option<Vec<u8>> {
        let (version, sealed) = record.split_first()?;
        if *version != VERSION {
            return None;
        }
        cipher.open(&place(&self.id, kind, key), sealed)
    }
}

impl TodoKeys {
    fn of(key: &Cipher) -> Self {
        Self { records: key.derive("records"), files: key.derive("files") }
    }

    pub(super) fn files(&self) -> &Cipher {
        &self.files
    }

    pub(super) fn seal(&self, keys: &Keys, key: Key, value: &[u8]) -> Result<Vec<u8>, Error> {
        keys.seal(&self.records, Kind::Record, key, value)
    }

    pub(super) fn open(&self, keys: &Keys, key: Key, record: &[u8]) -> Option<Vec<u8>> {
        keys.open(&self.records, Kind::Record, key, record)
    }
}

/// Returns the tag of a record, which identifies one write in its place: no two writes have the same.
pub(super) fn tag_of(record: &[u8]) -> u64 {
    let nonce = record.get(1..9).and_then(|nonce| nonce.try_into().ok());
    // 0 stands for none.
    nonce.map_or(1, u64::from_le_bytes).max(1)
}

/// Returns the record of a store's key: the store's id, and the key, sealed with the caller's.
fn wrapped(id: [u8; ID_BYTES], own: &Cipher, key: &EncryptionKey) -> Result<Vec<u8>, Error> {
    let place = place(&id, Kind::StoreKey, super::STORE_KEY);
    let sealed = key.cipher("store key").seal(&place, own.key())?;
    Ok([&[VERSION], &id[..], &sealed].concat())
}

fn unwrapped(record: &[u8], key: &EncryptionKey) -> Option<([u8; ID_BYTES], Cipher)> {
    let (version, rest) = record.split_first()?;
    let (id, sealed) = rest.split_first_chunk::<ID_BYTES>()?;
    if *version != VERSION || sealed.len() != 32 + OVERHEAD_BYTES {
        return None;
    }
    let own = key.cipher("store key").open(&place(id, Kind::StoreKey, super::STORE_KEY), sealed)?;
    Some((*id, Cipher::new(own.try_into().ok()?)))
}

/// Returns the record of a store's key, sealed with another key; `None` if the first key does not open it.
pub(super) fn wrapped_again(
    record: &[u8],
    key: &EncryptionKey,
    new: &EncryptionKey,
) -> Option<Result<Vec<u8>, Error>> {
    let (id, own) = unwrapped(record, key)?;
    Some(wrapped(id, &own, new))
}

fn key_of(domain: u32) -> Key {
    Key { space: Space::Meta, todo: KEYS, n: u64::from(domain) }
}

/// Returns what sealed bytes are bound to: the store, their kind, and their place.
fn place(id: &[u8; ID_BYTES], kind: Kind, key: Key) -> [u8; ID_BYTES + 14] {
    let mut place = [0; ID_BYTES + 14];
    let numbers = [kind as u8, key.space.number()].into_iter();
    let numbers = numbers.chain(key.todo.to_le_bytes()).chain(key.n.to_le_bytes());
    let bytes = id.iter().copied().chain(numbers);
    place.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    place
}
