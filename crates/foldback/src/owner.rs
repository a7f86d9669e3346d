//! The store in the hands of the person whose it is.

use crate::conversations::origin_of;
use crate::memory::Shared;
use crate::{Error, Memory};
use foldback_blockstore::{AllTodosAnswer, AllTodosRequest, CaughtUp, Origin, Origins};
use foldback_kv::{Registry, Todo};
use std::sync::Arc;

/// The store in the hands of the person whose it is: what looks across todos.
///
/// An agent works in one todo and reaches another by a recorded grant only. The person at the terminal
/// owns all of them, and asks all of them at once. Neither a session nor a recall tool leads here: who
/// opened the memory takes the handle and sees to it that no agent gets it.
///
/// ```
/// use foldback::core::{Message, TodoId};
/// use foldback::{AllTodosRequest, Close, Memory, Options, SearchRequest};
///
/// let memory = Memory::in_memory(Options::default())?;
/// for (todo, said) in [("trip", "The ferry leaves at nine."), ("garden", "Water the beans.")] {
///     let mut session = memory.session(&TodoId::new(todo)?)?;
///     session.record(Message::user(said))?;
///     session.close(Close::End)?;
/// }
/// let answer = memory.owner().search(&AllTodosRequest::new(SearchRequest::new("when is the ferry?")))?;
/// assert_eq!(answer.hits[0].block.header.todo_id.as_str(), "trip");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    memory: &'a Arc<Shared>,
}

impl Memory {
    /// The store in the hands of the person whose it is.
    #[must_use]
    pub fn owner(&self) -> Owner<'_> {
        Owner { memory: &self.shared }
    }
}

impl Owner<'_> {
    /// The blocks of all todos that answer a request best, by words and by meaning, as one list.
    ///
    /// # Errors
    /// When the store fails.
    pub fn search(self, request: &AllTodosRequest<'_>) -> Result<AllTodosAnswer, Error> {
        Ok(self.memory.all_todos.search(request, self.memory.embedder.as_ref())?)
    }

    /// Brings the index over all todos up to date. `report` hears how many blocks are done, and of how
    /// many. Where another process is at it, this waits for its turn.
    ///
    /// # Errors
    /// When the index cannot be written, or the memory can only be read.
    pub fn index(self, mut report: impl FnMut(u64, u64)) -> Result<CaughtUp, Error> {
        self.memory.index_all_todos(true, &mut report)
    }
}

/// Where todos came from, as their import or their run noted it.
pub(crate) struct NotedOrigins(pub(crate) Registry);

impl Origins for NotedOrigins {
    fn origin(&self, todo: &Todo) -> Origin {
        // One that cannot be read is known no more.
        origin_of(&self.0, todo).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
