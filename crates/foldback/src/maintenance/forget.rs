//! A todo that is deleted for good.

use super::Maintenance;
use crate::{Error, disk, grants};
use foldback_core::TodoId;
use foldback_kv::{Delete, Error as KvError, Space};

impl Maintenance<'_> {
    /// Deletes a todo for good: its messages, blocks, vectors, payloads, indexes, todo list, the grants
    /// that it gave and received, and its name. Once this returns, no search finds it; `compact` removes
    /// its bytes from the files. On a full disk the store releases the space that it reserves for this.
    ///
    /// # Errors
    /// When there is no such todo, the store fails, or is read-only; then everything is still there, except
    /// that on a full disk some of the todo may be gone: forget it again. If only files of payloads, indexes
    /// or killed backups could not be removed, the todo is gone all the same, and [`repair`](Self::repair)
    /// removes them.
    pub fn forget(self, id: &TodoId) -> Result<(), Error> {
        let memory = self.memory;
        let todo = memory.find(id)?;
        let mut delete = memory.blocks.forget(&todo);
        delete.extend(memory.payloads.forget(&todo));
        delete.extend(grants::of_todo(memory, todo.no())?);
        delete.extend(
            [Space::Plan, Space::Sent, Space::Parked].map(|space| Delete::todo(space, todo.no())),
        );
        match memory.registry.remove(&todo, delete.clone()) {
            Err(KvError::Full { path }) => {
                let full = || disk::named_of_forgetting(&path);
                if !memory.dir.as_deref().map_or(Ok(false), disk::release_reserve)? {
                    return Err(full());
                }
                memory.registry.remove(&todo, delete).map_err(|error| match error {
                    KvError::Full { .. } => full(),
                    error => error.into(),
                })?;
            }
            removed => removed?,
        }
        foldback_core::failpoint!("foldback.forget.records-gone");
        // From here on nothing new is granted; what was granted meanwhile goes now.
        let grants = memory.sweep_forgotten_grants(todo.no());
        // Files go last: they are needed until the records are gone. Each kind is removed even if
        // others fail.
        let payloads = memory.payloads.remove_files(&todo);
        foldback_core::failpoint!("foldback.forget.payloads-gone");
        let indexes = memory.blocks.remove_index(&todo);
        foldback_core::failpoint!("foldback.forget.index-gone");
        let all_todos = memory.all_todos.forget(&todo);
        // What shared a volume with it in the index over all todos is indexed again.
        memory.indexer.wake(&todo);
        let copies = self.remove_left_copies();
        grants?;
        payloads?;
        copies?;
        if let Some(store) = &memory.dir {
            disk::make_reserve(store);
        }
        all_todos?;
        Ok(indexes?)
    }
}
