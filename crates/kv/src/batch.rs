//! The contents of a commit.

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
    /// Records to write, replacing the previous values of their keys.
    pub put: Vec<(Key, Vec<u8>)>,
    /// Ranges to delete. Deleting what does not exist is not an error.
    pub delete: Vec<Delete>,
}

impl Batch {
    /// Returns whether the batch changes and expects nothing.
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
            // A forgotten todo accepts no more writes, even from a writer that knows that it was forgotten.
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

/// A compare-and-set of one todo's head.
///
/// The batch is accepted only if the head is `head`, and sets it to `next`. A head is any number by
/// which the caller orders a todo's writes; 0 is the head of a todo that has none, and setting the
/// head to 0 removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect {
    /// The todo whose head is compared.
    pub todo: u32,
    /// The head that the writer has seen; 0 for a new todo. A forgotten one has [another](crate::FORGOTTEN_HEAD).
    pub head: u64,
    /// The head after the batch. A batch that sets it to that of a forgotten todo must also remove the todo from the
    /// registry.
    pub next: u64,
}

impl Expect {
    /// Returns the head that an engine stores with the batch; `None` if there is none afterwards. A
    /// [forgotten](crate::FORGOTTEN_HEAD) todo is recognised without a stored head.
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
    /// Returns the range that holds one record.
    pub const fn one(key: Key) -> Self {
        // Saturating, because the store refuses a key that is out of range with its own error.
        Self { space: key.space, todo: key.todo, range: key.n..key.n.saturating_add(1) }
    }

    /// Returns the range of everything that a todo has in a space.
    pub const fn todo(space: Space, todo: u32) -> Self {
        Self { space, todo, range: 0..Key::N_END }
    }
}
