//! Grants of todos that are gone.

use super::record::{Record, lookup, records};
use crate::Error;
use crate::memory::Shared;
use foldback_core::TodoId;
use foldback_kv::{Batch, Delete, Space, Todo};

impl Shared {
    /// Checks, after a grant, whether all of these todos still exist. If one does not, removes what
    /// was granted and returns its name.
    pub(crate) fn settle<'a>(
        &self,
        todos: impl IntoIterator<Item = &'a Todo> + Clone,
    ) -> Result<Option<TodoId>, Error> {
        for todo in todos.clone() {
            if self.registry.find(todo.id())?.as_ref() != Some(todo) {
                todos.into_iter().try_for_each(|todo| self.drop_stale(todo))?;
                return Ok(Some(todo.id().clone()));
            }
        }
        Ok(None)
    }

    /// Deletes the grants of a todo that no longer hold because either side is gone.
    fn drop_stale(&self, todo: &Todo) -> Result<(), Error> {
        let mut delete = Vec::new();
        for (key, record) in records(self, todo.no())? {
            if !record.holds(&self.registry)? {
                delete.push(Delete::one(key));
                delete.extend(counterpart(self, todo.no(), &record)?);
            }
        }
        Ok(self.kv.commit(Batch { delete, ..Batch::default() })?)
    }

    /// Deletes the grants of todos that are gone, left behind when a process was killed while it
    /// granted or forgot.
    pub(crate) fn sweep_grants(&self) -> Result<(), Error> {
        // The registry's own head counts the todos ever made.
        let last = u32::try_from(self.kv.head(0)?).unwrap_or(u32::MAX);
        for no in 1..=last {
            let next = self.registry.list(no - 1, 1);
            match next.as_deref().map(<[Todo]>::first) {
                Ok(Some(todo)) if todo.no() == no => self.drop_stale(todo)?,
                Ok(_) => self.sweep_forgotten_grants(no)?,
                // A todo whose record cannot be read is not known to be gone.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Deletes everything stored under the number of a todo that is gone, and with the other sides.
    pub(crate) fn sweep_forgotten_grants(&self, no: u32) -> Result<(), Error> {
        if matches!(self.kv.last(Space::Grant, no), Ok(None)) {
            return Ok(());
        }
        let mut delete = of_todo(self, no)?;
        // A damaged record names nobody, and is deleted as well.
        delete.push(Delete::todo(Space::Grant, no));
        Ok(self.kv.commit(Batch { delete, ..Batch::default() })?)
    }
}

/// Returns what is stored of a todo's grants now, with itself and with the other sides, for
/// deletion when the todo is forgotten. What is granted meanwhile stays, so that
/// [`sweep_forgotten_grants`](Shared::sweep_forgotten_grants) finds it.
pub(crate) fn of_todo(memory: &Shared, no: u32) -> Result<Vec<Delete>, Error> {
    let mut delete = Vec::new();
    for (key, record) in records(memory, no)? {
        delete.push(Delete::one(key));
        delete.extend(counterpart(memory, no, &record)?);
    }
    Ok(delete)
}

/// Returns the same record with the other todo.
fn counterpart(memory: &Shared, no: u32, record: &Record) -> Result<Option<Delete>, Error> {
    let other = if record.from == no { record.to } else { record.from };
    let found = lookup(memory, other, (record.from, record.to), &record.reference)?;
    Ok(found.map(|(key, _)| Delete::one(key)))
}
