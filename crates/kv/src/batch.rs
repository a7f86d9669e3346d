//! What a commit holds.

use std::ops::Range;

use crate::{Error, FORGOTTEN_HEAD, Key, Space};

/// The largest value that a record holds, in bytes (512 MiB). SQLite's own limit is 10^9.
pub const MAX_VALUE_BYTES: usize = 512 << 20;

/// Changes that become durable together.
///
/// Deletions come first, then the puts in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The head that a todo must have for the batch to be taken, if any.
    pub expect: Option<Expect>,
    /// Records to write, in place of what the keys held.
    pub put: Vec<(Key, Vec<u8>)>,
    /// Ranges to delete. What is not there is deleted without a word.
    pub delete: Vec<Delete>,
}

impl Batch {
    /// Whether the batch changes and expects nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.expect.is_none() && self.put.is_empty() && self.delete.is_empty()
    }

    /// Refuses a batch that no engine can hold. An engine calls it before it writes anything.
    ///
    /// # Errors
    ///
    /// [`Error::KeyOutOfRange`] and [`Error::ValueTooLarge`].
    pub fn check(&self) -> Result<(), Error> {
        if let Some(expect) = self.expect {
            Key { space: Space::Todo, todo: expect.todo, n: 0 }.check()?;
            // What was forgotten takes nothing more, also of a writer that has seen as much.
            let (todo, head) = (expect.todo, expect.head);
            if head == FORGOTTEN_HEAD && self.put.iter().any(|(key, _)| key.todo == todo) {
                return Err(Error::Conflict { todo, expected: head, found: head });
            }
        }
        for (key, value) in &self.put {
            key.check()?;
            if value.len() > MAX_VALUE_BYTES {
                return Err(Error::ValueTooLarge {
                    key: *key,
                    bytes: value.len(),
                    most: MAX_VALUE_BYTES,
                });
            }
        }
        for delete in &self.delete {
            Key { space: delete.space, todo: delete.todo, n: 0 }.check()?;
        }
        Ok(())
    }
}

#[cfg(any(feature = "sqlite", feature = "redb"))]
impl crate::group::Weight for Batch {
    fn bytes(&self) -> usize {
        self.put.iter().map(|(_, value)| value.len()).sum()
    }
}

/// Compare-and-set of one todo's head.
///
/// The batch is taken only if the head is `head`, and makes it `next`. A head is whatever number
/// the caller orders a todo's writes by; 0 is the head of a todo that has none, and setting it to
/// 0 forgets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// The todo whose head is compared.
    pub todo: u32,
    /// The head that the writer has seen; 0 for a new todo. A forgotten one has [another](crate::FORGOTTEN_HEAD).
    pub head: u64,
    /// The head after the batch. One that makes it that of a forgotten todo takes the todo out of the registry as well.
    pub next: u64,
}

impl Expect {
    /// The head that an engine stores with the batch; `None` where there is none afterwards. What was
    /// [forgotten](crate::FORGOTTEN_HEAD) is known without one.
    #[must_use]
    pub fn stored(&self) -> Option<u64> {
        Some(self.next).filter(|next| !matches!(*next, 0 | FORGOTTEN_HEAD))
    }
}

/// A range of records to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// The space to delete from.
    pub space: Space,
    /// The todo to delete from.
    pub todo: u32,
    /// The numbers to delete, half open.
    pub range: Range<u64>,
}

impl Delete {
    /// Deletes one record.
    pub const fn one(key: Key) -> Self {
        // Saturating: a key that is out of range is refused by the store, with its own words.
        Self { space: key.space, todo: key.todo, range: key.n..key.n.saturating_add(1) }
    }

    /// Deletes everything that a todo has in a space.
    pub const fn todo(space: Space, todo: u32) -> Self {
        Self { space, todo, range: 0..Key::N_END }
    }
}
