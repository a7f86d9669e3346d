//! The source of a deep search, as a flag gives it.

use super::settings::{RunSettings, full};
use crate::error::CliError;
use crate::settings::SearchSettings;
use foldback_core::TodoId;
use std::path::PathBuf;

/// The source of a deep search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchIn {
    /// The documents of a folder.
    Folder(PathBuf),
    /// A tool of an MCP server.
    Mcp { server: String, tool: String },
    /// A search engine that answers as SearXNG does.
    Searxng(String),
    /// Conversations: the run itself, or another todo.
    Memory(Option<TodoId>),
}

/// The error of a deep search without a source.
pub(crate) const NO_DOCUMENTS: &str = "deep-search needs something to look into; name it with --search \
                                        (folder:DIR, mcp:SERVER/TOOL, searxng:URL or memory), or a folder of \
                                        documents with --documents";

const EXPECTED: &str = "expected folder:DIR, mcp:SERVER/TOOL, searxng:URL, memory or memory:TODO";

impl SearchIn {
    pub(crate) fn read(kind: &str) -> Result<Self, String> {
        let (name, rest) = kind.split_once(':').unwrap_or((kind, ""));
        let rest = rest.trim();
        let expected = || format!("{kind:?} is not something to search; {EXPECTED}");
        match (name.trim(), rest) {
            ("memory", "") => Ok(Self::Memory(None)),
            ("memory", todo) => TodoId::new(todo)
                .map(|todo| Self::Memory(Some(todo)))
                .map_err(|error| error.to_string()),
            ("folder", dir) if !dir.is_empty() => Ok(Self::Folder(PathBuf::from(dir))),
            ("searxng", url) if !url.is_empty() => Ok(Self::Searxng(url.to_owned())),
            ("mcp", tool) => {
                let (server, tool) = tool.split_once('/').ok_or_else(expected)?;
                let is_named = !server.is_empty() && !tool.is_empty();
                let (server, tool) = (server.to_owned(), tool.to_owned());
                is_named.then_some(Self::Mcp { server, tool }).ok_or_else(expected)
            }
            _ => Err(expected()),
        }
    }

    /// Checks a kind that a flag gives.
    pub(crate) fn kind(text: &str) -> Result<String, String> {
        Self::read(text).map(|_| text.to_owned())
    }

    /// Makes the path absolute: a run can be resumed from any folder.
    pub(crate) fn resolved(kind: &str) -> Result<String, CliError> {
        let Ok(Self::Folder(dir)) = Self::read(kind) else { return Ok(kind.to_owned()) };
        let dir = full(Some(dir), "folder of documents")?.unwrap_or_default();
        Ok(format!("folder:{}", dir.display()))
    }
}

impl RunSettings {
    /// The source that a flag names, or that of the settings if no flag names a folder of documents.
    pub(super) fn search_of(&self, settings: &SearchSettings) -> Option<String> {
        let usual = || settings.kind.clone().filter(|_| self.documents.is_none());
        self.search.clone().or_else(usual)
    }

    /// Makes the paths to the documents absolute.
    pub(crate) fn with_full_documents(mut self) -> Result<Self, CliError> {
        self.documents = full(self.documents, "folder of documents")?;
        self.search = self.search.map(|kind| SearchIn::resolved(&kind)).transpose()?;
        Ok(self)
    }

    /// Refuses a folder of documents of an earlier turn that by now leads elsewhere: files that an agent may write must
    /// not choose what is read.
    pub(super) fn check_kept_documents(&self) -> Result<(), CliError> {
        let Some(SearchIn::Folder(kept)) = self.search_in()? else { return Ok(()) };
        match kept.canonicalize() {
            Ok(there) if there != kept => Err(CliError::Usage(format!(
                "the folder of documents {} now leads elsewhere, to {}; name it with --documents",
                kept.display(),
                there.display()
            ))),
            // If it is gone, reading it reports that.
            _ => Ok(()),
        }
    }

    /// The source of a deep search.
    pub(crate) fn search_in(&self) -> Result<Option<SearchIn>, CliError> {
        let folder = || self.documents.clone().map(SearchIn::Folder);
        let Some(kind) = &self.search else { return Ok(folder()) };
        SearchIn::read(kind).map(Some).map_err(CliError::Usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_is_said_in_a_word() {
        let mcp = |server: &str, tool: &str| {
            Ok(SearchIn::Mcp { server: server.to_owned(), tool: tool.to_owned() })
        };
        assert_eq!(SearchIn::read("folder:../文档"), Ok(SearchIn::Folder("../文档".into())));
        assert_eq!(SearchIn::read("mcp:web/search"), mcp("web", "search"));
        let url = "http://127.0.0.1:8888";
        assert_eq!(
            SearchIn::read(&format!("searxng:{url}")),
            Ok(SearchIn::Searxng(url.to_owned()))
        );
        assert_eq!(SearchIn::read("memory"), Ok(SearchIn::Memory(None)));
        let trip = TodoId::new("trip").unwrap();
        assert_eq!(SearchIn::read("memory:trip"), Ok(SearchIn::Memory(Some(trip))));
        for wrong in ["", "docs", "folder:", "mcp:web", "mcp:/x", "searxng:", "memory:a/b"] {
            assert!(SearchIn::read(wrong).is_err(), "{wrong}");
        }
    }
}
