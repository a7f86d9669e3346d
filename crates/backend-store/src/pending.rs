//! Payloads that are prepared but not yet committed.

use crate::Meta;
use foldback_kv::{Key, Todo};
use std::collections::BTreeMap;

/// The payloads that one commit will add, so that equal ones among them are also stored once.
///
/// Created by [`BackendStore::begin`](crate::BackendStore::begin), filled by
/// [`prepare`](crate::BackendStore::prepare), and ended by [`into_puts`](Self::into_puts), whose
/// records belong in the batch that also holds the references. Dropping it commits nothing; files
/// that it leaves behind are swept later. When the batch is refused because another process came
/// first, begin again: the files that exist are used.
#[derive(Debug)]
pub struct Pending {
    pub(crate) todo: Todo,
    pub(crate) next_n: u64,
    /// The origin of the bytes that are prepared from now on.
    pub(crate) origin: Option<u64>,
    /// The payloads that are new in this commit or were restored by it, by hash.
    pub(crate) by_hash: BTreeMap<[u8; 32], Meta>,
    /// The numbers under each hash key, as they will be.
    pub(crate) buckets: BTreeMap<u64, Vec<u64>>,
    pub(crate) puts: BTreeMap<Key, Vec<u8>>,
}

impl Pending {
    pub(crate) fn new(todo: &Todo, next_n: u64) -> Self {
        Self {
            todo: todo.clone(),
            next_n,
            origin: None,
            by_hash: BTreeMap::new(),
            buckets: BTreeMap::new(),
            puts: BTreeMap::new(),
        }
    }

    /// Sets the origin of what is prepared from now on: a number that the caller chooses, which is
    /// stored with each new payload (see [`Meta::origin`]).
    pub fn set_origin(&mut self, origin: u64) {
        self.origin = Some(origin);
    }

    /// Returns the todo that the payloads belong to.
    #[must_use]
    pub fn todo(&self) -> &Todo {
        &self.todo
    }

    /// Returns whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    /// Returns the payload with this number that is prepared here and not yet committed.
    #[must_use]
    pub fn meta(&self, n: u64) -> Option<&Meta> {
        self.by_hash.values().find(|meta| meta.n == n)
    }

    /// Returns the records to commit, each key once, in the order of their keys.
    #[must_use]
    pub fn into_puts(self) -> Vec<(Key, Vec<u8>)> {
        self.puts.into_iter().collect()
    }
}

/// The result of preparing bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// The payload.
    pub meta: Meta,
    /// Whether it is new. `false` for bytes that the todo already holds.
    pub new: bool,
}
