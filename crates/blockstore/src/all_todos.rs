//! The search over all todos, for the person whose store it is.
//!
//! ```text
//! <index>/all/
//!     lock          who writes here: one process at a time
//!     catalogue     which volumes there are, which blocks each holds, how far each todo was looked at
//!     <number>/     a volume: an index of some thousands of blocks, written once and never changed
//! ```
//!
//! All of it is derived from the truth and can be deleted at any time. A volume counts once the catalogue names it, and
//! the catalogue is replaced in one step, so that a writer that is killed leaves only a folder that the next one
//! removes. What no volume holds yet is searched from the truth, up to a bound; what exceeds the bound is counted in
//! the answer. Forgetting a todo deletes the volumes that hold any of it, and the rest of their contents is indexed
//! again.

mod asked;
mod catalogue;
mod examination;
mod removal;
mod request;
mod search;
mod shelf;
mod snapshot;
mod upkeep;

pub use request::{AllTodosAnswer, AllTodosRequest, Origin, Origins};
pub use upkeep::CaughtUp;

use crate::disk::{Folder, Indexed};
use crate::records::Records;
use crate::{IndexConfig, PayloadTexts};
use foldback_kv::{Kv, Registry};
use parking_lot::Mutex;
use rayon::ThreadPool;
use snapshot::Snapshot;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The blocks of every todo of a store, searched as one list.
///
/// This is the only access that searches without a todo. A [`BlockStore`](crate::BlockStore) does not lead to it: only
/// the code that opened the store can hand it out.
pub struct AllTodos {
    records: Records,
    registry: Registry,
    origins: Arc<dyn Origins>,
    /// The folder of the volumes; `None` if nothing is kept on disk.
    folder: Option<Folder>,
    config: IndexConfig,
    /// What the last search knew.
    known: Mutex<Arc<Snapshot>>,
    /// When volumes that could not be opened were last made again.
    remade: Mutex<Option<Instant>>,
    /// Whether no further volume is begun.
    stopped: AtomicBool,
    /// The threads that read for a volume, once one was written.
    readers: OnceLock<Option<ThreadPool>>,
}

/// The name of the folder of all volumes, beside those of single todos, which are numbers.
const NAME: &str = "all";

impl AllTodos {
    /// Opens the todos of `kv`. `texts` reads the texts of their payloads, `origins` says where they came from. Volumes
    /// are kept in `index_dir`, beside the indexes of single todos, or nowhere; then only as much is searched as fits
    /// the bound for reading from the truth.
    #[must_use]
    pub fn open(
        kv: Arc<dyn Kv>,
        texts: Arc<dyn PayloadTexts>,
        origins: Arc<dyn Origins>,
        index_dir: Option<PathBuf>,
        config: IndexConfig,
    ) -> Self {
        let registry = Registry::new(kv.clone());
        let records = Records::new(kv, Some(texts));
        let sealing = records.sealing(0, Indexed::Catalogue);
        Self {
            registry,
            records,
            origins,
            folder: index_dir.map(|dir| Folder::at(dir.join(NAME), sealing)),
            config,
            known: Mutex::default(),
            remade: Mutex::default(),
            stopped: AtomicBool::new(false),
            readers: OnceLock::new(),
        }
    }
}
