//! The list of a task's sub-tasks: ordered, with states, and with what each one returned.

mod error;
mod item;
mod text;

pub use error::TodoListError;
pub use item::{ItemState, TodoItem};

use crate::{Reference, TodoId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The ordered list of a task's sub-tasks. It is always sound: ids are unique, every item depends only on items of the
/// list, and no item depends on itself, directly or indirectly.
///
/// ```
/// use foldback_core::{ItemState, TodoId, TodoItem, TodoList};
///
/// let (read, sum_up) = (TodoId::new("read")?, TodoId::new("sum-up")?);
/// let mut list = TodoList::new(vec![
///     TodoItem::new(read.clone(), "Read the report"),
///     TodoItem::new(sum_up.clone(), "Sum it up").after([read.clone()]),
/// ])?;
/// assert!(list.set_state(&sum_up, ItemState::InProgress).is_err(), "it waits for the other");
/// list.set_state(&read, ItemState::InProgress)?;
/// list.set_state(&read, ItemState::Completed)?;
/// list.set_state(&sum_up, ItemState::InProgress)?;
/// assert_eq!(list.open(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<TodoItem>", into = "Vec<TodoItem>")]
pub struct TodoList {
    items: Vec<TodoItem>,
}

impl TodoList {
    /// The most items in a list.
    pub const MAX_ITEMS: usize = 1_000;
    /// The most characters in a title.
    pub const MAX_TITLE: usize = 500;
    /// The most characters in a result.
    pub const MAX_RESULT: usize = 4_000;
    /// The most items that one item waits for.
    pub const MAX_DEPENDENCIES: usize = 100;
    /// The most references that one item returns.
    pub const MAX_REFERENCES: usize = 256;

    /// Creates a list of these items, in this order.
    ///
    /// # Errors
    /// When an id is used twice, an item depends on one that is not in the list or, directly or indirectly, on itself,
    /// a returned reference belongs to another todo, an item has no title or names a dependency or a reference twice,
    /// or there is more of something than is accepted.
    pub fn new(items: Vec<TodoItem>) -> Result<Self, TodoListError> {
        if items.len() > Self::MAX_ITEMS {
            return Err(TodoListError::TooMany { items: items.len() });
        }
        let mut ids = BTreeSet::new();
        for item in &items {
            if !ids.insert(&item.id) {
                return Err(TodoListError::Duplicate(item.id.clone()));
            }
            item.check()?;
        }
        for item in &items {
            if let Some(unknown) = item.depends_on.iter().find(|id| !ids.contains(id)) {
                let (item, on) = (item.id.clone(), unknown.clone());
                return Err(TodoListError::UnknownDependency { item, on });
            }
        }
        if let Some(id) = in_a_circle(&items) {
            return Err(TodoListError::Cycle(id.clone()));
        }
        Ok(Self { items })
    }

    /// Returns the items, in order.
    #[must_use]
    pub fn items(&self) -> &[TodoItem] {
        &self.items
    }

    /// Returns the item with this id.
    #[must_use]
    pub fn item(&self, id: &TodoId) -> Option<&TodoItem> {
        self.items.iter().find(|item| item.id == *id)
    }

    /// Returns all items by their ids, for many look-ups.
    #[must_use]
    pub fn by_id(&self) -> BTreeMap<&TodoId, &TodoItem> {
        self.items.iter().map(|item| (&item.id, item)).collect()
    }

    /// Returns the items that can be started now: pending, and no longer waiting for anything.
    pub fn ready(&self) -> impl Iterator<Item = &TodoItem> {
        let known = self.by_id();
        self.items.iter().filter(move |item| {
            item.state == ItemState::Pending && waits_for(item, &known).is_none()
        })
    }

    /// Returns how many items are open.
    #[must_use]
    pub fn open(&self) -> u32 {
        let open = self.items.iter().filter(|item| item.state.is_open()).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Returns whether the task is being wrapped up: nothing is left to be started, and at least half of the items are
    /// settled. A list that gets another item is no longer closing.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        let is_pending = |item: &TodoItem| item.state == ItemState::Pending;
        let open = self.items.iter().filter(|item| item.state.is_open()).count();
        !self.items.is_empty() && 2 * open <= self.items.len() && !self.items.iter().any(is_pending)
    }

    /// Moves the item to `state`. An item that is taken up again loses its result.
    ///
    /// # Errors
    /// When there is no such item, the state cannot follow the one that it has, or the item would be started or
    /// completed while it waits for another. Nothing changes then.
    pub fn set_state(&mut self, id: &TodoId, state: ItemState) -> Result<(), TodoListError> {
        let before = self.clone();
        let item = self.items.iter_mut().find(|item| item.id == *id);
        let item = item.ok_or_else(|| TodoListError::Unknown(id.clone()))?;
        if item.state.is_reopened_by(state) {
            item.result = None;
        }
        item.state = state;
        self.check_change(&before).inspect_err(|_| *self = before.clone())
    }

    /// Checks that this list may follow `before`: that each state may follow the one that the item had, and that an
    /// item started or completed meanwhile waits for nothing. Items may come and go.
    ///
    /// # Errors
    /// When an item breaks these rules; the error names the first one.
    pub fn check_change(&self, before: &Self) -> Result<(), TodoListError> {
        let (known, items) = (before.by_id(), self.by_id());
        for item in &self.items {
            let from = known.get(&item.id).map_or(ItemState::Pending, |known| known.state);
            let to = item.state;
            if !from.may_become(to) {
                return Err(TodoListError::State { item: item.id.clone(), from, to });
            }
            let is_begun = matches!(to, ItemState::InProgress | ItemState::Completed);
            if is_begun
                && from != to
                && let Some(on) = waits_for(item, &items)
            {
                let (item, has_failed) = (item.id.clone(), on.state == ItemState::Failed);
                let on = on.id.clone();
                return Err(if has_failed {
                    TodoListError::WaitsForFailed { item, on, to }
                } else {
                    TodoListError::Waits { item, on, to }
                });
            }
        }
        Ok(())
    }

    /// Keeps what the item returned: a text, and references into its own todo, each once.
    ///
    /// # Errors
    /// When there is no such item, a reference belongs to another todo, or there is more than an item keeps. Nothing
    /// changes then.
    pub fn add_result(
        &mut self,
        id: &TodoId,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<(), TodoListError> {
        let item = self.items.iter_mut().find(|item| item.id == *id);
        let item = item.ok_or_else(|| TodoListError::Unknown(id.clone()))?;
        let mut changed = item.clone();
        for reference in references {
            if !changed.references.contains(reference) {
                changed.references.push(reference.clone());
            }
        }
        if let Some(result) = result {
            changed.result = Some(result.to_owned());
        }
        changed.check()?;
        *item = changed;
        Ok(())
    }
}

/// Returns an item that `item` waits for: one that is neither completed nor cancelled.
fn waits_for<'a>(item: &TodoItem, items: &BTreeMap<&TodoId, &'a TodoItem>) -> Option<&'a TodoItem> {
    let is_over =
        |item: &TodoItem| matches!(item.state, ItemState::Completed | ItemState::Cancelled);
    item.depends_on.iter().filter_map(|id| items.get(id).copied()).find(|on| !is_over(on))
}

/// Returns an item that waits for itself indirectly, if there is one: what is left when items whose dependencies are
/// all gone are removed again and again.
fn in_a_circle(items: &[TodoItem]) -> Option<&TodoId> {
    let mut waits: BTreeMap<&TodoId, usize> = BTreeMap::new();
    let mut waiting: BTreeMap<&TodoId, Vec<&TodoId>> = BTreeMap::new();
    for item in items {
        waits.insert(&item.id, item.depends_on.len());
        for on in &item.depends_on {
            waiting.entry(on).or_default().push(&item.id);
        }
    }
    let mut free: Vec<&TodoId> =
        waits.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = free.pop() {
        waits.remove(id);
        for next in waiting.get(id).into_iter().flatten() {
            if let Some(count) = waits.get_mut(next) {
                *count -= 1;
                if *count == 0 {
                    free.push(next);
                }
            }
        }
    }
    waits.into_keys().next()
}

impl TryFrom<Vec<TodoItem>> for TodoList {
    type Error = TodoListError;

    fn try_from(items: Vec<TodoItem>) -> Result<Self, TodoListError> {
        Self::new(items)
    }
}

impl From<TodoList> for Vec<TodoItem> {
    fn from(list: TodoList) -> Self {
        list.items
    }
}
#[cfg(test)]
mod tests;
