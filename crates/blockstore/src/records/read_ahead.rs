//! Records that a search is about to need, read at once: on a server that takes one round trip in place of many.

use super::{Records, Scanned, read_block, read_vectors};
use crate::Error;
use crate::vectors::MessageVectors;
use foldback_core::Block;
use foldback_kv::{Space, Todo};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// Records of one todo and kind by their numbers: `None` for one that does not exist. What it does not hold was not read.
#[derive(Default)]
pub(crate) struct ReadAhead(FxHashMap<u64, Option<Vec<u8>>>);

/// At most this many records are read ahead. More are read one by one, or range by range.
const MOST: usize = 4_096;

impl Records {
    /// Reads records ahead, where the store is on a server. If one of them is damaged, none is: each is then read alone,
    /// so that the damage affects no other.
    pub(crate) fn read_ahead(
        &self,
        todo: &Todo,
        space: Space,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<ReadAhead, Error> {
        if !self.kv.is_remote() {
            return Ok(ReadAhead::default());
        }
        let mut numbers: Vec<u64> = numbers.into_iter().take(MOST + 1).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() < 2 || numbers.len() > MOST {
            return Ok(ReadAhead::default());
        }
        match self.kv.get_each(space, todo.no(), &numbers) {
            Ok(found) => Ok(ReadAhead(numbers.into_iter().zip(found).collect())),
            Err(foldback_kv::Error::Corrupt { .. }) => Ok(ReadAhead::default()),
            Err(error) => Err(Error::of(todo.id(), error)),
        }
    }

    /// Like [`block`](Self::block), for a block that may have been read ahead.
    pub(crate) fn block_ahead(
        &self,
        todo: &Todo,
        n: u32,
        ahead: &ReadAhead,
    ) -> Result<Option<Block>, Error> {
        let n = u64::from(n);
        let bytes = self.get_ahead(todo, Space::Block, n, ahead)?;
        bytes.map(|bytes| read_block(todo, n, &bytes)).transpose()
    }

    /// Like [`vectors`](Self::vectors), for a message whose vectors may have been read ahead.
    pub(crate) fn vectors_ahead(
        &self,
        todo: &Todo,
        seq: u64,
        ahead: &ReadAhead,
    ) -> Result<Option<MessageVectors>, Error> {
        let bytes = self.get_ahead(todo, Space::Vector, seq, ahead)?;
        bytes.map(|bytes| read_vectors(todo, seq, &bytes)).transpose()
    }

    /// Returns a record that may have been read ahead.
    fn get_ahead<'a>(
        &self,
        todo: &Todo,
        space: Space,
        n: u64,
        ahead: &'a ReadAhead,
    ) -> Result<Option<Cow<'a, [u8]>>, Error> {
        match ahead.0.get(&n) {
            Some(known) => Ok(known.as_deref().map(Cow::Borrowed)),
            None => Ok(self.get(todo, space, n)?.map(Cow::Owned)),
        }
    }
}

impl ReadAhead {
    /// Returns the records of a range, if all of it was read ahead.
    pub(super) fn range(&self, range: Range<u64>) -> Option<Scanned> {
        let mut scanned = Scanned::default();
        for n in range {
            if let Some(bytes) = self.0.get(&n)? {
                scanned.found.insert(n, bytes.clone());
            }
        }
        Some(scanned)
    }
}
