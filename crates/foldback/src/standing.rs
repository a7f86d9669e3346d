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

    /// Returns every todo with its head, in order of creation. The heads of all of them are one read, and the names of
    /// those that are `known` from an earlier answer are not read again, up to the first that holds nothing or is forgotten:
    /// the name of a number never changes.
    ///
    /// # Errors
    /// When the store fails or the record of a todo is damaged.
    pub fn standings(&self, known: Vec<Todo>) -> Result<Vec<Standing>, Error> {
        let registry = &self.shared.registry;
        let heads: HashMap<u32, u64> = registry.heads()?.into_iter().collect();
        let head = |todo: &Todo| match heads.get(&todo.no()) {
            Some(&DAMAGED_HEAD) => None,
            head => Some(head.map_or_else(Head::default, |head| Head::from_number(*head))),
        };
        let mut found = known;
        found.sort_by_key(Todo::no);
        // One without a head holds nothing, or is forgotten. A few are looked for; where there are more, the names are
        // listed again from the first of them on.
        let is_headless = |todo: &Todo| !heads.contains_key(&todo.no());
        if found.iter().filter(|todo| is_headless(todo)).count() <= found.len() / PAGE + 1 {
            let mut failed = None;
            found.retain(|todo| {
                !is_headless(todo)
                    || match registry.find(todo.id()) {
                        Ok(found) => found.is_some_and(|found| found.no() == todo.no()),
                        Err(error) => {
                            failed.get_or_insert(error);
                            true
                        }
                    }
            });
            failed.map_or(Ok(()), Err)?;
        } else if let Some(first) = found.iter().position(is_headless) {
            found.truncate(first);
        }
        let mut after = found.last().map_or(0, Todo::no);
        loop {
            let page = registry.list(after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.no();
            found.extend(page);
        }
        Ok(found.into_iter().map(|todo| Standing { head: head(&todo), todo }).collect())
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
            let all = memory.standings(Vec::new()).unwrap();
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

    #[test]
    fn in8_what_is_known_is_listed_as_if_it_were_not_and_what_is_forgotten_is_gone() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let id = |id: &str| TodoId::new(id).unwrap();
        let say = |name: &str| {
            memory.session(&id(name)).unwrap().record(Message::user("泊位")).unwrap();
        };
        ["first", "second", "third"].into_iter().for_each(say);
        drop(memory.session(&id("empty")).unwrap());
        let known = || memory.standings(Vec::new()).unwrap().into_iter().map(|one| one.todo);
        let before: Vec<_> = known().rev().collect();
        ["second", "fourth"].into_iter().for_each(say);
        for gone in ["first", "empty"] {
            memory.maintenance().forget(&id(gone)).unwrap();
        }
        // Another todo of the same name is another one.
        say("first");
        assert_eq!(memory.standings(before).unwrap(), memory.standings(Vec::new()).unwrap());
        let names: Vec<_> = known().map(|todo| todo.id().to_string()).collect();
        assert_eq!(names, ["second", "third", "fourth", "first"]);
    }
}
