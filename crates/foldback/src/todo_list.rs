//! A task's todo list: kept with the task, recited at the end of its prompts, and the place where
//! sub-tasks return what they found.

use crate::grants::Draft as Grants;
use crate::live::Live;
use crate::memory::Shared;
use crate::record::Draft;
use crate::{Error, Grant, Memory, Session};
use foldback_chunker::Event;
use foldback_core::{ItemState, Reference, TodoId, TodoList, TodoListError};
use foldback_disclosure::todo_list_text;
use foldback_kv::{Batch, Error as KvError, Key, Space, Todo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a sub-task hands back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Where the item stands now.
    pub state: ItemState,
    /// What came out, in a few words.
    pub result: Option<String>,
    /// Blocks and payloads of the sub-task's own todo that others will need.
    pub references: Vec<Reference>,
}

impl Session {
    /// The todo list; empty where there is none.
    #[must_use]
    pub fn todo_list(&self) -> &TodoList {
        &self.live.list
    }

    /// Takes the todo list as it stands now: it is recited at the end of every prompt, and tells how
    /// finely blocks are cut. An empty list is none. What items have returned stays with them, also
    /// where `list` leaves it out.
    ///
    /// # Errors
    /// When a state does not follow on the one that the item has, an item is begun before what it
    /// waits for is completed, or one claims to have returned what it has not
    /// ([`Error::NotReturned`]: [`finish_item`](Self::finish_item) records that, so that no list that
    /// a model wrote grants anything); and when the store fails. Nothing changes then.
    pub fn set_todo_list(&mut self, list: &TodoList) -> Result<(), Error> {
        self.write(|session, live, draft| {
            let list = with_returned(list, &live.list)?;
            list.check_change(&live.list)?;
            session.take_list(live, draft, list).map(drop)
        })
    }

    /// Lets an item of the todo list go to another state.
    ///
    /// # Errors
    /// When there is no such item, or the state does not follow on the one that it has; and when the
    /// store fails.
    pub fn set_item_state(&mut self, item: &TodoId, state: ItemState) -> Result<(), Error> {
        self.write(|session, live, draft| {
            let mut list = TodoList::clone(&live.list);
            list.set_state(item, state)?;
            session.take_list(live, draft, list).map(drop)
        })
    }

    /// Records what an item came to. The references that it returns are granted to this todo and to
    /// the items that depend on the item, in the same transaction. Gives the new grants.
    ///
    /// # Errors
    /// When there is no such item or it cannot go to that state; [`Error::NotChild`] when it returns
    /// references and its todo was not begun as a [`child`](Self::child_session) of this one;
    /// [`Error::NoReference`] when its todo holds no such block or payload; and when the store
    /// fails. Nothing changes then.
    pub fn finish_item(&mut self, item: &TodoId, outcome: &Outcome) -> Result<Vec<Grant>, Error> {
        self.write(|session, live, draft| {
            let mut list = TodoList::clone(&live.list);
            list.add_result(item, outcome.result.as_deref(), &outcome.references)?;
            list.set_state(item, outcome.state)?;
            if !outcome.references.is_empty() {
                let (memory, parent) = (&session.memory, session.todo());
                let child = memory.child_of(&session.todo, item)?;
                let not_child = || Error::NotChild { parent: parent.clone(), todo: item.clone() };
                let child = child.ok_or_else(not_child)?;
                for reference in &outcome.references {
                    memory.check_own(&child, reference)?;
                }
            }
            session.take_list(live, draft, list)
        })
    }

    /// As [`finish_item`](Self::finish_item), from the sub-task's side: the item of the parent's list
    /// that is this todo is finished. Close what is open first, so that it can be named. A session
    /// of the parent that is open elsewhere sees it after its next write, or
    /// [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// [`Error::NoParent`] when this todo was not begun as a child, or the parent is forgotten; and
    /// as [`finish_item`](Self::finish_item).
    pub fn return_to_parent(&self, outcome: &Outcome) -> Result<Vec<Grant>, Error> {
        let parent = self.memory.parent_of(&self.todo)?;
        let parent = parent.ok_or_else(|| Error::NoParent(self.todo().clone()))?;
        Self::resume(self.memory.clone(), parent)?.finish_item(self.todo(), outcome)
    }

    /// The todo that this one was begun as a child of, unless it is forgotten.
    ///
    /// # Errors
    /// When the store fails.
    pub fn parent(&self) -> Result<Option<TodoId>, Error> {
        Ok(self.memory.parent_of(&self.todo)?.map(|parent| parent.id().clone()))
    }

    /// A session of its own for a sub-task. A todo that is new, or holds no message and has no parent
    /// yet, becomes a child of this one: its references can be returned here. Any other is opened as
    /// it is, and stays whose it is.
    ///
    /// # Errors
    /// When the store fails.
    pub fn child_session(&mut self, todo: &TodoId) -> Result<Self, Error> {
        let child = self.memory.registry.create(todo, b"")?;
        self.memory.adopt(&self.todo, &child)?;
        Self::resume(self.memory.clone(), child)
    }

    /// Keeps the list, grants what is newly returned or newly depended on, and tells the chunker.
    fn take_list(
        &self,
        live: &mut Live,
        draft: &mut Draft,
        list: TodoList,
    ) -> Result<Vec<Grant>, Error> {
        let mut grants = Grants::default();
        let known = readers(&live.list, self.todo());
        for (item, reference, reader) in readers(&list, self.todo()).difference(&known) {
            // A todo that was forgotten meanwhile has nothing to give.
            let Some(from) = self.memory.child_of(&self.todo, item)? else { continue };
            let to = if *reader == self.todo() {
                self.todo.clone()
            } else {
                let to = self.memory.registry.create(reader, b"")?;
                if !self.memory.adopt(&self.todo, &to)? {
                    let (parent, todo) = (self.todo().clone(), (*reader).clone());
                    return Err(Error::NotChild { parent, todo });
                }
                to
            };
            grants.add(&self.memory, &from, &to, reference)?;
        }
        draft.extra.extend(grants.puts);
        draft.extra.push((list_key(&self.todo), list_bytes(&list)?));
        let mut closed = live.chunker.push(Event::OpenItems(list.open()));
        if list.is_closing() {
            closed.extend(live.chunker.push(Event::Closing));
        }
        live.show_list(list, &self.memory);
        self.close_blocks(live, draft, &closed)?;
        Ok(grants.grants)
    }
}

impl Memory {
    /// The todo list of a todo; empty where there is none.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails or the list is damaged.
    pub fn todo_list(&self, todo: &TodoId) -> Result<TodoList, Error> {
        let list = self.shared.kv.get(list_key(&self.find(todo)?))?;
        let read = |bytes: Vec<u8>| {
            let state = |error: rmp_serde::decode::Error| error.to_string();
            let wrong = |what| Error::State { todo: todo.clone(), what };
            rmp_serde::from_slice(&bytes).map_err(|error| wrong(state(error)))
        };
        Ok(list.map(read).transpose()?.unwrap_or_default())
    }
}

impl Live {
    /// Takes the list and recites it from now on.
    pub(crate) fn show_list(&mut self, list: TodoList, memory: &Shared) {
        let text = todo_list_text(&list, memory.tokens.as_ref());
        self.view.set_todo_list(Some(text));
        self.list = Arc::new(list);
    }
}

impl Shared {
    /// The list as the store has it. A damaged one is none: its text stays in the view, and the next
    /// list replaces it.
    pub(crate) fn list_of(&self, todo: &Todo) -> Result<TodoList, Error> {
        match self.kv.get(list_key(todo)) {
            Ok(bytes) => Ok(rmp_serde::from_slice(&bytes.unwrap_or_default()).unwrap_or_default()),
            Err(KvError::Corrupt { .. }) => Ok(TodoList::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// The todo `id`, where it is a child of `parent`.
    fn child_of(&self, parent: &Todo, id: &TodoId) -> Result<Option<Todo>, Error> {
        let Some(child) = self.registry.find(id)? else { return Ok(None) };
        Ok((self.parent_of(&child)?.as_ref() == Some(parent)).then_some(child))
    }

    /// The todo that began this one, unless it is gone. A damaged record names nobody.
    fn parent_of(&self, todo: &Todo) -> Result<Option<Todo>, Error> {
        let bytes = match self.kv.get(parent_key(todo)) {
            Err(KvError::Corrupt { .. }) => None,
            found => found?,
        };
        let parent = bytes.and_then(|bytes| rmp_serde::from_slice(&bytes).ok());
        let Some(Parent { no, id }) = parent else { return Ok(None) };
        Ok(self.registry.find(&id)?.filter(|parent| parent.no() == no))
    }

    /// Makes `child` a child of `parent`, if it is nobody's and holds nothing; says whether it is one
    /// now.
    fn adopt(&self, parent: &Todo, child: &Todo) -> Result<bool, Error> {
        if let Some(known) = self.parent_of(child)? {
            return Ok(known == *parent);
        }
        if child == parent || self.blocks.head(child)?.messages > 0 {
            return Ok(false);
        }
        let record = Parent { no: parent.no(), id: parent.id().clone() };
        let bytes =
            rmp_serde::to_vec(&record).map_err(|_| Error::Internal("a parent has no bytes"))?;
        let put = vec![(parent_key(child), bytes)];
        self.kv.commit(Batch { put, ..Batch::default() })?;
        Ok(true)
    }
}

/// The todo that began another, as it was then.
#[derive(Serialize, Deserialize)]
struct Parent {
    no: u32,
    id: TodoId,
}

fn list_key(todo: &Todo) -> Key {
    Key { space: Space::Plan, todo: todo.no(), n: 0 }
}

fn parent_key(todo: &Todo) -> Key {
    Key { space: Space::Plan, todo: todo.no(), n: 1 }
}

fn list_bytes(list: &TodoList) -> Result<Vec<u8>, Error> {
    rmp_serde::to_vec(list).map_err(|_| Error::Internal("a todo list has no bytes"))
}

/// `list` with what the items of `old` have returned.
fn with_returned(list: &TodoList, old: &TodoList) -> Result<TodoList, Error> {
    let mut items = list.items().to_vec();
    for item in &mut items {
        let known = old.item(&item.id);
        let returned = known.map_or(&[][..], |known| known.references.as_slice());
        if let Some(reference) = item.references.iter().find(|one| !returned.contains(one)) {
            let (item, reference) = (item.id.clone(), reference.clone());
            return Err(Error::NotReturned { item, reference });
        }
        item.references = returned.to_vec();
        if item.result.is_none() {
            item.result = known.and_then(|known| known.result.clone());
        }
    }
    Ok(TodoList::new(items)?)
}

/// Who may read what was returned: of each item and reference, the owner of the list and the items
/// that depend on the item.
fn readers<'a>(
    list: &'a TodoList,
    owner: &'a TodoId,
) -> BTreeSet<(&'a TodoId, &'a Reference, &'a TodoId)> {
    let returned = list
        .items()
        .iter()
        .flat_map(|item| item.references.iter().map(move |reference| (item, reference)));
    returned
        .flat_map(|(item, reference)| {
            let dependents = list.dependents(&item.id).map(|dependent| &dependent.id);
            dependents.chain([owner]).map(move |reader| (&item.id, reference, reader))
        })
        .collect()
}

impl From<TodoListError> for Error {
    fn from(error: TodoListError) -> Self {
        Self::TodoList(error)
    }
}
