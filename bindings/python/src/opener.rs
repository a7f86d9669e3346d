//! The process that opened a store, which alone may use it.

use crate::error::{Failure, drop_detached};
use foldback::Memory as Store;
use pyo3::Python;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a fork has to do instead.
const ADVICE: &str = "open the store only after the fork, or start the child with \"spawn\"";

/// The folders that are open, among them those that a parent had open when it forked this process. It is locked only
/// under the interpreter's lock, which a fork holds as well, so that no child finds it locked.
static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// A folder that a process opened.
struct Opened {
    opener: Opener,
    folder: PathBuf,
    /// In a fork it never ends, because nothing of the parent's is dropped there.
    store: Weak<Store>,
}

/// The process that opened a store. A child that it forks has neither the locks of the store nor its threads.
#[derive(Clone, Copy)]
pub(crate) struct Opener(u32);

impl Opener {
    /// This process.
    pub(crate) fn this() -> Self {
        Self(process::id())
    }

    /// Whether it is this process.
    pub(crate) fn is_this(self) -> bool {
        self.0 == process::id()
    }

    /// Drops what it opened. In a fork that would wait for threads that are not there, so it is kept until the fork ends.
    pub(crate) fn let_go<T: Send>(self, opened: T) {
        if self.is_this() {
            drop_detached(opened);
        } else {
            std::mem::forget(opened);
        }
    }

    /// Refuses to work in another process.
    pub(crate) fn check(self) -> Result<(), Failure> {
        if self.is_this() {
            return Ok(());
        }
        let (own, here) = (self.0, process::id());
        Err(Failure::invalid(format!(
            "the memory was opened by process {own}, of which this process {here} is a fork; {ADVICE}"
        )))
    }
}

/// Refuses a folder that a parent had open when it forked this process. SQLite would take the parent's locks for this
/// process's own, and lose its log when the parent closes.
pub(crate) fn check_folder(_: Python<'_>, folder: &Path) -> Result<(), Failure> {
    // A folder that does not exist is not open.
    let Ok(folder) = fs::canonicalize(folder) else { return Ok(()) };
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|one| one.store.strong_count() > 0);
    let parents = opened.iter().find(|one| !one.opener.is_this() && one.folder == folder);
    parents.map_or(Ok(()), |one| {
        let own = one.opener.0;
        Err(Failure::invalid(format!(
            "process {own} had the store open when it forked this process; {ADVICE}"
        )))
    })
}

/// Notes that this process has opened a folder.
pub(crate) fn note_folder(_: Python<'_>, folder: &Path, store: &Arc<Store>) {
    if let Ok(folder) = fs::canonicalize(folder) {
        let opened = Opened { opener: Opener::this(), folder, store: Arc::downgrade(store) };
        OPENED.lock().unwrap_or_else(PoisonError::into_inner).push(opened);
    }
}
