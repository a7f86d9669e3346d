//! How far each todo is written.

use crate::{Error, Head, Memory};
use foldback_kv::{DAMAGED_HEAD, Todo};
use std::collections::HashMap;

/// A todo, and how far it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The todo.
    pub todo: Todo,
    /// Its head, which changes with every message, block and todo list; `None` if that is damaged.
    pub head: Option<Head>,
}

/// How many todos are read at once.
const PAGE: usize = 1_000;

impl Memory {
    /// Returns a number that changes whenever any process writes to the store. Only equality is meaningful, and only
    /// between two answers of the same `Memory`. Ask for it before you read: what you read then is at least as new.
    ///
    /// # Errors
    /// When the store fails.
    pub fn changed(&self) -> Result<u64, Error> {
        Ok(self.shared.kv.changed()?)
    }

    /// Returns every todo with its head, in order of creation. The heads of all of them are one read.
    ///
    /// # Errors
    /// When the store fails or the record of a todo is damaged.
    pub fn standings(&self) -> Result<Vec<Standing>, Error> {
        let heads: HashMap<u32, u64> = self.shared.registry.heads()?.into_iter().collect();
        let head = |todo: &Todo| match heads.get(&todo.no()) {
            Some(&DAMAGED_HEAD) => None,
            head => Some(head.map_or_else(Head::default, |head| Head::from_number(*head))),
        };
        let mut found: Vec<Standing> = Vec::new();
        loop {
            let after = found.last().map_or(0, |last| last.todo.no());
            let page = self.shared.registry.list(after, PAGE)?;
            if page.is_empty() {
                return Ok(found);
            }
            found.extend(page.into_iter().map(|todo| Standing { head: head(&todo), todo }));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Memory, Options};
    use foldback_core::{Message, TodoId, TodoItem, TodoList};

    #[test]
    fn in8_every_write_moves_the_head_of_its_todo_alone() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let of = |id: &str| {
            let all = memory.standings().unwrap();
            all.into_iter().find(|one| one.todo.id().as_str() == id).unwrap().head.unwrap()
        };
        let [first, second] = ["first", "second"].map(|id| TodoId::new(id).unwrap());
        let mut session = memory.session(&first).unwrap();
        drop(memory.session(&second).unwrap());
        assert_eq!((of("first").messages, of("second")), (0, of("first")));
        let changed = memory.changed().unwrap();
        assert_eq!(memory.changed().unwrap(), changed);
        session.record(Message::user("Which berth? 哪个泊位？")).unwrap();
        let written = of("first");
        assert_eq!((written.messages, of("second").messages), (1, 0));
        assert_ne!(memory.changed().unwrap(), changed);
        // A list is written without a message, and the head says so.
        let item = TodoItem::new(second, "look");
        session.set_todo_list(&TodoList::new(vec![item]).unwrap()).unwrap();
        assert_eq!(of("first").messages, 1);
        assert_ne!(of("first"), written);
    }
}
