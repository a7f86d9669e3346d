//! What the recall tools read from.

use crate::ledger::shown_id;
use crate::{Error, LiveView, Marks};
use foldback_backend_store::BackendStore;
use foldback_blockstore::{BlockStore, Error as BlockError, Searcher};
use foldback_core::{Block, BlockId, CloseReason, Embedder, Reference, TokenCounter};
use foldback_kv::Todo;

/// What the recall tools read from: one todo's blocks and payloads. Nothing is written.
#[derive(Clone, Copy)]
pub struct RecallSource<'a> {
    /// The session's own todo; of others only what was granted to it can be reached, by its name.
    pub todo: &'a Todo,
    /// The marks that recorded text stands between in that todo's answers, whatever todo it is of.
    pub marks: Marks,
    /// Its messages and blocks.
    pub blocks: &'a BlockStore,
    /// Its payloads.
    pub payloads: &'a BackendStore,
    /// What makes a vector of a question.
    pub embedder: &'a dyn Embedder,
    /// What budgets are counted with.
    pub tokens: &'a dyn TokenCounter,
    /// What was granted to the todo; `None` for nothing.
    pub grants: Option<&'a dyn Grants>,
    /// Whether the task is a complex one: then less similar blocks are answers too.
    pub complex: bool,
    /// The open messages of the todo as a block, for a reader that does not have them in view.
    pub open: Option<&'a Block>,
    /// What the reader has in view, where that is known: a search does not quote what always stands there.
    pub view: Option<&'a LiveView>,
}

impl RecallSource<'_> {
    /// What searches the todo.
    pub(crate) fn searcher(&self) -> Result<Searcher, BlockError> {
        let searcher = self.blocks.searcher(self.todo)?;
        match self.open {
            Some(open) => searcher.with_open(open.clone()),
            None => Ok(searcher),
        }
    }

    /// The block of this number, closed or open.
    pub(crate) fn block(&self, id: &BlockId) -> Result<Option<Block>, BlockError> {
        let closed = self.blocks.block(self.todo, id.n())?;
        let open = self.open.filter(|open| open.header.block_id == *id);
        Ok(closed.or_else(|| open.cloned()))
    }
}

/// A block's name as answers say it, and whether it is open.
pub(crate) fn named(block: &Block) -> String {
    let id = shown_id(&block.header.block_id);
    match block.close_reason {
        CloseReason::Open => format!("{id} (still open)"),
        _ => id,
    }
}

/// What of other todos a todo may read.
pub trait Grants: Sync {
    /// The other todo, where this very block or payload of it was granted to `to`. `None` for what
    /// was not granted and for what never was: the two are told alike.
    ///
    /// # Errors
    /// When the store fails.
    fn granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, Error>;
}
