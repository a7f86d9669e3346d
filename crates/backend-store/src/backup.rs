//! Copies the files of payloads into a folder.

use crate::folder::Folder;
use crate::payload_files::FileName;
use crate::place_note::mark_copy;
use crate::{BackendStore, Error};
use foldback_kv::{Key, Space};
use std::collections::BTreeSet;
use std::path::Path;

impl BackendStore {
    /// Copies the payload files of all todos into another folder, durably, and returns how many. A
    /// backup copies the records **first**: every file that they name exists by then. Only the
    /// files of a todo that is forgotten between the two may be left out; then its payloads are
    /// damaged in the copy, and nothing else is.
    ///
    /// The copy of a store that keeps its files elsewhere has them in its folder: it needs nothing of the original, and
    /// changes nothing there.
    ///
    /// # Errors
    /// When the disk or the object store fails, and, for a store that keeps its files elsewhere, when a record is
    /// damaged.
    pub fn backup(&self, folder: &Path) -> Result<u64, Error> {
        let Some(files) = &self.files else { return Ok(0) };
        let to = Folder::new(folder.to_owned());
        let mut copied = 0;
        for todo in files.todos()? {
            for name in self.worth_copying(todo, files.list(todo)?)? {
                // If it was forgotten or swept meanwhile, the copy does not need it either.
                copied += u64::from(files.copy(&name, &to)?);
            }
        }
        mark_copy(self.kv.as_ref(), folder)?;
        Ok(copied)
    }

    /// Leaves out what would take the name of another file in a folder, where a name has no random part: objects that
    /// no record names.
    fn worth_copying(&self, todo: u32, names: Vec<FileName>) -> Result<Vec<FileName>, Error> {
        if names.iter().all(|name| name.copy.is_none()) {
            return Ok(names);
        }
        let wanted = match self.wanted(todo) {
            // Of a forgotten todo there is no record, and, in an encrypted store, no key.
            Err(_) if self.kv.scan(Space::Payload, todo, 1..Key::N_END, 1)?.is_empty() => {
                BTreeSet::new()
            }
            wanted => wanted?,
        };
        Ok(names.into_iter().filter(|name| wanted.contains(name)).collect())
    }
}
