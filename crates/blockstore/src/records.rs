//! The truth: messages, blocks, vectors and session states, read and written as records.

mod read_ahead;
mod scanned;
mod tail;
mod texts;
mod write;

pub(crate) use read_ahead::ReadAhead;
pub(crate) use scanned::Scanned;
use tail::Tail;
pub(crate) use texts::pages;

use crate::disk::{Indexed, Manifest, Sealing};
use crate::omission::Omission;
use crate::payload_texts::PayloadTexts;
use crate::vectors::{self, MessageVectors};
use crate::{Error, Head};
use foldback_core::{Block, Offload, PayloadRef, SeqNo, StoredMessage, TodoId};
use foldback_kv::{Key, Kv, Space, Todo};
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::Arc;

/// The records of all todos; each method reads those of one.
#[derive(Clone)]
pub(crate) struct Records {
    kv: Arc<dyn Kv>,
    texts: Option<Arc<dyn PayloadTexts>>,
    /// The newest records of one todo, if they were read at once.
    tail: Option<Arc<Tail>>,
}

/// What a block is known by.
#[derive(Clone, Copy)]
pub(crate) struct Anchor {
    /// The hash of its record.
    pub(crate) hash: u64,
    /// The message after its last one, if the record can be read.
    pub(crate) end: Option<u64>,
}

impl Anchor {
    fn of(todo: &Todo, n: u64, record: &[u8]) -> Self {
        let block = read_block(todo, n, record);
        let end = block.ok().map(|block| block.range.last().next().0);
        Self { hash: Manifest::anchor(record), end }
    }
}

impl Records {
    pub(crate) fn new(kv: Arc<dyn Kv>, texts: Option<Arc<dyn PayloadTexts>>) -> Self {
        Self { kv, texts, tail: None }
    }

    /// Returns the key that seals the indexes of a todo, or with 0 those of many, if the store is encrypted.
    pub(crate) fn sealing(&self, todo: u32, folder: Indexed) -> Option<Sealing> {
        match self.kv.cipher(todo) {
            Ok(cipher) => cipher.map(|cipher| Sealing::new(Some(cipher), folder)),
            // It was forgotten, or its key cannot be read: nothing is searched or written without it.
            Err(_) => Some(Sealing::new(None, folder)),
        }
    }

    pub(crate) fn changed(&self) -> Result<u64, Error> {
        self.kv.changed().map_err(Error::Kv)
    }

    /// Returns a number that changes with every commit to the todo.
    pub(crate) fn changed_in(&self, todo: &Todo) -> Result<u64, Error> {
        self.kv.changed_in(todo.no()).map_err(Error::Kv)
    }

    pub(crate) fn head(&self, todo: &Todo) -> Result<Head, Error> {
        let head = match self.tail_of(todo) {
            Some(tail) => tail.head(),
            None => self.kv.head(todo.no()).map_err(|error| Error::of(todo.id(), error))?,
        };
        Ok(Head::from_number(head))
    }

    pub(crate) fn session(&self, todo: &Todo) -> Result<Option<Vec<u8>>, Error> {
        self.get(todo, Space::Session, 0)
    }

    /// Returns the messages of a range, as far as they are recorded, without a gap.
    pub(crate) fn messages(
        &self,
        todo: &Todo,
        range: Range<u64>,
    ) -> Result<Vec<StoredMessage>, Error> {
        let range = range.start..range.end.min(self.end(todo)?);
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.scan(todo, Space::Message, range.clone(), usize::MAX)?;
        let mut messages = Vec::with_capacity(found.len());
        let mut found = found.into_iter();
        for seq in range {
            match found.next() {
                Some((n, bytes)) if n == seq => {
                    messages.push(read(todo, key(Space::Message, todo, seq), &bytes)?);
                }
                _ => return Err(missing(todo, key(Space::Message, todo, seq))),
            }
        }
        Ok(messages)
    }

    /// Returns the number after the last message: from the head, or from the messages if the head is damaged.
    pub(crate) fn end(&self, todo: &Todo) -> Result<u64, Error> {
        match self.head(todo) {
            Err(Error::Kv(foldback_kv::Error::CorruptHead { .. })) => {}
            head => return Ok(head?.messages),
        }
        match self.kv.last(Space::Message, todo.no()) {
            Ok(last) => Ok(last.map_or(0, |(n, _)| n + 1)),
            Err(foldback_kv::Error::Corrupt { key, .. }) => Ok(key.n + 1),
            Err(error) => Err(Error::of(todo.id(), error)),
        }
    }

    /// Returns the id of the todo with this number from its last block, for use when its own record does not give it.
    pub(crate) fn id_by_blocks(&self, no: u32) -> Option<TodoId> {
        let (_, bytes) = self.kv.last(Space::Block, no).ok()??;
        let block: Block = rmp_serde::from_slice(&bytes).ok()?;
        Some(block.header.todo_id)
    }

    /// Returns whether a message can be read.
    pub(crate) fn has_message(&self, todo: &Todo, seq: u64) -> bool {
        let found = self.get(todo, Space::Message, seq).ok().flatten();
        found.is_some_and(|bytes| rmp_serde::from_slice::<StoredMessage>(&bytes).is_ok())
    }

    pub(crate) fn block(&self, todo: &Todo, n: u32) -> Result<Option<Block>, Error> {
        let bytes = self.get(todo, Space::Block, u64::from(n))?;
        bytes.map(|bytes| read_block(todo, u64::from(n), &bytes)).transpose()
    }

    /// Returns the record of a block as it is in the store.
    pub(crate) fn block_bytes(&self, todo: &Todo, n: u32) -> Result<Option<Vec<u8>>, Error> {
        self.get(todo, Space::Block, u64::from(n))
    }

    pub(crate) fn blocks(
        &self,
        todo: &Todo,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Block>, Error> {
        let from = u64::from(after) + 1;
        let found = self.scan(todo, Space::Block, from..Key::N_END, limit)?;
        let mut blocks = Vec::with_capacity(found.len());
        for ((n, bytes), expected) in found.into_iter().zip(from..) {
            if n != expected {
                return Err(missing(todo, key(Space::Block, todo, expected)));
            }
            blocks.push(read_block(todo, n, &bytes)?);
        }
        Ok(blocks)
    }

    pub(crate) fn last_block(&self, todo: &Todo) -> Result<Option<Block>, Error> {
        match self.last_block_bytes(todo)? {
            Some((n, bytes)) => read_block(todo, n, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the number of the last block, 0 when there is none, and what it is known by, unless it is damaged.
    pub(crate) fn last_anchor(&self, todo: &Todo) -> Result<(u32, Option<Anchor>), Error> {
        match self.last_block_bytes(todo) {
            Ok(Some((n, bytes))) => Ok((n as u32, Some(Anchor::of(todo, n, &bytes)))),
            Ok(None) => Ok((0, None)),
            Err(Error::Corrupt { key, .. }) => Ok((key.n as u32, None)),
            Err(error) => Err(error),
        }
    }

    /// Returns what a block is known by, unless it is damaged.
    pub(crate) fn anchor(&self, todo: &Todo, n: u32) -> Result<Option<Anchor>, Error> {
        match self.block_bytes(todo, n) {
            Ok(found) => Ok(found.map(|bytes| Anchor::of(todo, n.into(), &bytes))),
            Err(Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number of the last block; 0 when there is none.
    pub(crate) fn last_block_n(&self, todo: &Todo) -> Result<u32, Error> {
        // A damaged last block is still the last one.
        Ok(self.last_anchor(todo)?.0)
    }

    fn last_block_bytes(&self, todo: &Todo) -> Result<Option<(u64, Vec<u8>)>, Error> {
        if let Some(known) = self.tail_of(todo).and_then(|tail| tail.last(Space::Block)) {
            return Ok(known);
        }
        self.kv.last(Space::Block, todo.no()).map_err(|error| Error::of(todo.id(), error))
    }

    pub(crate) fn vectors(&self, todo: &Todo, seq: u64) -> Result<Option<MessageVectors>, Error> {
        let bytes = self.get(todo, Space::Vector, seq)?;
        bytes.map(|bytes| read_vectors(todo, seq, &bytes)).transpose()
    }

    /// See [`BlockStore::without_vectors`](crate::BlockStore::without_vectors).
    pub(crate) fn without_vectors(
        &self,
        todo: &Todo,
        model_id: &str,
        range: Range<u64>,
    ) -> Result<Vec<SeqNo>, Error> {
        let Scanned { found, .. } = self.scanned(todo, Space::Vector, range.clone())?;
        let is_of_model = |bytes: &Vec<u8>| {
            vectors::decode(bytes).is_ok_and(|vectors| vectors.model_id == model_id)
        };
        let lacks = |n: &u64| !found.get(n).is_some_and(is_of_model);
        Ok(range.filter(lacks).map(SeqNo).collect())
    }

    /// Returns how the messages of a block, which may have been read ahead, refer to the payloads that they carry. Messages
    /// that cannot be read go to `omissions`.
    pub(crate) fn payload_refs(
        &self,
        todo: &Todo,
        block: &Block,
        ahead: &ReadAhead,
        omissions: &mut Vec<Omission>,
    ) -> Result<Vec<PayloadRef>, Error> {
        let range = block.range.as_u64();
        let found = match ahead.range(range.clone()) {
            Some(found) => found,
            None => self.scanned(todo, Space::Message, range)?,
        };
        let messages = scanned::messages_of(block.header.block_id.n(), block, &found, omissions);
        let offloads = messages.iter().flat_map(|stored| &stored.offloads);
        Ok(offloads.map(Offload::reference).collect())
    }

    /// Returns the first record from `n` on, if any can be read.
    pub(crate) fn scan_around_one(
        &self,
        todo: &Todo,
        space: Space,
        n: u64,
    ) -> Result<Option<(u64, Vec<u8>)>, Error> {
        match self.scan(todo, space, n..Key::N_END, 1) {
            Ok(found) => Ok(found.into_iter().next()),
            Err(Error::Corrupt { key, .. }) => Ok(Some((key.n, Vec::new()))),
            Err(error) => Err(error),
        }
    }

    /// Returns the records of a range that can be read.
    pub(crate) fn scan_around(
        &self,
        todo: &Todo,
        space: Space,
        range: Range<u64>,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        Ok(self.scanned(todo, space, range)?.found.into_iter().collect())
    }

    /// Returns the records of a range that can be read, and which ones are damaged.
    pub(crate) fn scanned(
        &self,
        todo: &Todo,
        space: Space,
        range: Range<u64>,
    ) -> Result<Scanned, Error> {
        let mut scanned = Scanned::default();
        let mut from = range.start;
        while from < range.end {
            match self.scan(todo, space, from..range.end, usize::MAX) {
                Ok(rest) => {
                    scanned.found.extend(rest);
                    break;
                }
                Err(Error::Corrupt { key, .. }) if (from..range.end).contains(&key.n) => {
                    if from < key.n {
                        scanned.found.extend(self.scan(todo, space, from..key.n, usize::MAX)?);
                    }
                    scanned.damaged.insert(key.n);
                    from = key.n + 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(scanned)
    }

    pub(crate) fn scan(
        &self,
        todo: &Todo,
        space: Space,
        range: Range<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let known = self.tail_of(todo).and_then(|tail| tail.scan(space, range.clone(), limit));
        if let Some(known) = known {
            return Ok(known);
        }
        self.kv.scan(space, todo.no(), range, limit).map_err(|error| Error::of(todo.id(), error))
    }

    pub(crate) fn get(&self, todo: &Todo, space: Space, n: u64) -> Result<Option<Vec<u8>>, Error> {
        if let Some(known) = self.tail_of(todo).and_then(|tail| tail.get(space, n)) {
            return Ok(known);
        }
        self.kv.get(key(space, todo, n)).map_err(|error| Error::of(todo.id(), error))
    }

    /// Returns whether each read asks a server.
    pub(crate) fn are_remote(&self) -> bool {
        self.kv.is_remote()
    }

    /// Returns whether the index of a todo is copied into the store, for other machines.
    pub(crate) fn shares_indexes(&self) -> bool {
        self.kv.shares_derived()
    }
}

pub(crate) fn key(space: Space, todo: &Todo, n: u64) -> Key {
    Key { space, todo: todo.no(), n }
}

pub(crate) fn read<T: DeserializeOwned>(todo: &Todo, key: Key, bytes: &[u8]) -> Result<T, Error> {
    rmp_serde::from_slice(bytes).map_err(|error| Error::Corrupt {
        todo: todo.id().clone(),
        key,
        detail: format!("it cannot be read: {error}"),
    })
}

/// Returns the block of a record, which must be the one that belongs there.
fn read_block(todo: &Todo, n: u64, bytes: &[u8]) -> Result<Block, Error> {
    let key = key(Space::Block, todo, n);
    let block: Block = read(todo, key, bytes)?;
    let id = &block.header.block_id;
    let is_own = id.todo() == todo.id() && block.header.todo_id == *todo.id();
    if is_own && u64::from(id.n()) == n {
        return Ok(block);
    }
    let detail = format!("it belongs to {id} of the todo {}", block.header.todo_id);
    Err(Error::Corrupt { todo: todo.id().clone(), key, detail })
}

/// Returns the vectors of a record.
fn read_vectors(todo: &Todo, seq: u64, bytes: &[u8]) -> Result<MessageVectors, Error> {
    vectors::decode(bytes).map_err(|detail| {
        let (todo, key) = (todo.id().clone(), key(Space::Vector, todo, seq));
        Error::Corrupt { todo, key, detail }
    })
}

fn missing(todo: &Todo, key: Key) -> Error {
    Error::Corrupt {
        todo: todo.id().clone(),
        key,
        detail: "it is missing, though later ones exist".to_owned(),
    }
}
