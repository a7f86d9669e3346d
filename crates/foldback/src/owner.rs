//! The owner's access to a store.

use crate::conversations::origin_of;
use crate::memory::Shared;
use crate::{Error, Memory};
use foldback_blockstore::{
    AllTodosAnswer, AllTodosRequest, CaughtUp, Hit, Origin, Origins, Unsearched, UnsearchedPart,
    WhyUnsearched,
};
use foldback_core::Reference;
use foldback_disclosure::{Answer, SearchElsewhere, load_elsewhere};
use foldback_kv::{Error as KvError, Registry, Todo};
use std::sync::Arc;

/// The owner's access to a store, which searches across todos.
///
/// An agent works in one todo and reaches another only by a recorded grant. The person at the terminal
/// owns all of them and searches all of them at once. Neither a session nor a recall tool leads here:
/// the caller that opened the memory takes the handle and ensures that no agent gets it.
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
    /// Returns the owner's access to a store.
    #[must_use]
    pub fn owner(&self) -> Owner<'_> {
        Owner { memory: &self.shared }
    }
}

impl Owner<'_> {
    /// Returns the blocks of all todos that best answer a request, by words and by meaning, as one list.
    ///
    /// # Errors
    /// When the store fails.
    pub fn search(self, request: &AllTodosRequest<'_>) -> Result<AllTodosAnswer, Error> {
        let answer = self.found(request)?;
        self.memory.note_search(None, request.query(), &answer.hits)?;
        Ok(answer)
    }

    fn found(self, request: &AllTodosRequest<'_>) -> Result<AllTodosAnswer, Error> {
        Ok(self.memory.all_todos.search(request, self.memory.embedder.as_ref())?)
    }

    /// Answers `search_block` over all todos and `load` of a full reference, as the tools of one todo do:
    /// for a program that the owner allows to read everything. Open messages are not searched. For any
    /// other tool, the answer is an error that says that it does not work on all todos.
    ///
    /// # Errors
    /// When the store fails.
    pub fn recall(self, tool: &str, arguments: &str) -> Result<Answer, Error> {
        let answer = match tool {
            "search_block" => self.search_block(arguments)?,
            "load" => self.load(arguments)?,
            _ => Answer::error(
                tool,
                "It works in one conversation, and none is chosen here. search_block looks into all of \
                 them, and load reads what it names.",
            ),
        };
        self.memory.note_call(None, tool, arguments, &answer)?;
        Ok(answer)
    }

    fn search_block(self, arguments: &str) -> Result<Answer, Error> {
        let asked = match SearchElsewhere::read(arguments) {
            Ok(asked) => asked,
            Err(answer) => return Ok(*answer),
        };
        let AllTodosAnswer { mut hits, waiting, mut not_searched, .. } =
            self.found(&AllTodosRequest::new(asked.request()))?;
        // Even among all todos, a block that shares neither a word nor any meaning answers nothing.
        hits.retain(|hit| hit.bm25 > 0.0 || hit.cosine > 0.0);
        let mut found: Vec<(Todo, Hit)> = Vec::with_capacity(hits.len());
        for hit in hits {
            let header = &hit.block.header;
            match self.memory.registry.find(&header.todo_id) {
                Ok(Some(todo)) => found.push((todo, hit)),
                // A block that was forgotten since it was found is no longer an answer.
                Ok(None) => {}
                Err(KvError::Corrupt { .. }) => not_searched.parts.push(Unsearched {
                    todo: Some(header.todo_id.clone()),
                    part: UnsearchedPart::Block(header.block_id.clone()),
                    why: WhyUnsearched::Damaged,
                }),
                Err(error) => return Err(error.into()),
            }
        }
        let found: Vec<_> =
            found.iter().map(|(todo, hit)| (self.memory.recall_source(todo, None), hit)).collect();
        Ok(asked.answer(&found, waiting, &not_searched)?)
    }

    fn load(self, arguments: &str) -> Result<Answer, Error> {
        #[derive(serde::Deserialize)]
        struct Asked {
            r#ref: String,
        }
        let named = serde_json::from_str::<Asked>(arguments).ok();
        let reference = named.and_then(|asked| asked.r#ref.trim().parse::<Reference>().ok());
        let wrong = |what: &str| {
            let how = "Use a full name as search_block shows it: b_<todo>_<nnn> for a block, \
                       store://<todo>/<n>-<check> for a stored part.";
            Ok(Answer::error("load", &format!("{what} {how}")))
        };
        let Some(reference) = reference else { return wrong("\"ref\" names nothing.") };
        let Some(todo) = self.memory.registry.find(reference.todo())? else {
            return wrong("Nothing is stored under this name.");
        };
        let open = self.memory.open_block(&todo)?;
        let source = self.memory.recall_source(&todo, open.as_ref());
        Ok(load_elsewhere(&source, &reference, arguments)?)
    }

    /// Brings the index over all todos up to date. `report` is called with how many blocks are done,
    /// and of how many. If another process is doing so, this waits for its turn.
    ///
    /// # Errors
    /// When the index cannot be written, or the memory is read-only.
    pub fn index(self, mut report: impl FnMut(u64, u64)) -> Result<CaughtUp, Error> {
        self.memory.index_all_todos(true, &mut report)
    }
}

/// The origins of todos, as noted by their import or their run.
pub(crate) struct NotedOrigins(pub(crate) Registry);

impl Origins for NotedOrigins {
    fn origin(&self, todo: &Todo) -> Origin {
        // An origin that cannot be read is unknown.
        origin_of(&self.0, todo).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
