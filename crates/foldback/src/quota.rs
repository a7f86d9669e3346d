//! Limits on what a store and one todo may hold.

use crate::error::Failure;
use crate::live::Live;
use crate::memory::Shared;
use crate::record::Draft;
use crate::{Error, ErrorKind, Session};
use foldback_core::{Piece, StoredMessage, TodoId};
use foldback_kv::{Batch, Error as KvError, Expect, Key, Kv, Space, Todo, retry};
use serde::{Deserialize, Serialize};

/// Limits on what a store and one todo may hold; `None`, the default, for as much as fits on the disk. What would exceed a
/// limit is refused ([`Quota`](crate::ErrorKind::Quota)), and everything before stays.
///
/// ```
/// use foldback::core::{Message, TodoId};
/// use foldback::{ErrorKind, Memory, Options, Quota};
///
/// let options = Options::default().with_quota(Quota::default().with_messages(1));
/// let memory = Memory::in_memory(options)?;
/// let mut session = memory.session(&TodoId::new("short")?)?;
/// session.record(Message::user("one"))?;
/// assert_eq!(session.record(Message::user("two")).unwrap_err().kind(), ErrorKind::Quota);
/// assert_eq!(session.len(), 1);
/// # Ok::<(), foldback::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Quota {
    /// Messages.
    pub messages: Option<u64>,
    /// Closed blocks.
    pub blocks: Option<u32>,
    /// Bytes of messages, including large parts, before compression.
    pub bytes: Option<u64>,
    /// Bytes of one part that is stored outside its message.
    pub payload_bytes: Option<u64>,
    /// Todos of the store. Together with a limit of bytes per todo, this limits the store as a whole.
    pub todos: Option<u32>,
}

impl Quota {
    /// Sets the limit of messages.
    #[must_use]
    pub fn with_messages(mut self, most: impl Into<Option<u64>>) -> Self {
        self.messages = most.into();
        self
    }

    /// Sets the limit of closed blocks.
    #[must_use]
    pub fn with_blocks(mut self, most: impl Into<Option<u32>>) -> Self {
        self.blocks = most.into();
        self
    }

    /// Sets the limit of bytes of messages.
    #[must_use]
    pub fn with_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.bytes = most.into();
        self
    }

    /// Sets the limit of bytes of one part that is stored outside its message.
    #[must_use]
    pub fn with_payload_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.payload_bytes = most.into();
        self
    }

    /// Sets the limit of todos of the store.
    #[must_use]
    pub fn with_todos(mut self, most: impl Into<Option<u32>>) -> Self {
        self.todos = most.into();
        self
    }

    /// Returns the stricter limit of each pair.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        fn least<T: Ord + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.into_iter().chain(b).min()
        }
        Self {
            messages: least(self.messages, other.messages),
            blocks: least(self.blocks, other.blocks),
            bytes: least(self.bytes, other.bytes),
            payload_bytes: least(self.payload_bytes, other.payload_bytes),
            todos: least(self.todos, other.todos),
        }
    }

    /// Checks that a part of this many bytes may be stored.
    pub(crate) fn check_payload(&self, todo: &TodoId, bytes: u64) -> Result<(), Error> {
        check(todo, bytes, self.payload_bytes, "bytes in one payload", "memory.max_payload_bytes")
    }

    /// Checks that a todo stays within its limits in the state `live`.
    pub(crate) fn check(&self, todo: &TodoId, messages: u64, live: &Live) -> Result<(), Error> {
        check(todo, messages, self.messages, "messages", "memory.max_messages")?;
        let blocks = (u64::from(live.blocks), self.blocks.map(u64::from));
        check(todo, blocks.0, blocks.1, "blocks", "memory.max_blocks")?;
        check(todo, live.bytes.unwrap_or_default(), self.bytes, "bytes", "memory.max_bytes")
    }
}

fn check(
    todo: &TodoId,
    found: u64,
    most: Option<u64>,
    what: &'static str,
    setting: &'static str,
) -> Result<(), Error> {
    match most.filter(|most| found > *most) {
        Some(most) => Err(Failure::Quota { todo: todo.clone(), what, most, setting }.into()),
        None => Ok(()),
    }
}

/// The limits that a store has itself, whatever options it is opened with.
pub(crate) const OF_STORE: Key = Key { space: Space::Meta, todo: 0, n: 9 };

/// Returns the limits that a store has itself.
pub(crate) fn of_store(kv: &dyn Kv) -> Result<Quota, Error> {
    let Some(bytes) = kv.get(OF_STORE)? else { return Ok(Quota::default()) };
    let detail = |error: rmp_serde::decode::Error| error.to_string();
    let read = rmp_serde::from_slice(&bytes).map_err(detail);
    Ok(read.map_err(|detail| KvError::Corrupt { key: OF_STORE, detail })?)
}

/// Gives a store limits of its own.
pub(crate) fn set_of_store(kv: &dyn Kv, quota: &Quota) -> Result<(), Error> {
    let bytes = rmp_serde::to_vec_named(quota)
        .map_err(|_| Error::from(Failure::Internal("the limits have no bytes")))?;
    Ok(kv.commit(Batch { put: vec![(OF_STORE, bytes)], ..Batch::default() })?)
}

/// Returns how many bytes a message counts for.
pub(crate) fn bytes_of(stored: &StoredMessage) -> u64 {
    let texts = stored.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.len() as u64,
        Piece::Hole { .. } => 0,
    });
    texts.sum::<u64>() + stored.offloads.iter().map(|offload| offload.bytes).sum::<u64>()
}

/// How many bytes the first messages of a todo have.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Counted {
    messages: u64,
    bytes: u64,
}

impl Counted {
    fn add(&mut self, stored: &StoredMessage) {
        self.bytes = self.bytes.saturating_add(bytes_of(stored));
    }

    fn to_bytes(self) -> Result<Vec<u8>, Error> {
        rmp_serde::to_vec(&self).map_err(|_| Failure::Internal("a count has no bytes").into())
    }
}

/// Decodes a count; `None` if it is damaged.
fn unless_damaged<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        read => read.map(Some),
    }
}

/// Messages are counted in steps of this many.
const STEP: u64 = 512;

impl Shared {
    /// Returns how many bytes the first `messages` of a todo have; 0 if they are not limited. What was recorded
    /// without a limit is counted now, and so is everything if the record of the count is damaged; `None` if a message
    /// is damaged, too.
    pub(crate) fn bytes_held(&self, todo: &Todo, messages: u64) -> Result<Option<u64>, Error> {
        if self.quota.bytes.is_none() {
            return Ok(Some(0));
        }
        let known = unless_damaged(self.read_count(todo))?.flatten();
        let mut counted = known.filter(|known| known.messages <= messages).unwrap_or_default();
        while counted.messages < messages {
            let to = messages.min(counted.messages + STEP);
            let stored = self.blocks.messages(todo, counted.messages..to).map_err(Error::from);
            let Some(stored) = unless_damaged(stored)? else { return Ok(None) };
            stored.iter().for_each(|stored| counted.add(stored));
            counted.messages = to;
        }
        Ok(Some(counted.bytes))
    }

    /// Reads the record of the count of a todo's bytes.
    fn read_count(&self, todo: &Todo) -> Result<Option<Counted>, Error> {
        let Some(bytes) = self.kv.get(key(todo))? else { return Ok(None) };
        let damaged = |_| Failure::Count(todo.id().clone()).into();
        rmp_serde::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Checks that the record of the count of a todo's bytes can be read, if there is one.
    ///
    /// # Errors
    /// When it is damaged, or the store fails.
    pub(crate) fn check_count(&self, todo: &Todo) -> Result<(), Error> {
        self.read_count(todo).map(drop)
    }

    /// Recounts a todo's bytes if the count is damaged, or cannot be made because a message is, and returns whether it
    /// did. A damaged message counts as nothing.
    pub(crate) fn repair_count(&self, todo: &Todo) -> Result<bool, Error> {
        let is_there = unless_damaged(self.read_count(todo))?.is_some();
        if is_there && self.bytes_held(todo, self.blocks.head(todo)?.messages)?.is_some() {
            return Ok(false);
        }
        retry(|| {
            let head = self.kv.head(todo.no())?;
            let mut counted = Counted::default();
            for n in 0..self.blocks.head(todo)?.messages {
                let stored = self.blocks.messages(todo, n..n + 1).map_err(Error::from);
                unless_damaged(stored)?.iter().flatten().for_each(|stored| counted.add(stored));
                counted.messages = n + 1;
            }
            let expect = Some(Expect { todo: todo.no(), head, next: head });
            let put = vec![(key(todo), counted.to_bytes()?)];
            Ok::<_, Error>(self.kv.commit(Batch { expect, put, ..Batch::default() })?)
        })?;
        Ok(true)
    }

    /// Returns the record of how many bytes the first `messages` messages have.
    pub(crate) fn counted(
        &self,
        todo: &Todo,
        messages: u64,
        bytes: u64,
    ) -> Result<Option<(Key, Vec<u8>)>, Error> {
        if self.quota.bytes.is_none() {
            return Ok(None);
        }
        Ok(Some((key(todo), Counted { messages, bytes }.to_bytes()?)))
    }
}

impl Session {
    /// Checks that a draft is within the limits of its todo, and counts its bytes. Returns the records that go with it:
    /// how many bytes there are, and which numbers secrets have.
    pub(crate) fn check_and_count(
        &self,
        live: &mut Live,
        draft: &Draft,
    ) -> Result<Vec<(Key, Vec<u8>)>, Error> {
        let (memory, messages) = (&self.memory, self.len() + draft.messages.len() as u64);
        if !draft.messages.is_empty() && memory.quota.bytes.is_some() {
            let held = match live.bytes {
                Some(held) => Some(held),
                // It may have been recounted.
                None => memory.bytes_held(&self.todo, self.len())?,
            };
            let mut held = held.ok_or_else(|| Failure::Uncounted(self.todo().clone()))?;
            for new in &draft.messages {
                held = held.saturating_add(bytes_of(&new.stored));
            }
            live.bytes = Some(held);
        }
        if !draft.messages.is_empty() || live.blocks > self.live.blocks {
            memory.quota.check(self.todo(), messages, live)?;
        }
        let counted = match live.bytes.filter(|_| !draft.messages.is_empty()) {
            Some(bytes) => memory.counted(&self.todo, messages, bytes)?,
            None => None,
        };
        let numbers = live.numbers_since(&self.live, &self.todo)?;
        Ok(counted.into_iter().chain(numbers).collect())
    }
}

/// The record is beside the todo list and the redaction records.
fn key(todo: &Todo) -> Key {
    Key { space: Space::Plan, todo: todo.no(), n: 4 }
}

#[cfg(test)]
mod tests;
