//! The indexes of a large todo on disk. All of it is derived from the truth, and can be deleted
//! at any time.
//!
//! ```text
//! <index>/<todo number>/
//!     lock                who appends here: one process at a time
//!     graph.lock          who builds a graph: one process at a time, beside the other
//!     tantivy/            the terms of each block and of each passage of its payloads;
//!                         its commit payload is the `Manifest`
//!     vectors.i8          a byte for each number of each vector, in chunks that only grow
//!     graph.json          which graph there is, and the checksums of its two files
//!     graph-<rows>.hnsw.* the graph over the first rows of `vectors.i8`
//!     new/                an index that is being received from another machine
//! ```
//!
//! A reader trusts nothing that it has not checked: the manifest carries a checksum of itself, every segment and chunk
//! is verified when it is opened, and the manifest names the last block's record as it was in the truth. Whatever does
//! not match is skipped, and what it held is searched from the truth.
//!
//! In an encrypted store, every file of tantivy and every chunk of vectors is sealed separately, bound to its folder
//! and its name or place there. It is read into memory instead of being mapped, and no graph is built.

mod code_file;
mod codes;
mod counted_terms;
mod graph;
mod manifest;
mod reader;
mod received;
mod sealed_directory;
mod sealing;
mod volume;
mod writer;

pub(crate) use code_file::NewCodes;
pub(crate) use codes::{CodeGroup, Estimate, Query};
pub(crate) use graph::Graph;
pub(crate) use manifest::{FORMAT as INDEX_FORMAT, Fit, Manifest};
pub(crate) use reader::{DiskIndex, TermsOf};
pub(crate) use received::{Changes, IndexFile, Received};
pub(crate) use sealing::{Indexed, Sealing};
pub(crate) use volume::VolumeWriter;
pub(crate) use writer::{IndexWriter, Lock, index_error};

use counted_terms::CountedTerms;
use sealed_directory::SealedDirectory;
use std::path::{Path, PathBuf};
use tantivy::directory::MmapDirectory;
use tantivy::schema::Schema;
use tantivy::{Index, IndexSettings};

/// The number that takes the place of a todo's in the manifest of an index of blocks of many todos. No todo has it.
pub(crate) const OF_MANY: u32 = 0;

/// Why an index on disk cannot be used.
pub(crate) type Damage = String;

/// The location of the indexes of one todo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    root: PathBuf,
    /// The key, if the store is encrypted.
    sealing: Option<Sealing>,
}

/// Lets an index take the terms of its documents apart.
fn with_tokenizer(index: Index) -> Index {
    index.tokenizers().register(CountedTerms::NAME, CountedTerms);
    index
}

/// The depth of a volume of all todos: its own folder, `all`, `index`, and the store's.
const FOLDERS: usize = 4;

impl Folder {
    pub(crate) fn new(index_dir: &Path, todo_no: u32, sealing: Option<Sealing>) -> Self {
        Self { root: index_dir.join(todo_no.to_string()), sealing }
    }

    /// Returns the folder of an index that is not one todo's.
    pub(crate) fn at(root: PathBuf, sealing: Option<Sealing>) -> Self {
        Self { root, sealing }
    }

    pub(crate) fn sealing(&self) -> Option<&Sealing> {
        self.sealing.as_ref()
    }

    /// Opens the existing index of tantivy.
    fn open_index(&self) -> tantivy::Result<Index> {
        let index = match &self.sealing {
            None => Index::open_in_dir(self.tantivy()),
            Some(sealing) => Index::open(self.sealed(sealing)?),
        };
        Ok(with_tokenizer(index?))
    }

    /// Creates a new index of tantivy.
    fn create_index(&self, schema: Schema) -> tantivy::Result<Index> {
        let index = match &self.sealing {
            None => Index::create_in_dir(self.tantivy(), schema),
            Some(sealing) => Index::create(self.sealed(sealing)?, schema, IndexSettings::default()),
        };
        Ok(with_tokenizer(index?))
    }

    fn sealed(&self, sealing: &Sealing) -> tantivy::Result<SealedDirectory> {
        Ok(SealedDirectory::new(MmapDirectory::open(self.tantivy())?, sealing.clone()))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the names in the folder, and those that lead to it from the store's folder on, durable.
    fn sync(&self) -> std::io::Result<()> {
        #[cfg(unix)]
        {
            // tantivy names its newest list of segments, but leaves making the name durable to the next commit.
            let tantivy = self.tantivy();
            let folders =
                [tantivy.as_path()].into_iter().chain(self.root.ancestors().take(FOLDERS));
            for folder in folders.filter(|path| path.is_dir()) {
                match std::fs::File::open(folder).and_then(|folder| folder.sync_all()) {
                    // The folder above the store may be one that this user cannot open.
                    Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
                    synced => synced?,
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    fn graph_lock(&self) -> PathBuf {
        self.root.join("graph.lock")
    }

    fn tantivy(&self) -> PathBuf {
        self.root.join("tantivy")
    }

    fn vectors(&self) -> PathBuf {
        self.root.join("vectors.i8")
    }

    fn graph(&self) -> PathBuf {
        self.root.join("graph.json")
    }

    /// Returns the files whose writing makes an index and a graph valid.
    pub(crate) fn last_written(&self) -> [PathBuf; 2] {
        [self.tantivy().join("meta.json"), self.graph()]
    }

    /// Returns whether there is anything that claims to be an index.
    pub(crate) fn holds_index(&self) -> bool {
        self.tantivy().join("meta.json").exists()
    }
}
