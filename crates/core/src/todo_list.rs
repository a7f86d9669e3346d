//! The list of a task's sub-tasks: ordered, with states, and with what each one returned.

mod text;

use crate::{Reference, TodoId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The ordered list of a task's sub-tasks. It is always sound: ids are unique, every item depends on
/// items of the list only, and no item on itself, not even by way of others.
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

/// One sub-task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// The todo in which it is worked on.
    pub id: TodoId,
    /// What is to be done, in a few words.
    pub title: String,
    /// Where it stands.
    #[serde(default)]
    pub state: ItemState,
    /// The items that have to be completed, or cancelled, before it is begun.
    #[serde(default)]
    pub depends_on: Vec<TodoId>,
    /// The blocks and payloads of its todo that it returned.
    #[serde(default)]
    pub references: Vec<Reference>,
    /// What came out, in a few words; of a failed item, why.
    #[serde(default)]
    pub result: Option<String>,
}

/// Where an item stands.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Nobody has begun it.
    #[default]
    Pending,
    /// Somebody works on it.
    InProgress,
    /// It is done.
    Completed,
    /// It was tried and could not be done.
    Failed,
    /// It is not wanted any more.
    Cancelled,
}

impl ItemState {
    /// Whether something is left to be done.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// Whether an item that has come to an end is taken up again by going to `next`.
    #[must_use]
    pub fn is_reopened_by(self, next: Self) -> bool {
        !self.is_open() && next.is_open()
    }

    /// The name as it is serialised.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether an item may go from this state to `next`. What is completed stays so; what failed or
    /// was cancelled has to be taken up again before it can come to another end.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Completed => next == Self::Completed,
            Self::Pending | Self::InProgress => true,
            Self::Failed | Self::Cancelled => next.is_open() || next == self,
        }
    }
}

impl fmt::Display for ItemState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TodoItem {
    /// An item that nobody has begun and that waits for none.
    #[must_use]
    pub fn new(id: TodoId, title: &str) -> Self {
        Self {
            id,
            title: title.to_owned(),
            state: ItemState::Pending,
            depends_on: Vec::new(),
            references: Vec::new(),
            result: None,
        }
    }

    /// The same item, which waits for these.
    #[must_use]
    pub fn after(self, others: impl IntoIterator<Item = TodoId>) -> Self {
        Self { depends_on: others.into_iter().collect(), ..self }
    }

    /// What can be told of the item without the others.
    fn check(&self) -> Result<(), TodoListError> {
        let id = || self.id.clone();
        if self.title.trim().is_empty() {
            return Err(TodoListError::NoTitle(id()));
        }
        let result = self.result.as_deref().unwrap_or_default();
        for (what, size, most) in [
            ("characters in its title", self.title.chars().count(), TodoList::MAX_TITLE),
            ("characters in its result", result.chars().count(), TodoList::MAX_RESULT),
            ("dependencies", self.depends_on.len(), TodoList::MAX_DEPENDENCIES),
            ("references", self.references.len(), TodoList::MAX_REFERENCES),
        ] {
            if size > most {
                return Err(TodoListError::TooLarge { item: id(), what, size, most });
            }
        }
        let foreign = self.references.iter().find(|reference| *reference.todo() != self.id);
        if let Some(reference) = foreign {
            let (item, reference) = (id(), reference.clone());
            return Err(TodoListError::ForeignReference { item, reference });
        }
        let (mut dependencies, mut references) = (BTreeSet::new(), BTreeSet::new());
        let twice = self.depends_on.iter().find(|on| !dependencies.insert(*on));
        let twice = twice.map(ToString::to_string).or_else(|| {
            let twice = self.references.iter().find(|reference| !references.insert(*reference));
            twice.map(ToString::to_string)
        });
        twice.map_or(Ok(()), |what| Err(TodoListError::Repeated { item: id(), what }))
    }
}

impl TodoList {
    /// The most items of a list.
    pub const MAX_ITEMS: usize = 1_000;
    /// The most characters of a title.
    pub const MAX_TITLE: usize = 500;
    /// The most characters of a result.
    pub const MAX_RESULT: usize = 4_000;
    /// The most items that one waits for.
    pub const MAX_DEPENDENCIES: usize = 100;
    /// The most references that one returns.
    pub const MAX_REFERENCES: usize = 256;

    /// A list of these items, in this order.
    ///
    /// # Errors
    /// When an id comes twice, an item depends on one that is not in the list or on itself by way of
    /// others, a returned reference belongs to another todo, an item has no title, names a dependency
    /// or a reference twice, or there is more of something than is taken.
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

    /// The items, in order.
    #[must_use]
    pub fn items(&self) -> &[TodoItem] {
        &self.items
    }

    /// The item of this id.
    #[must_use]
    pub fn item(&self, id: &TodoId) -> Option<&TodoItem> {
        self.items.iter().find(|item| item.id == *id)
    }

    /// All items by their ids, for many look-ups.
    #[must_use]
    pub fn by_id(&self) -> BTreeMap<&TodoId, &TodoItem> {
        self.items.iter().map(|item| (&item.id, item)).collect()
    }

    /// The items that can be begun now: pending, and they wait for nothing any more.
    pub fn ready(&self) -> impl Iterator<Item = &TodoItem> {
        let known = self.by_id();
        self.items.iter().filter(move |item| {
            item.state == ItemState::Pending && waits_for(item, &known).is_none()
        })
    }

    /// How many items are open.
    #[must_use]
    pub fn open(&self) -> u32 {
        let open = self.items.iter().filter(|item| item.state.is_open()).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Whether the task is being wrapped up: nothing is left to be begun, and at least half of the
    /// items are settled. A list that gets another item is not closing any more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        let is_pending = |item: &TodoItem| item.state == ItemState::Pending;
        let open = self.items.iter().filter(|item| item.state.is_open()).count();
        !self.items.is_empty() && 2 * open <= self.items.len() && !self.items.iter().any(is_pending)
    }

    /// Lets the item go to `state`. One that is taken up again has no result any more.
    ///
    /// # Errors
    /// When there is no such item, the state does not follow on the one that it has, or the item
    /// would be begun or completed while it waits for another. Nothing changes then.
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

    /// Checks that this list may follow on `before`: that each state follows on the one that the item
    /// had, and that what was begun or completed meanwhile waits for nothing. Items may come and go.
    ///
    /// # Errors
    /// Naming the first item that may not be as it is.
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

    /// Keeps what the item returned: words, and references into its own todo, each once.
    ///
    /// # Errors
    /// When there is no such item, a reference belongs to another todo, or it is more than an item
    /// keeps. Nothing changes then.
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

/// An item that `item` waits for: one that is neither completed nor cancelled.
fn waits_for<'a>(item: &TodoItem, items: &BTreeMap<&TodoId, &'a TodoItem>) -> Option<&'a TodoItem> {
    let is_over =
        |item: &TodoItem| matches!(item.state, ItemState::Completed | ItemState::Cancelled);
    item.depends_on.iter().filter_map(|id| items.get(id).copied()).find(|on| !is_over(on))
}

/// An item that waits for itself by way of others, if there is one: what is left when items whose
/// dependencies are all gone are taken away again and again.
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

/// A todo list that makes no sense, or a change of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TodoListError {
    /// Two items have one id.
    #[error("the todo list has two items with the id {0}; each needs an id of its own")]
    Duplicate(TodoId),
    /// There are more items than a list takes.
    #[error("the todo list has {items} items, and at most {} are taken", TodoList::MAX_ITEMS)]
    TooMany {
        /// How many there are.
        items: usize,
    },
    /// An item waits for one that is not there.
    #[error("item {item} depends on {on}, which is not in the todo list")]
    UnknownDependency {
        /// The item.
        item: TodoId,
        /// What it depends on.
        on: TodoId,
    },
    /// An item waits for itself.
    #[error("item {0} depends on itself, directly or by way of others")]
    Cycle(TodoId),
    /// There is no item of this id.
    #[error("the todo list has no item {0}")]
    Unknown(TodoId),
    /// The state does not follow on the one that the item has.
    #[error("item {item} is {from} and cannot become {to}")]
    State {
        /// The item.
        item: TodoId,
        /// Its state.
        from: ItemState,
        /// The state that was asked for.
        to: ItemState,
    },
    /// An item was to be begun or completed too early.
    #[error("item {item} cannot become {to}: it waits for {on}, which is not completed")]
    Waits {
        /// The item.
        item: TodoId,
        /// What it waits for.
        on: TodoId,
        /// The state that was asked for.
        to: ItemState,
    },
    /// An item was to be begun or completed, and what it waits for has failed.
    #[error(
        "item {item} cannot become {to}: it waits for {on}, which failed; take {on} up again, or drop \
         the dependency"
    )]
    WaitsForFailed {
        /// The item.
        item: TodoId,
        /// What it waits for.
        on: TodoId,
        /// The state that was asked for.
        to: ItemState,
    },
    /// An item says nothing of what is to be done.
    #[error("item {0} has no title; say in a few words what is to be done")]
    NoTitle(TodoId),
    /// There is more of something in an item than is taken.
    #[error("item {item} has {size} {what}, and at most {most} are taken")]
    TooLarge {
        /// The item.
        item: TodoId,
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        size: usize,
        /// How much is taken.
        most: usize,
    },
    /// An item names a dependency or a reference twice.
    #[error("item {item} names {what} twice; once is enough")]
    Repeated {
        /// The item.
        item: TodoId,
        /// What it names twice.
        what: String,
    },
    /// An item returned what is not its own.
    #[error("item {item} can return blocks and payloads of its own todo only, not {reference}")]
    ForeignReference {
        /// The item.
        item: TodoId,
        /// What it returned.
        reference: Reference,
    },
}

#[cfg(test)]
mod tests;
