//! The request and the answer of a search over all todos.

use crate::{Hit, NotSearched, SearchRequest};
use foldback_core::EmbedError;
use foldback_kv::Todo;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The origin of a todo's conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// The writer of the conversation: the name of a format, such as `claude_code_log`, or of a
    /// command, such as `run`.
    pub source: Option<String>,
    /// The folder in which the work was done.
    pub folder: Option<String>,
}

impl Origin {
    /// Returns whether it is of a source, named in full or by its first words: `codex` matches
    /// `codex_log`.
    #[must_use]
    pub fn is_of_source(&self, wanted: &str) -> bool {
        let wanted = wanted.to_lowercase().replace(['-', ' '], "_");
        let rest = self.source.as_deref().and_then(|source| source.strip_prefix(wanted.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }

    /// Returns whether the work was done in this folder, or in one below it.
    #[must_use]
    pub fn is_in_folder(&self, wanted: &Path) -> bool {
        self.folder.as_ref().is_some_and(|folder| Path::new(folder).starts_with(wanted))
    }
}

/// The source of the origins of todos. It is used when a todo's blocks are indexed.
pub trait Origins: Send + Sync {
    /// Returns the origin of this todo; empty if it is not known.
    fn origin(&self, todo: &Todo) -> Origin;
}

/// A question to all todos.
#[derive(Clone, Copy)]
pub struct AllTodosRequest<'a> {
    pub(super) request: SearchRequest<'a>,
    pub(super) source: Option<&'a str>,
    pub(super) folder: Option<&'a Path>,
    pub(super) is_exhaustive: bool,
}

impl<'a> AllTodosRequest<'a> {
    /// Puts the question of `request` to all todos.
    #[must_use]
    pub fn new(request: SearchRequest<'a>) -> Self {
        Self { request, source: None, folder: None, is_exhaustive: false }
    }

    /// Returns the question.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.request.query()
    }

    /// Searches only todos whose conversation is of this source: see [`Origin::is_of_source`].
    #[must_use]
    pub fn source(mut self, source: impl Into<Option<&'a str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Searches only todos whose work was in this folder, or below it.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<Option<&'a Path>>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Compares the question with every vector of the truth, however long that takes. For
    /// comparison with the answers of the index.
    #[must_use]
    pub fn exhaustive(mut self) -> Self {
        self.is_exhaustive = true;
        self
    }
}

/// The blocks of all todos that answer a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllTodosAnswer {
    /// The blocks, the best first. Each names its todo in its header.
    pub hits: Vec<Hit>,
    /// Why the hits were found by words alone, if the embedder could not embed the question.
    pub by_words_alone: Option<EmbedError>,
    /// How many blocks were searched.
    pub blocks: u64,
    /// About how many messages were not searched, because no index holds them yet.
    pub waiting: u64,
    /// The other parts that were not searched, and why.
    pub not_searched: NotSearched,
}
