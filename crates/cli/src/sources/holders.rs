//! Which todos of a store hold the conversations of an id, or of a name.

use super::naming::{self, Beginnings, OtherName, Stored, other_names};
use foldback::Memory;
use foldback_core::TodoId;
use foldback_transcript::Conversation;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;

/// A store, and which of its todos hold conversations of other ids than their own.
pub(crate) struct Holders<'m> {
    memory: &'m Memory,
    known: RefCell<Known>,
}

/// What was read of the todos up to a number.
#[derive(Default)]
struct Known {
    up_to: u32,
    by_id: HashMap<String, Vec<TodoId>>,
}

/// How many todos are read at once.
const STEP: usize = 1_024;

impl<'m> Holders<'m> {
    pub(crate) fn new(memory: &'m Memory) -> Self {
        Self { memory, known: RefCell::default() }
    }

    pub(crate) fn memory(&self) -> &'m Memory {
        self.memory
    }

    /// Returns the todos that hold conversations with this id under another name, in the order of their creation. The
    /// first call reads the list of all todos, later ones what was added to it.
    pub(super) fn others_of(&self, id: &str) -> Vec<TodoId> {
        let mut known = self.known.borrow_mut();
        // A store that cannot be read fails with the next step.
        while let Ok(todos) = self.memory.conversations().foreign_ids_after(known.up_to, STEP) {
            let Some((last, _)) = todos.last() else { break };
            known.up_to = last.no();
            for (todo, id) in todos {
                if let Some(id) = id {
                    known.by_id.entry(id).or_default().push(todo.id().clone());
                }
            }
        }
        known.by_id.get(id).cloned().unwrap_or_default()
    }

    /// Returns what a todo holds; `None` if it holds nothing.
    pub(super) fn held(&self, todo: &TodoId) -> Option<Stored> {
        let conversations = self.memory.conversations();
        let held = holds(self.memory, todo).then(|| conversations.export(todo).ok()).flatten()?;
        let foreign_id = conversations.info(todo).ok()?.foreign_id;
        Some(Stored { foreign_id, beginnings: Beginnings::of(&held.messages) })
    }

    /// Returns the todos that a conversation of this name may have been given, each with the number of messages that both
    /// begin with, if there are several: the best match first; among equals, the one that is named by the file.
    pub(crate) fn of(
        &self,
        name: &str,
        file: &str,
        conversation: &Conversation,
    ) -> Vec<(TodoId, usize)> {
        let id = conversation.id.as_deref();
        let may_be = |todo: &TodoId| {
            let info = self.memory.conversations().info(todo);
            info.is_ok_and(|info| naming::may_be(todo, info.foreign_id.as_deref(), id))
        };
        let mut todos: Vec<_> =
            self.named(name, file, id).into_iter().filter(may_be).map(|todo| (todo, 0)).collect();
        if todos.len() > 1 {
            let own = Beginnings::of(&conversation.messages);
            for (todo, common) in &mut todos {
                *common = self.held(todo).map_or(0, |held| held.beginnings.common(&own));
            }
            todos.sort_by_key(|(_, common)| Reverse(*common));
        }
        todos
    }

    /// Returns the todos that hold anything and may be those of a conversation of this name: the one that is named by its
    /// file, its own, and further ones.
    fn named(&self, name: &str, file: &str, id: Option<&str>) -> Vec<TodoId> {
        let mut named: Vec<_> = match id {
            Some(id) => {
                let of_file = self.names(name, file).next().filter(|(_, is_of_file)| *is_of_file);
                let own =
                    of_file.map(|(todo, _)| todo).into_iter().chain([TodoId::from_foreign(name)]);
                own.chain(self.others_of(id)).filter(|todo| holds(self.memory, todo)).collect()
            }
            None => {
                let names = self.names(name, file).map(|(todo, _)| todo);
                names.take_while(|todo| holds(self.memory, todo)).collect()
            }
        };
        let mut seen = std::collections::HashSet::new();
        named.retain(|todo| seen.insert(todo.clone()));
        named
    }

    /// Returns the first todo for a conversation of this name that holds nothing.
    pub(crate) fn new_todo(&self, name: &str, file: &str) -> Option<TodoId> {
        let mut names = self.names(name, file).map(|(todo, _)| todo);
        names.find(|todo| !holds(self.memory, todo))
    }

    /// Returns the todos for a conversation of this name: the one that is named by its file, if it holds anything, its own,
    /// and further ones; each with whether it is named by the file.
    fn names(&self, name: &str, file: &str) -> impl Iterator<Item = (TodoId, bool)> + use<> {
        let todo = |other: OtherName| (TodoId::from_foreign(&other.name), other.is_of_file);
        let mut names = other_names(name, file).peekable();
        let of_file = names.next_if(|other| other.is_of_file).map(todo);
        let of_file = of_file.filter(|(todo, _)| holds(self.memory, todo));
        let own = (TodoId::from_foreign(name), false);
        of_file.into_iter().chain([own]).chain(names.map(todo))
    }
}

/// Whether a todo holds anything.
pub(crate) fn holds(memory: &Memory, todo: &TodoId) -> bool {
    memory.len(todo).is_ok_and(|len| len > 0)
}
