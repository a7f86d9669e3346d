//! A memory as a source to search: what was said, by the blocks that contain it.

use foldback::core::{BlockId, Reference, TodoId};
use foldback::{ErrorKind, Memory, SearchRequest};
use foldback_deep_search::{Passage, SearchBackend};
use foldback_tool::ToolError;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fmt;

/// The blocks of a todo as a source to search: a [`SearchBackend`]. What it finds has the name of its block
/// (`b_trip_003`), by which it can be loaded word for word.
///
/// A todo searches another only as far as it was granted.
#[derive(Clone)]
pub struct TodoSearch {
    memory: Memory,
    /// The todo that searches.
    reader: TodoId,
    /// The todo that owns the blocks.
    todo: TodoId,
}

/// A block below this relevance to a query does not answer it.
const CUTOFF: f32 = 0.3;

/// How much of a block's text is passed on, in bytes.
const MAX_BYTES: usize = 16 << 10;

impl TodoSearch {
    /// Creates a search in the blocks of `reader` itself.
    #[must_use]
    pub fn own(memory: Memory, reader: TodoId) -> Self {
        Self { memory, todo: reader.clone(), reader }
    }

    /// Creates a search in the blocks of `todo` that were granted to `reader`.
    #[must_use]
    pub fn granted(memory: Memory, reader: TodoId, todo: TodoId) -> Self {
        Self { memory, reader, todo }
    }

    fn find(&self, query: &str, k: usize) -> Result<Vec<Passage>, foldback::Error> {
        // Blocks that were not granted are left out, and further ones are examined in their place.
        let wanted = if self.todo == self.reader { k } else { SearchRequest::MAX_K };
        let request = SearchRequest::new(query).k(wanted).cutoff(CUTOFF);
        let mut passages = Vec::new();
        for hit in self.memory.search(&self.todo, &request)?.hits {
            let id = BlockId::new(self.todo.clone(), hit.block.header.block_id.n());
            if !self.may_read(&id)? {
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

    /// Returns whether the reader may read a block. Of its own todo it may read everything, the newest messages
    /// included, which are not in a closed block yet.
    fn may_read(&self, id: &BlockId) -> Result<bool, foldback::Error> {
        if self.todo == self.reader {
            return Ok(true);
        }
        let reference = Reference::Block(id.clone());
        match self.memory.references().locate(&self.reader, &reference) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotPermitted) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the messages of a block, each after its speaker.
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
