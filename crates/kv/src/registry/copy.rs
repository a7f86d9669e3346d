//! Takes over the todos of another registry, with their numbers.

use super::{REGISTRY, Registry, Todo, name_key, own_key, record, write_names};
use crate::{Batch, Delete, Error, Expect, Key};
use std::collections::BTreeMap;

impl Registry {
    /// Returns how many todos were ever made, those included that were forgotten: the greatest number of a todo.
    ///
    /// # Errors
    /// When the store fails or the count is damaged.
    pub fn made(&self) -> Result<u64, Error> {
        self.kv.head(REGISTRY)
    }

    /// Reserves the numbers up to `to` for todos of another store, in one transaction with `put`. `from` is the greatest
    /// number that was given so far. Todos that are made from then on get greater numbers.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a todo was made meanwhile, and when the store fails.
    pub fn reserve(&self, from: u64, to: u64, put: Vec<(Key, Vec<u8>)>) -> Result<(), Error> {
        let expect = Some(Expect { todo: REGISTRY, head: from, next: to });
        self.kv.commit(Batch { expect, put, ..Batch::default() })
    }

    /// Registers todos of another store under the numbers that they have there, each with its info, if `expect` holds.
    /// Until it is [named](Self::name), none is found by its id.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it does not, and when the store fails.
    pub fn register(&self, todos: &[(Todo, Vec<u8>)], expect: Expect) -> Result<(), Error> {
        let put = todos.iter().map(|(todo, info)| (own_key(todo.no), record(&todo.id, info)));
        let (put, expect) = (put.collect(), Some(expect));
        self.kv.commit(Batch { expect, put, ..Batch::default() })
    }

    /// Returns the deletion of a todo's record here. It is found by its id until it is [un-named](Self::unname).
    #[must_use]
    pub fn unregister(&self, todo: &Todo) -> Delete {
        Delete::one(own_key(todo.no))
    }

    /// Lets registered todos be found by their ids, if `expect` holds.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it does not; when the store fails or a record is damaged.
    pub fn name(&self, todos: &[Todo], expect: Expect) -> Result<(), Error> {
        self.rename(todos, expect, |names, todo| names.push(todo.clone()))
    }

    /// Undoes [`name`](Self::name), also for todos that have none.
    ///
    /// # Errors
    /// As [`name`](Self::name).
    pub fn unname(&self, todos: &[Todo], expect: Expect) -> Result<(), Error> {
        self.rename(todos, expect, |_, _| {})
    }

    /// Changes the records by which todos are found; `change` gets those that share a hash with one, without it.
    fn rename(
        &self,
        todos: &[Todo],
        expect: Expect,
        change: impl Fn(&mut Vec<Todo>, &Todo),
    ) -> Result<(), Error> {
        let mut all: BTreeMap<Key, Vec<Todo>> = BTreeMap::new();
        for todo in todos {
            let key = name_key(self.kv.as_ref(), &todo.id)?;
            let mut names = match all.remove(&key) {
                Some(names) => names,
                None => self.names(&todo.id)?,
            };
            names.retain(|other| other.no != todo.no);
            change(&mut names, todo);
            all.insert(key, names);
        }
        let (mut put, mut delete) = (Vec::new(), Vec::new());
        for (key, names) in all {
            match names.as_slice() {
                [] => delete.push(Delete::one(key)),
                names => put.push((key, write_names(names))),
            }
        }
        self.kv.commit(Batch { expect: Some(expect), put, delete })
    }
}
