//! Deletion of indexes on disk.

use super::{Cache, TURN};
use crate::Error;
use crate::disk::{Folder, IndexWriter, Lock, index_error};
use foldback_kv::{Error as KvError, Todo};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

impl Cache {
    /// Deletes the contents of the todo's index, once nobody writes to it; `false` when it was stopped before.
    pub(crate) fn clear_index(&self, todo: &Todo, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let folder = self.folder(todo).filter(Folder::holds_index);
        let Some(folder) = folder else { return Ok(true) };
        let lock = loop {
            match Lock::take(&folder)? {
                Some(lock) => break lock,
                None if stop() => return Ok(false),
                None => std::thread::sleep(TURN),
            }
        };
        IndexWriter::new(&lock, &folder, &self.records, todo).clear()?;
        Ok(true)
    }

    /// Drops the todo and deletes its indexes. Its records are gone, so that a process that is indexing it finds that
    /// out and leaves nothing behind either.
    pub(crate) fn remove_index(&self, todo: &Todo) -> Result<(), Error> {
        self.drop_slot(todo);
        self.folder(todo).map_or(Ok(()), |folder| remove(&folder))
    }

    /// Deletes the indexes of todos that no longer exist.
    pub(crate) fn sweep_forgotten(&self) -> Result<usize, Error> {
        let Some(dir) = &self.index_dir else { return Ok(0) };
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => {
                let (path, detail) = (dir.clone(), error.to_string());
                return Err(Error::Index { path, doing: "listed", detail });
            }
        };
        let mut swept = 0;
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let gone = name.strip_suffix(GONE).and_then(|name| name.strip_suffix('.'));
            let Ok(no) = gone.unwrap_or(&name).parse::<u32>() else { continue };
            let folder = self.folder_of(dir, no);
            if gone.is_some() {
                delete(&gone_root(&folder))
                    .map_err(|error| index_error(&folder, "deleted", &error))?;
                swept += 1;
                continue;
            }
            match self.registry.list(no.saturating_sub(1), 1) {
                Ok(todos) if todos.first().is_some_and(|todo| todo.no() == no) => {}
                Ok(_) => {
                    remove(&folder)?;
                    swept += 1;
                }
                // Its owner cannot be read, so it stays.
                Err(KvError::Corrupt { .. }) => {}
                Err(error) => return Err(Error::Kv(error)),
            }
        }
        Ok(swept)
    }
}

/// Deletes a todo's indexes, and its folder. The folder is renamed first, in one step: a process that still writes to
/// it by the old name no longer reaches anything, and what a kill leaves is swept.
pub(super) fn remove(folder: &Folder) -> Result<(), Error> {
    let gone = gone_root(folder);
    let mut tries = 100;
    loop {
        // Repeated until the folder no longer reappears.
        let renamed = delete(&gone).and_then(|()| std::fs::rename(folder.root(), &gone));
        match renamed.map_err(|error| (error.kind(), error)) {
            Err((ErrorKind::NotFound | ErrorKind::NotADirectory, _)) => return Ok(()),
            Ok(()) => {}
            // A file that was just being created appeared in it, or another process deletes it too.
            Err((ErrorKind::DirectoryNotEmpty, _)) if tries > 0 => std::thread::sleep(TURN),
            Err((_, error)) => return Err(index_error(folder, "deleted", &error)),
        }
        tries -= 1;
    }
}

/// Returns the place to which a todo's folder is moved to be deleted.
fn gone_root(folder: &Folder) -> PathBuf {
    folder.root().with_extension(GONE)
}

/// The extension of the folder of a todo's indexes while it is deleted.
const GONE: &str = "gone";

fn delete(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
