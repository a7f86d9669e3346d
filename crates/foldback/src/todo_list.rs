//! A task's todo list: stored with the task, recited at the end of its prompts, and the place where
//! sub-tasks return what they found.

use crate::error::Failure;
use crate::grants::Granting;
use crate::live::Live;
use crate::memory::Shared;
use crate::record::Draft;
use crate::{Error, Grant, Memory, Session};
use foldback_chunker::Event;
use foldback_core::{ItemState, Reference, TodoId, TodoList};
use foldback_kv::{Error as KvError, Key, Space, Todo};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The result that a sub-task hands back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The item's state now.
    pub state: ItemState,
    /// The outcome, in a few words.
    pub result: Option<String>,
    /// Blocks and payloads of the sub-task's own todo that others will need.
    pub references: Vec<Reference>,
}

/// The outcome of handing back a sub-task's references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// The new grants: to the parent, and to the items that wait for the sub-task.
    pub grants: Vec<Grant>,
    /// The items that wait for it and were granted nothing because their todos were not begun as children of the
    /// parent. [`Session::child_session`] makes one of them a child, if it holds nothing yet, and then grants it
    /// what it waited for; [`Grants::grant`](crate::Grants::grant) grants to any todo.
    pub left_out: Vec<TodoId>,
}

impl Session {
    /// Returns the todo list; empty if there is none.
    #[must_use]
    pub fn todo_list(&self) -> &TodoList {
        &self.live.list
    }

    /// Sets the todo list: it is recited at the end of every prompt, and determines how finely
    /// blocks are cut. An empty list means none. What an item has returned stays with it, even if
    /// `list` has the item without it. An item that `list` leaves out is gone with what it returned,
    /// though what was granted stays granted; added again, it begins without.
    ///
    /// # Errors
    /// When a state does not follow the item's current one, an item is begun before what it waits
    /// for is completed, or an item claims to have returned what it did not
    /// ([`finish_item`](Self::finish_item) records that, so that no list that a model wrote grants
    /// anything); and when the store fails. Nothing changes then.
    pub fn set_todo_list(&mut self, list: &TodoList) -> Result<(), Error> {
        self.grant_by(|session, live, draft| {
            let list = with_returned(list, &live.list)?;
            list.check_change(&live.list)?;
            session.take_list(live, draft, list)
        })
        .map(drop)
    }

    /// Moves an item of the todo list to another state.
    ///
    /// # Errors
    /// When there is no such item, or the state does not follow its current one; and when the store
    /// fails.
    pub fn set_item_state(&mut self, item: &TodoId, state: ItemState) -> Result<(), Error> {
        self.grant_by(|session, live, draft| {
            let mut list = TodoList::clone(&live.list);
            list.set_state(item, state)?;
            session.take_list(live, draft, list)
        })
        .map(drop)
    }

    /// Records the outcome of an item. In the same transaction, the references that it returns are
    /// granted to this todo and to the items that depend on the item, if those are children of this
    /// todo, or not begun at all; in the latter case their todos are created now.
    ///
    /// # Errors
    /// When there is no such item or it cannot go to that state; when it returns
    /// references and its todo was not begun as a [`child`](Self::child_session) of this one;
    /// when its todo holds no such block or payload; and when the store
    /// fails. Nothing changes then.
    pub fn finish_item(&mut self, item: &TodoId, outcome: &Outcome) -> Result<Returned, Error> {
        self.grant_by(|session, live, draft| {
            let mut list = TodoList::clone(&live.list);
            list.add_result(item, outcome.result.as_deref(), &outcome.references)?;
            list.set_state(item, outcome.state)?;
            if !outcome.references.is_empty() {
                let (memory, parent) = (&session.memory, session.todo());
                let child = memory.child_of(&session.todo, item)?;
                let not_child = || Failure::NotChild { parent: parent.clone(), todo: item.clone() };
                let child = child.ok_or_else(not_child)?;
                for reference in &outcome.references {
                    memory.check_own(&child, reference)?;
                }
            }
            session.take_list(live, draft, list)
        })
    }

    /// Does what [`finish_item`](Self::finish_item) does from the sub-task's side: the item of the
    /// parent's list that is this todo is finished. Close the open messages first, so that they can
    /// be named. A session of the parent that is open elsewhere sees it after its next write, or
    /// [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// When this todo was not begun as a child, or the parent is forgotten; and
    /// as [`finish_item`](Self::finish_item).
    pub fn return_to_parent(&self, outcome: &Outcome) -> Result<Returned, Error> {
        let parent = self.memory.parent_of(&self.todo)?;
        let parent = parent.ok_or_else(|| Failure::NoParent(self.todo().clone()))?;
        Self::resume(self.memory.clone(), parent)?.finish_item(self.todo(), outcome)
    }

    /// Returns the todo that this one was begun as a child of, unless it is forgotten.
    ///
    /// # Errors
    /// When the store fails.
    pub fn parent(&self) -> Result<Option<TodoId>, Error> {
        Ok(self.memory.parent_of(&self.todo)?.map(|parent| parent.id().clone()))
    }

    /// Opens a separate session for a sub-task. A todo that is new, or holds no message and has no
    /// parent yet, becomes a child of this one: its references can be returned here, and what the items
    /// that it depends on have returned is granted to it. One with a conversation and no parent is
    /// opened as it is, and stays independent.
    ///
    /// # Errors
    /// When it is a child of another todo; and when the store fails.
    pub fn child_session(&mut self, todo: &TodoId) -> Result<Self, Error> {
        let child = self.memory.registry.create(todo, b"")?;
        let mut child = Self::resume(self.memory.clone(), child)?;
        child.begin_below(&self.todo)?;
        Ok(child)
    }

    /// Makes this todo a child of `parent` if it holds nothing and has no parent, and returns whether it is one now.
    /// This moves the head, so that of two callers at once, one sees the other's change.
    fn begin_below(&mut self, parent: &Todo) -> Result<bool, Error> {
        if let Some(is_child) = self.stands_below(parent, self.len())? {
            return Ok(is_child);
        }
        self.grant_by(|session, live, draft| {
            let mut granting = Granting::default();
            if session.stands_below(parent, live.head.messages)?.is_none() {
                draft.extra.push((parent_key(session.todo.no()), parent_bytes(parent)?));
                let list = session.memory.list_of(parent)?;
                let readers = readers(&list, parent.id());
                for (item, reference, _) in readers.iter().filter(|(.., r)| *r == session.todo()) {
                    if let Some(from) = session.memory.child_of(parent, item)? {
                        granting.add(&session.memory, &from, &session.todo, reference)?;
                    }
                }
            }
            Ok((granting, BTreeSet::new()))
        })?;
        Ok(self.memory.parent_of(&self.todo)?.as_ref() == Some(parent))
    }

    /// Returns whether this todo, which holds this many messages, is a child of `parent` or
    /// independent; `None` if it is neither yet. A child of another is an error.
    fn stands_below(&self, parent: &Todo, messages: u64) -> Result<Option<bool>, Error> {
        match self.memory.parent_of(&self.todo)? {
            Some(known) if known == *parent => Ok(Some(true)),
            Some(_) => {
                let (parent, todo) = (parent.id().clone(), self.todo().clone());
                Err(Failure::NotChild { parent, todo }.into())
            }
            None => Ok((self.todo == *parent || messages > 0).then_some(false)),
        }
    }

    /// Writes what `step` drafts together with what it grants.
    fn grant_by(
        &mut self,
        step: impl Fn(&Self, &mut Live, &mut Draft) -> Result<Granted, Error>,
    ) -> Result<Returned, Error> {
        let (granting, left_out) = self.write(|session, live, draft| {
            let (granting, left_out) = step(session, live, draft)?;
            draft.extra.extend(granting.puts()?);
            Ok((granting, left_out))
        })?;
        self.memory.settle(&granting.todos)?;
        Ok(Returned { grants: granting.grants, left_out: left_out.into_iter().collect() })
    }

    /// Stores the list, grants what is newly returned or newly depended on, and informs the chunker.
    fn take_list(
        &self,
        live: &mut Live,
        draft: &mut Draft,
        list: TodoList,
    ) -> Result<Granted, Error> {
        let (mut granting, mut left_out) = (Granting::default(), BTreeSet::new());
        let list = self.memory.redacted_list(list)?;
        let known = readers(&live.list, self.todo());
        for (item, reference, reader) in readers(&list, self.todo()).difference(&known) {
            // A todo that was forgotten meanwhile has nothing to grant.
            let Some(from) = self.memory.child_of(&self.todo, item)? else { continue };
            match self.reader(reader)? {
                Some(to) => granting.add(&self.memory, &from, &to, reference)?,
                None => drop(left_out.insert((*reader).clone())),
            }
        }
        draft.extra.push((list_key(&self.todo), list_bytes(&list)?));
        live.take_list(list, &self.memory);
        Ok((granting, left_out))
    }

    /// Returns the todo that may read what is returned to this one: itself, and its children. A
    /// missing one is created; an existing one with its own conversation is not changed by a list.
    fn reader(&self, id: &TodoId) -> Result<Option<Todo>, Error> {
        if id == self.todo() {
            return Ok(Some(self.todo.clone()));
        }
        let parent = parent_bytes(&self.todo)?;
        self.memory.registry.create_with(id, b"", |no| vec![(parent_key(no), parent.clone())])?;
        self.memory.child_of(&self.todo, id)
    }
}

/// What one write grants, and the items that were granted nothing.
type Granted = (Granting, BTreeSet<TodoId>);

impl Memory {
    /// Returns the todo list of a todo; empty if there is none.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails or the list is damaged.
    pub fn todo_list(&self, todo: &TodoId) -> Result<TodoList, Error> {
        let list = self.shared.kv.get(list_key(&self.find(todo)?))?;
        let Some(list) = list else { return Ok(TodoList::default()) };
        rmp_serde::from_slice(&list)
            .map_err(|error| Failure::State { todo: todo.clone(), what: error.to_string() }.into())
    }
}

impl Live {
    /// Takes the list: the chunker is given what it says about the task, which cuts nothing, and
    /// the list is recited from now on.
    pub(crate) fn take_list(&mut self, list: TodoList, memory: &Shared) {
        self.chunker.push(Event::OpenItems(list.open()));
        self.chunker.push(Event::Closing(list.is_closing()));
        let text = list.text(memory.tokens.as_ref());
        self.view.set_todo_list(Some(text));
        self.list = Arc::new(list);
    }
}

impl Shared {
    /// Returns the list as stored. A damaged one counts as none: its text stays in the view, and the
    /// next list replaces it.
    pub(crate) fn list_of(&self, todo: &Todo) -> Result<TodoList, Error> {
        match self.kv.get(list_key(todo)) {
            Ok(bytes) => Ok(rmp_serde::from_slice(&bytes.unwrap_or_default()).unwrap_or_default()),
            Err(KvError::Corrupt { .. }) => Ok(TodoList::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the todo `id` if it is a child of `parent`.
    fn child_of(&self, parent: &Todo, id: &TodoId) -> Result<Option<Todo>, Error> {
        let Some(child) = self.registry.find(id)? else { return Ok(None) };
        Ok((self.parent_of(&child)?.as_ref() == Some(parent)).then_some(child))
    }

    /// Returns the todo that began this one, unless it is gone. A damaged record names nobody.
    fn parent_of(&self, todo: &Todo) -> Result<Option<Todo>, Error> {
        let bytes = match self.kv.get(parent_key(todo.no())) {
            Err(KvError::Corrupt { .. }) => None,
            found => found?,
        };
        let no: Option<u32> = bytes.and_then(|bytes| rmp_serde::from_slice(&bytes).ok());
        // No number is assigned twice, so it identifies the todo; a name would outlive its todo here.
        let Some(before) = no.and_then(|no| no.checked_sub(1)) else { return Ok(None) };
        let next = self.registry.list(before, 1)?.pop();
        Ok(next.filter(|parent| Some(parent.no()) == no))
    }
}

fn list_key(todo: &Todo) -> Key {
    Key { space: Space::Plan, todo: todo.no(), n: 0 }
}

fn parent_key(todo: u32) -> Key {
    Key { space: Space::Plan, todo, n: 1 }
}

fn list_bytes(list: &TodoList) -> Result<Vec<u8>, Error> {
    rmp_serde::to_vec(list).map_err(|_| Failure::Internal("a todo list has no bytes").into())
}

fn parent_bytes(parent: &Todo) -> Result<Vec<u8>, Error> {
    rmp_serde::to_vec(&parent.no()).map_err(|_| Failure::Internal("a parent has no bytes").into())
}

/// Returns `list` with what the items of `old` have returned.
fn with_returned(list: &TodoList, old: &TodoList) -> Result<TodoList, Error> {
    let (mut items, old) = (list.items().to_vec(), old.by_id());
    for item in &mut items {
        let known = old.get(&item.id);
        let returned = known.map_or(&[][..], |known| known.references.as_slice());
        if let Some(reference) = item.references.iter().find(|one| !returned.contains(one)) {
            let (item, reference) = (item.id.clone(), reference.clone());
            return Err(Failure::NotReturned { item, reference }.into());
        }
        item.references = returned.to_vec();
        if item.result.is_none() {
            // The reason why an item failed no longer applies once it is taken up again.
            let known = known.filter(|known| !known.state.is_reopened_by(item.state));
            item.result = known.and_then(|known| known.result.clone());
        }
    }
    Ok(TodoList::new(items)?)
}

/// Returns who may read what was returned: for each item and reference, the owner of the list and
/// the items that depend on the item.
fn readers<'a>(
    list: &'a TodoList,
    owner: &'a TodoId,
) -> BTreeSet<(&'a TodoId, &'a Reference, &'a TodoId)> {
    let items = list.by_id();
    let dependents = list.items().iter().flat_map(|dependent| {
        let on = dependent.depends_on.iter().filter_map(|on| items.get(on));
        on.map(|on| (*on, &dependent.id))
    });
    let owner = list.items().iter().map(|item| (item, owner));
    let readers = dependents.chain(owner).flat_map(|(item, reader)| {
        item.references.iter().map(move |reference| (&item.id, reference, reader))
    });
    readers.collect()
}
