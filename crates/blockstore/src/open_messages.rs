//! The messages of a todo that no closed block holds.

use crate::Error;
use crate::records::Records;
use foldback_core::{BlockId, SeqNo, SeqRange, StoredMessage};
use foldback_kv::{Space, Todo};
use std::ops::Range;

/// The messages of a todo that no closed block holds.
#[derive(Debug)]
pub struct OpenMessages {
    /// The id that the next closed block gets.
    pub id: BlockId,
    /// Their numbers.
    pub range: SeqRange,
    /// The messages.
    pub messages: Vec<ReadMessage>,
}

/// A message, or why it cannot be read.
pub type ReadMessage = (SeqNo, Result<StoredMessage, Error>);

impl Records {
    /// See [`BlockStore::open_messages`](crate::BlockStore::open_messages).
    pub(crate) fn open_messages(&self, todo: &Todo) -> Result<Option<OpenMessages>, Error> {
        let (n, first) = self.behind_blocks(todo)?;
        let last = self.end(todo)?.checked_sub(1).map(SeqNo);
        let Some(range) = last.and_then(|last| SeqRange::new(first, last)) else {
            return Ok(None);
        };
        let messages = self.messages_each(todo, range.as_u64())?;
        Ok(Some(OpenMessages { id: BlockId::new(todo.id().clone(), n), range, messages }))
    }

    /// See [`BlockStore::messages_each`](crate::BlockStore::messages_each).
    pub(crate) fn messages_each(
        &self,
        todo: &Todo,
        range: Range<u64>,
    ) -> Result<Vec<ReadMessage>, Error> {
        match self.messages(todo, range.clone()) {
            Err(Error::Corrupt { .. }) => {}
            all => return Ok(range.map(SeqNo).zip(all?.into_iter().map(Ok)).collect()),
        }
        let mut found = Vec::new();
        for seq in range {
            let one = match self.messages(todo, seq..seq + 1) {
                Err(error @ Error::Corrupt { .. }) => Some(Err(error)),
                one => one?.pop().map(Ok),
            };
            found.extend(one.map(|one| (SeqNo(seq), one)));
        }
        Ok(found)
    }

    /// Returns the number of the next block, and the message after the last readable block.
    fn behind_blocks(&self, todo: &Todo) -> Result<(u32, SeqNo), Error> {
        let last = match self.last_block(todo) {
            Ok(None) => return Ok((1, SeqNo(0))),
            Ok(Some(block)) => {
                return Ok((block.header.block_id.n() + 1, block.range.last().next()));
            }
            // A damaged last block is still the last.
            Err(Error::Corrupt { key, .. }) if key.space == Space::Block => key.n as u32,
            Err(error) => return Err(error),
        };
        for n in (1..last).rev() {
            match self.block(todo, n) {
                Ok(Some(block)) => return Ok((last + 1, block.range.last().next())),
                Ok(None) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((last + 1, SeqNo(0)))
    }
}
