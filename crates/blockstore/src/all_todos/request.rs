//! What a search over all todos asks for, and what it answers.

use crate::{Hit, NotSearched, SearchRequest};
use foldback_core::EmbedError;
use foldback_kv::Todo;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where the conversation of a todo came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// What wrote it: the name of a format, as `claude_code_log`, or of a command, as `run`.
    pub source: Option<String>,
    /// The folder in which was worked.
    pub folder: Option<String>,
}

impl Origin {
    /// Whether it is of a source, named whole or by its first words: `codex` is `codex_log`.
    #[must_use]
    pub fn is_of_source(&self, wanted: &str) -> bool {
        let wanted = wanted.to_lowercase().replace(['-', ' '], "_");
        let rest = self.source.as_deref().and_then(|source| source.strip_prefix(wanted.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }

    /// Whether was worked in this folder, or in one below it.
    #[must_use]
    pub fn is_in_folder(&self, wanted: &Path) -> bool {
        self.folder.as_ref().is_some_and(|folder| Path::new(folder).starts_with(wanted))
    }
}

/// Tells where todos came from. It is asked when a todo's blocks are indexed.
pub trait Origins: Send + Sync {
    /// Where this todo came from; nothing where that is not known.
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
    /// Asks as `request` does.
    #[must_use]
    pub fn new(request: SearchRequest<'a>) -> Self {
        Self { request, source: None, folder: None, is_exhaustive: false }
    }

    /// What is asked.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.request.query()
    }

    /// Only todos whose conversation is of this source: see [`Origin::is_of_source`].
    #[must_use]
    pub fn source(mut self, source: impl Into<Option<&'a str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Only todos whose work was in this folder, or below it.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<Option<&'a Path>>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Compares the question with every vector of the truth, however long that takes. For a
    /// comparison with what the index answers.
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
    /// Why the hits were found by words alone, where the embedder could not embed the question.
    pub by_words_alone: Option<EmbedError>,
    /// How many blocks were searched.
    pub blocks: u64,
    /// About how many messages were not searched, because no index holds them yet.
    pub waiting: u64,
    /// What else was not searched, and why.
    pub not_searched: NotSearched,
}
