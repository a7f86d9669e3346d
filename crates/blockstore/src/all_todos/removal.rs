//! Removing volumes.

use super::AllTodos;
use super::catalogue::{Catalogue, Volume, path};
use super::snapshot::Snapshot;
use crate::Error;
use crate::disk::{Folder, Lock, index_error};
use foldback_kv::Todo;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often to try a lock that another holds.
const TURN: Duration = Duration::from_millis(10);

/// How long to try it: writing a volume takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

impl AllTodos {
    /// Deletes the volumes that hold any block of a todo. To be called after its records are gone. If a process is
    /// killed in between, what it leaves appears in no search, and the next [`catch_up`](Self::catch_up) deletes it.
    ///
    /// # Errors
    /// When a volume cannot be deleted.
    pub fn forget(&self, todo: &Todo) -> Result<(), Error> {
        self.drop_where(|volume| volume.holds(|no| no == todo.no()))
    }

    /// Deletes the volumes in which any todo has vectors that were replaced since. To be called when all todos have new
    /// ones: until then such a volume still finds words.
    ///
    /// # Errors
    /// When the store fails or a volume cannot be deleted.
    pub fn drop_outdated(&self) -> Result<(), Error> {
        let Some(folder) = self.folder.as_ref().filter(|folder| folder.root().exists()) else {
            return Ok(());
        };
        let mut outdated = FxHashSet::default();
        for volume in Catalogue::read(folder).unwrap_or_default().volumes {
            for run in &volume.runs {
                let Some(todo) = self.todo(run.todo)? else { continue };
                if self.records.vector_state(&todo)?.generation != run.generation {
                    outdated.insert(volume.number);
                    break;
                }
            }
        }
        if outdated.is_empty() {
            return Ok(());
        }
        self.drop_where(|volume| outdated.contains(&volume.number))
    }

    /// Deletes all volumes.
    ///
    /// # Errors
    /// When one cannot be deleted.
    pub(super) fn clear(&self) -> Result<(), Error> {
        self.drop_where(|_| true)
    }

    pub(super) fn drop_where(&self, goes: impl Fn(&Volume) -> bool) -> Result<(), Error> {
        *self.known.lock() = Arc::new(Snapshot::default());
        let Some(folder) = self.folder.as_ref().filter(|folder| folder.root().exists()) else {
            return Ok(());
        };
        let begun = Instant::now();
        let _lock = loop {
            match Lock::take(folder)? {
                Some(lock) => break lock,
                // A process that is stopped meanwhile must not stop this one.
                None if begun.elapsed() > PATIENCE => {
                    let seconds = PATIENCE.as_secs();
                    let detail = format!(
                        "another process or thread has held its lock for {seconds} seconds"
                    );
                    return Err(index_error(folder, "changed", &detail));
                }
                None => std::thread::sleep(TURN),
            }
        };
        // A catalogue that cannot be read names nothing, and is deleted whole.
        let mut catalogue = Catalogue::read(folder).unwrap_or_default();
        catalogue.drop_where(goes);
        catalogue.write(folder)?;
        sweep(folder, &catalogue)?;
        *self.known.lock() = Arc::new(Snapshot::default());
        Ok(())
    }
}

/// Removes the folders that the catalogue does not name: of volumes that were replaced, and of those that were never
/// completed.
pub(super) fn sweep(folder: &Folder, catalogue: &Catalogue) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Index {
        path: path(folder),
        doing: "swept",
        detail: error.to_string(),
    };
    for entry in std::fs::read_dir(folder.root()).map_err(failed)?.flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse::<u64>() else { continue };
        if catalogue.volumes.iter().all(|volume| volume.number != number) {
            match std::fs::remove_dir_all(entry.path()) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
