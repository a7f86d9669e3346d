//! Payloads that are prepared and not yet committed.

use crate::Meta;
use foldback_kv::{Key, Todo};
use std::collections::BTreeMap;

/// The payloads that one commit will bring, so that equal ones among them are stored once too.
///
/// Made by [`BackendStore::begin`](crate::BackendStore::begin), filled by
/// [`prepare`](crate::BackendStore::prepare), and ended by [`into_puts`](Self::into_puts), whose
/// records belong into the batch that also holds the references. Dropping it commits nothing;
/// files that it leaves behind are swept later. When the batch is refused because another
/// process came first, begin again: the files that exist are used.
#[derive(Debug)]
pub struct Pending {
    pub(crate) todo: Todo,
    pub(crate) next_n: u64,
    /// Where the bytes come from that are prepared from now on.
    pub(crate) origin: Option<u64>,
    /// What is new or was made whole again in this commit, by hash.
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

    /// What is prepared from now on came from here: a number of the caller's, which is kept with each
    /// payload that is new (see [`Meta::origin`]).
    pub fn set_origin(&mut self, origin: u64) {
        self.origin = Some(origin);
    }

    /// The todo that the payloads belong to.
    #[must_use]
    pub fn todo(&self) -> &Todo {
        &self.todo
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    /// The payload of this number, prepared here and not yet committed.
    #[must_use]
    pub fn meta(&self, n: u64) -> Option<&Meta> {
        self.by_hash.values().find(|meta| meta.n == n)
    }

    /// The records to commit, each key once, in the order of their keys.
    #[must_use]
    pub fn into_puts(self) -> Vec<(Key, Vec<u8>)> {
        self.puts.into_iter().collect()
    }
}

/// What became of the bytes that were prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// The payload.
    pub meta: Meta,
    /// Whether it is new. `false` for bytes that the todo holds already.
    pub new: bool,
}
