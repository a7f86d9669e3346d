//! A folder of documents, to be searched.

use crate::files::Folder;
use crate::index::{Index, IndexedPassage, hash_of};
use crate::passage_url::Within;
use crate::{DocumentSettings, PassageUrl, PassageUrlError, Skipped, passage_url};
use foldback::core::TodoId;
use foldback::{Memory, Options};
use foldback_deep_search::{Passage, SearchBackend};
use foldback_tool::ToolError;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of documents (texts, Markdown, HTML, PDF, code) as a source to search: a [`SearchBackend`].
///
/// Documents are cut into passages: paragraphs under their headings, up to 1,200 bytes. What a search finds
/// has a [`PassageUrl`], whose bytes in the file are the passage's text: if they no longer are, the folder
/// is read again first. New text is found once the folder was [read again](Self::refresh). All languages
/// that the store searches are supported, including Chinese.
///
/// Hidden files and those that an ignore file (`.gitignore`, `.ignore`) names are not documents. Nor are links,
/// files with another extension (pictures), files that are too large, files that are not UTF-8, and PDFs without
/// text: [`Indexed::passed_over`] lists those.
#[derive(Clone)]
pub struct DocumentFolder {
    shared: Arc<Shared>,
    /// The prefix of its URLs.
    prefix: Arc<str>,
}

struct Shared {
    folder: Folder,
    settings: DocumentSettings,
    /// Searches share it; a refresh of the folder has it alone.
    state: RwLock<State>,
}

struct State {
    index: Index,
    indexed: Indexed,
    /// How often the folder was read.
    readings: u64,
}

/// The result of reading a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// How many documents it holds.
    pub documents: usize,
    /// How many passages they have.
    pub passages: u64,
    /// How many documents were new or changed, and had to be recorded.
    pub recorded: usize,
    /// The other files in the folder, the rarest reason first.
    pub skipped: Arc<[Skipped]>,
}

/// An error in reading documents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// The folder cannot be opened.
    #[error("the documents in {path} cannot be read: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A text is not the URL of a passage.
    #[error(transparent)]
    Url(#[from] PassageUrlError),
    /// A URL names no passage of the documents as they were last read.
    #[error(
        "{0} names no passage: the document is gone or has changed since the URL was written, or it was \
         never one of these documents"
    )]
    NoPassage(String),
    /// The bytes that a URL names have changed.
    #[error(
        "{0} cannot be quoted: the document has changed since it was read, and has to be read again"
    )]
    Changed(String),
    /// The store of their passages fails.
    #[error("the store of documents failed: {0}")]
    Store(#[from] foldback::Error),
}

impl DocumentFolder {
    /// Reads the documents of a folder, and returns when all are read. Their passages are kept in memory.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn open(folder: &Path, settings: DocumentSettings) -> Result<Self, DocumentsError> {
        let memory = Memory::in_memory(Index::options(Options::default())?)?;
        Self::with_memory(folder, settings, memory)
    }

    /// Does the same as [`open`](Self::open), with the passages kept in the folder `store`, which may
    /// hold those of several folders of documents: what has not changed since is not recorded again.
    ///
    /// # Errors
    /// When one of the folders cannot be used.
    pub fn open_with_store(
        folder: &Path,
        settings: DocumentSettings,
        store: &Path,
    ) -> Result<Self, DocumentsError> {
        let memory = Memory::open(store, Index::options(Options::default())?)?;
        Self::with_memory(folder, settings, memory)
    }

    fn with_memory(
        path: &Path,
        settings: DocumentSettings,
        memory: Memory,
    ) -> Result<Self, DocumentsError> {
        let cannot = |source| DocumentsError::Folder { path: path.to_owned(), source };
        let folder = Folder::open(path).map_err(cannot)?;
        let todo = TodoId::from_foreign(&format!("documents {}", folder.path().display()));
        let index = Index::open(memory, todo)?;
        let state = RwLock::new(State { index, indexed: Indexed::default(), readings: 0 });
        let shared = Arc::new(Shared { folder, settings, state });
        let documents = Self { shared, prefix: Arc::default() };
        documents.refresh()?;
        Ok(documents)
    }

    /// Returns the same documents, with URLs that begin with a path: if a document's path in the folder is `a.md`, and
    /// the folder is `docs` for a reader who follows the links of an answer, the prefix is `docs/`.
    #[must_use]
    pub fn with_prefix(self, path: &str) -> Self {
        Self { prefix: passage_url::encoded(path).into(), ..self }
    }

    /// Reads the folder again, and records what changed.
    ///
    /// # Errors
    /// When the store fails.
    pub fn refresh(&self) -> Result<Indexed, DocumentsError> {
        self.shared.refresh()
    }

    /// Returns the passage that a URL of this folder names, word for word. It is quoted only if its
    /// bytes in the file are those that were read.
    ///
    /// A passage that was changed in place, and read again since the URL was written, is quoted as it is
    /// now.
    ///
    /// # Errors
    /// When it is not such a URL, there is no such passage, the document has changed meanwhile, or the
    /// store fails.
    pub fn read(&self, url: &str) -> Result<Passage, DocumentsError> {
        let nowhere = || DocumentsError::NoPassage(url.to_owned());
        let place = url.strip_prefix(&*self.prefix).ok_or_else(nowhere)?.parse()?;
        let (passage, _) = self.shared.look(|index| index.passage_at(&place))?;
        let passage = passage.ok_or_else(nowhere)?;
        match self.shared.holds(&passage, &mut BTreeMap::new()) {
            true => Ok(passage.found(&self.prefix)),
            false => Err(DocumentsError::Changed(url.to_owned())),
        }
    }

    /// Returns the result of the last reading.
    #[must_use]
    pub fn indexed(&self) -> Indexed {
        self.shared.state.read().indexed.clone()
    }
}

impl Shared {
    fn refresh(&self) -> Result<Indexed, DocumentsError> {
        self.refresh_state(&mut self.state.write())
    }

    /// Does the same, unless it was done after this many readings.
    fn refresh_after(&self, readings: u64) -> Result<(), DocumentsError> {
        let mut state = self.state.write();
        if state.readings == readings {
            self.refresh_state(&mut state)?;
        }
        Ok(())
    }

    fn refresh_state(&self, state: &mut State) -> Result<Indexed, DocumentsError> {
        let State { index, indexed, readings } = state;
        if index.was_replaced()? {
            index.reopen()?;
        }
        *indexed = self.read(index)?;
        if index.is_mostly_old() {
            index.clear()?;
            *indexed = self.read(index)?;
        }
        *readings += 1;
        Ok(indexed.clone())
    }

    /// Looks something up in the index, and returns how often the folder had been read by then. If another
    /// process has cleared the passages away, the folder is read again first.
    fn look<T>(
        &self,
        find: impl Fn(&Index) -> Result<T, foldback::Error>,
    ) -> Result<(T, u64), DocumentsError> {
        let readings = {
            let state = self.state.read();
            let found = find(&state.index);
            if !state.index.was_replaced()? {
                return Ok((found?, state.readings));
            }
            state.readings
        };
        self.refresh_after(readings)?;
        let state = self.state.read();
        Ok((find(&state.index)?, state.readings))
    }

    fn read(&self, index: &mut Index) -> Result<Indexed, DocumentsError> {
        index.begin();
        let mut recorded = 0;
        let skipped = self.folder.documents(&self.settings, |document| {
            let taken = index.take(&document)?;
            recorded += usize::from(taken == Ok(true));
            Ok::<_, foldback::Error>(taken.err())
        })?;
        let (documents, passages) = index.counts();
        Ok(Indexed { documents, passages, recorded, skipped })
    }

    /// Returns the passages that answer best, as they are in their files now.
    fn search(&self, query: &str, k: usize) -> Result<Vec<IndexedPassage>, DocumentsError> {
        let found = || self.look(|index| index.search(query, k));
        let (passages, readings) = found()?;
        let count = passages.len();
        let held = self.held(passages);
        if held.len() == count {
            return Ok(held);
        }
        // Of several searches that find the same change, one reads the folder.
        self.refresh_after(readings)?;
        Ok(self.held(found()?.0))
    }

    /// Returns those passages that are in their files.
    fn held(&self, mut passages: Vec<IndexedPassage>) -> Vec<IndexedPassage> {
        let mut hashes = BTreeMap::new();
        passages.retain(|passage| self.holds(passage, &mut hashes));
        passages
    }

    /// Returns whether a passage is in its file. `hashes` keeps those of the files that had to be read whole.
    fn holds(
        &self,
        passage: &IndexedPassage,
        hashes: &mut BTreeMap<String, Option<String>>,
    ) -> bool {
        match passage.within {
            Within::File => self.folder.holds(&passage.path, &passage.bytes, &passage.text),
            // Its text is not in the file literally: the file has to be the one that was read.
            Within::Text | Within::Page(_) => {
                let hash = hashes.entry(passage.path.clone()).or_insert_with(|| {
                    let whole = self.folder.whole(&passage.path, &self.settings);
                    whole.ok().map(|bytes| hash_of(&bytes))
                });
                hash.as_ref() == Some(&passage.hash)
            }
        }
    }
}

impl IndexedPassage {
    fn found(self, prefix: &str) -> Passage {
        let Self { path, title, within, bytes, text, .. } = self;
        let url = format!("{prefix}{}", PassageUrl { path, within, bytes: bytes.clone() });
        Passage { url, title, text, bytes: (within == Within::File).then_some(bytes) }
    }
}

impl SearchBackend for DocumentFolder {
    fn search<'a>(
        &'a self,
        query: &'a str,
        k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        let (shared, query) = (Arc::clone(&self.shared), query.to_owned());
        async move {
            // Another thread waits for files and the store.
            let search = move || shared.search(&query, k);
            let found = tokio::task::spawn_blocking(search).await;
            let found = found.map_err(|error| ToolError::permanent(error.to_string()))?;
            let passages = found.map_err(|error| ToolError::permanent(error.to_string()))?;
            Ok(passages.into_iter().map(|passage| passage.found(&self.prefix)).collect())
        }
        .boxed()
    }
}

impl fmt::Debug for DocumentFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentFolder")
            .field("folder", &self.shared.folder.path())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn shared_by_two(folder: &Path) -> [DocumentFolder; 2] {
        let memory = Memory::in_memory(Index::options(Options::default()).unwrap()).unwrap();
        let open = || {
            let settings = DocumentSettings::default();
            DocumentFolder::with_memory(folder, settings, memory.clone()).unwrap()
        };
        [open(), open()]
    }

    /// If another process clears the passages away and records them anew, they are still found and quoted.
    #[tokio::test]
    async fn what_another_process_recorded_anew_is_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("泊位.md"), "# 泊位\n\n苍鹭号停在三号泊位。\n").unwrap();
        for reads_anew in [true, false] {
            let [one, other] = shared_by_two(folder.path());
            let found = one.search("苍鹭号停在哪里", 1).await.unwrap();
            assert_eq!(found.len(), 1);
            std::fs::write(folder.path().join("天.md"), "今天有雾。\n").unwrap();
            other.shared.state.write().index.clear().unwrap();
            if reads_anew {
                other.refresh().unwrap();
            }
            assert_eq!(one.search("苍鹭号停在哪里", 1).await.unwrap(), found);
            assert_eq!(one.read(&found[0].url).unwrap(), found[0]);
            assert_eq!(one.indexed().documents, 2, "the folder was read again");
            std::fs::remove_file(folder.path().join("天.md")).unwrap();
        }
    }

    /// Of several searches that find the same change, one reads the folder again.
    #[test]
    fn one_change_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.md"), "潮差三米。\n").unwrap();
        let [one, _] = shared_by_two(folder.path());
        let readings = || one.shared.state.read().readings;
        let before = readings();
        for _ in 0..3 {
            one.shared.refresh_after(before).unwrap();
        }
        assert_eq!(readings(), before + 1);
    }
}
