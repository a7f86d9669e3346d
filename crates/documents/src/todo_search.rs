//! A memory as something to search in: what was said, by the blocks that it stands in.

use foldback::core::{BlockId, Reference, TodoId};
use foldback::{Memory, SearchRequest};
use foldback_deep_search::{Passage, SearchBackend};
use foldback_tool::ToolError;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fmt;

/// The blocks of a todo as something to search in: [`SearchBackend`]. What it finds has the name of its block
/// (`b_trip_003`), by which it can be loaded word for word.
///
/// One todo looks into another's only as far as that was granted to it.
#[derive(Clone)]
pub struct TodoSearch {
    memory: Memory,
    /// Who searches.
    reader: TodoId,
    /// Whose blocks they are.
    todo: TodoId,
}

/// A block with less to do with a query than this is none that it asked for.
const CUTOFF: f32 = 0.3;

/// How much of a block's text is handed on, in bytes.
const MAX_BYTES: usize = 16 << 10;

impl TodoSearch {
    /// Searches in the blocks of `reader` itself.
    #[must_use]
    pub fn own(memory: Memory, reader: TodoId) -> Self {
        Self { memory, todo: reader.clone(), reader }
    }

    /// Searches in the blocks of `todo` that were granted to `reader`.
    #[must_use]
    pub fn granted(memory: Memory, reader: TodoId, todo: TodoId) -> Self {
        Self { memory, reader, todo }
    }

    fn find(&self, query: &str, k: usize) -> Result<Vec<Passage>, foldback::Error> {
        // What was not granted is left out, and more is looked at in its place.
        let wanted = if self.todo == self.reader { k } else { SearchRequest::MAX_K };
        let request = SearchRequest::new(query).k(wanted).cutoff(CUTOFF);
        let mut passages = Vec::new();
        for hit in self.memory.search(&self.todo, &request)?.hits {
            let id = BlockId::new(self.todo.clone(), hit.block.header.block_id.n());
            if !self.may_read(&id) {
                continue;
            }
            passages.push(Passage {
                url: id.to_string(),
                title: hit.block.header.core_semantic.clone(),
                text: self.text(hit.block.range.as_u64())?,
                bytes: None,
            });
            if passages.len() == k {
                break;
            }
        }
        Ok(passages)
    }

    fn may_read(&self, id: &BlockId) -> bool {
        let reference = Reference::Block(id.clone());
        self.memory.references().locate(&self.reader, &reference).is_ok()
    }

    /// The messages of a block, each as its speaker's.
    fn text(&self, range: std::ops::Range<u64>) -> Result<String, foldback::Error> {
        let mut text = String::new();
        for message in self.memory.messages(&self.todo, range)? {
            text.push_str(&format!("{}: {}\n", message.role().as_str(), message.text().trim()));
            if text.len() > MAX_BYTES {
                text.truncate(text.floor_char_boundary(MAX_BYTES));
                break;
            }
        }
        Ok(text)
    }
}

impl SearchBackend for TodoSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        let (search, query) = (self.clone(), query.to_owned());
        async move {
            let found = tokio::task::spawn_blocking(move || search.find(&query, k)).await;
            let found = found.map_err(|error| ToolError::permanent(error.to_string()))?;
            found.map_err(|error| ToolError::permanent(error.to_string()))
        }
        .boxed()
    }
}

impl fmt::Debug for TodoSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TodoSearch")
            .field("reader", &self.reader)
            .field("todo", &self.todo)
            .finish_non_exhaustive()
    }
}
