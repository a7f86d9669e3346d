//! The open messages as the block that they would be if they were closed now: what a search and `load`
//! see of a conversation that goes on.

use crate::live::Open;
use crate::memory::Shared;
use crate::recovery::read_open;
use crate::{Error, ErrorKind, Memory};
use foldback_blockstore::Searcher;
use foldback_chunker::{Described, describe};
use foldback_core::{Block, BlockHeader, BlockId, CloseReason, SeqNo, SeqRange, Timestamp, TodoId};
use foldback_kv::Todo;

impl Memory {
    /// The open messages of a todo, as the block that they would be if they were closed now; `None` where
    /// there are none. Its id is the one that the next closed block gets, which begins with the same
    /// message: it can be loaded by that id before and after.
    ///
    /// ```
    /// use foldback::core::{CloseReason, Message, TodoId};
    /// use foldback::{Memory, Options};
    ///
    /// let memory = Memory::in_memory(Options::default())?;
    /// let ports = TodoId::new("ports")?;
    /// memory.session(&ports)?.record(Message::user("八号码头 opens at 06:12."))?;
    /// let open = memory.open_block(&ports)?.ok_or("nothing is open")?;
    /// assert_eq!(open.header.block_id.to_string(), "b_ports_001");
    /// assert_eq!(open.close_reason, CloseReason::Open);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn open_block(&self, todo: &TodoId) -> Result<Option<Block>, Error> {
        self.shared.open_block(&self.find(todo)?)
    }
}

impl Shared {
    /// As [`Memory::open_block`]. Messages that are damaged keep nobody from the closed blocks: there is
    /// no open block then.
    pub(crate) fn open_block(&self, todo: &Todo) -> Result<Option<Block>, Error> {
        match self.read_open_block(todo) {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            found => found,
        }
    }

    fn read_open_block(&self, todo: &Todo) -> Result<Option<Block>, Error> {
        let last = self.blocks.last_block(todo)?;
        let (n, first) = last
            .map_or((0, SeqNo(0)), |block| (block.header.block_id.n(), block.range.last().next()));
        let end = SeqNo(self.blocks.head(todo)?.messages);
        let last = end.0.checked_sub(1).map(SeqNo);
        let Some(range) = last.and_then(|last| SeqRange::new(first, last)) else {
            return Ok(None);
        };
        let open = read_open(self, todo, first, end)?;
        let header = header_of(BlockId::new(todo.id().clone(), n + 1), &open);
        Ok(Some(Block { header, range, close_reason: CloseReason::Open }))
    }

    /// What searches a todo for somebody who does not see its open messages.
    pub(crate) fn searcher_with_open(&self, todo: &Todo) -> Result<Searcher, Error> {
        let open = self.open_block(todo)?;
        let searcher = self.blocks.searcher(todo)?;
        Ok(match open {
            Some(open) => searcher.with_open(open)?,
            None => searcher,
        })
    }
}

/// What these messages are as a block of this id.
pub(crate) fn header_of(id: BlockId, messages: &[Open]) -> BlockHeader {
    let parts: Vec<_> = messages
        .iter()
        .map(|open| {
            Described::new(&open.message, Timestamp(open.recorded_at))
                .with_offloads(&open.offloads)
                .with_recall(open.recall)
        })
        .collect();
    describe(id, &parts)
}
