//! The source of the recall tools.

use crate::ledger::shown_id;
use crate::{Error, LiveView, Marks};
use foldback_backend_store::BackendStore;
use foldback_blockstore::{BlockStore, Error as BlockError, Searcher};
use foldback_core::{Block, BlockId, CloseReason, Embedder, Reference, TokenCounter};
use foldback_kv::Todo;

/// The source of the recall tools: one todo's blocks and payloads. Nothing is written.
#[derive(Clone, Copy)]
pub struct RecallSource<'a> {
    /// The session's own todo; of others, only what was granted to it can be reached, by name.
    pub todo: &'a Todo,
    /// The marks around recorded text in that todo's answers, whatever todo the text is from.
    pub marks: Marks,
    /// Its messages and blocks.
    pub blocks: &'a BlockStore,
    /// Its payloads.
    pub payloads: &'a BackendStore,
    /// The embedder of questions.
    pub embedder: &'a dyn Embedder,
    /// The token counter of budgets.
    pub tokens: &'a dyn TokenCounter,
    /// The grants to the todo; `None` for none.
    pub grants: Option<&'a dyn Grants>,
    /// Whether the task is a complex one: then less similar blocks are answers too.
    pub complex: bool,
    /// The open messages of the todo as a block, for a reader that does not have them in view.
    pub open: Option<&'a Block>,
    /// What the reader has in view, if known: a search does not quote what is always there.
    pub view: Option<&'a LiveView>,
}

impl RecallSource<'_> {
    /// Returns the search of the todo.
    pub(crate) fn searcher(&self) -> Result<Searcher, BlockError> {
        let searcher = self.blocks.searcher(self.todo)?;
        match self.open {
            Some(open) => searcher.with_open(open.clone()),
            None => Ok(searcher),
        }
    }

    /// Returns the block with this number, closed or open.
    pub(crate) fn block(&self, id: &BlockId) -> Result<Option<Block>, BlockError> {
        let closed = self.blocks.block(self.todo, id.n())?;
        let open = self.open.filter(|open| open.header.block_id == *id);
        Ok(closed.or_else(|| open.cloned()))
    }
}

/// Returns a block's name as answers give it, and whether it is open.
pub(crate) fn named(block: &Block) -> String {
    let id = shown_id(&block.header.block_id);
    match block.close_reason {
        CloseReason::Open => format!("{id} (still open)"),
        _ => id,
    }
}

/// The parts of other todos that a todo may read.
pub trait Grants: Sync {
    /// Returns the other todo if this very block or payload of it was granted to `to`. `None` for
    /// what was not granted and for what never existed: both are reported alike.
    ///
    /// # Errors
    /// When the store fails.
    fn granted(&self, to: &Todo, reference: &Reference) -> Result<Option<Todo>, Error>;
}
