//! The contents of one transaction that writes to the truth.

use crate::Head;
use foldback_core::{Block, StoredMessage, Vectors};
use foldback_kv::{Delete, Key, Todo};

/// Everything that becomes durable together: messages, the blocks that they close, the state of the
/// session after them, and what other crates add.
#[derive(Debug)]
pub struct Commit<'a> {
    /// The todo that is written to.
    pub todo: &'a Todo,
    /// The todo's head before the commit. The first new message gets the number `head.messages`.
    pub head: Head,
    /// The new messages, in order.
    pub messages: &'a [NewMessage],
    /// The blocks that close, in order. Their messages may have been written before.
    pub blocks: &'a [Block],
    /// The state of the session after this commit. It is kept unchanged.
    pub session: Vec<u8>,
    /// More records of the same todo, for example of payloads.
    pub extra: Vec<(Key, Vec<u8>)>,
    /// Records of the same todo to delete; deletions come before all writes.
    pub delete: Vec<Delete>,
}

/// A message that is to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// The stored message.
    pub stored: StoredMessage,
    /// Its vectors: none, or one for each part in which it was embedded. They are stored in half
    /// precision.
    pub vectors: Vectors,
}
