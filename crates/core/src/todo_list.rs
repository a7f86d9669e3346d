//! The list of a task's sub-tasks: ordered, with states, and with what each one returned.

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
    /// The items that have to be completed before it is begun.
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
}

impl TodoList {
    /// The most items of a list.
    pub const MAX_ITEMS: usize = 1_000;

    /// A list of these items, in this order.
    ///
    /// # Errors
    /// When an id comes twice, an item depends on one that is not in the list or on itself by way of
    /// others, a returned reference belongs to another todo, or there are too many items.
    pub fn new(items: Vec<TodoItem>) -> Result<Self, TodoListError> {
        if items.len() > Self::MAX_ITEMS {
            return Err(TodoListError::TooMany { items: items.len() });
        }
        let mut ids = BTreeSet::new();
        for item in &items {
            if !ids.insert(&item.id) {
                return Err(TodoListError::Duplicate(item.id.clone()));
            }
            let foreign = item.references.iter().find(|reference| *reference.todo() != item.id);
            if let Some(reference) = foreign {
                let (item, reference) = (item.id.clone(), reference.clone());
                return Err(TodoListError::ForeignReference { item, reference });
            }
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

    /// The items that wait for this one.
    pub fn dependents<'a>(&'a self, id: &'a TodoId) -> impl Iterator<Item = &'a TodoItem> {
        self.items.iter().filter(move |item| item.depends_on.contains(id))
    }

    /// The items that can be begun now: pending, and everything that they wait for is completed.
    pub fn ready(&self) -> impl Iterator<Item = &TodoItem> {
        self.items.iter().filter(|item| {
            item.state == ItemState::Pending && self.unfinished(item).next().is_none()
        })
    }

    /// How many items are open.
    #[must_use]
    pub fn open(&self) -> u32 {
        let open = self.items.iter().filter(|item| item.state.is_open()).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Whether the task is being wrapped up: something is done, and nothing is left to be begun.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        let is_pending = |item: &TodoItem| item.state == ItemState::Pending;
        self.items.iter().any(|item| !item.state.is_open()) && !self.items.iter().any(is_pending)
    }

    /// Lets the item go to `state`.
    ///
    /// # Errors
    /// When there is no such item, the state does not follow on the one that it has, or the item
    /// would be begun or completed before what it waits for is completed. Nothing changes then.
    pub fn set_state(&mut self, id: &TodoId, state: ItemState) -> Result<(), TodoListError> {
        let before = self.clone();
        let item = self.items.iter_mut().find(|item| item.id == *id);
        item.ok_or_else(|| TodoListError::Unknown(id.clone()))?.state = state;
        self.check_change(&before).inspect_err(|_| *self = before.clone())
    }

    /// Checks that this list may follow on `before`: that each state follows on the one that the item
    /// had, and that what was begun or completed meanwhile waits for nothing. Items may come and go.
    ///
    /// # Errors
    /// Naming the first item that may not be as it is.
    pub fn check_change(&self, before: &Self) -> Result<(), TodoListError> {
        for item in &self.items {
            let known = before.item(&item.id);
            let (from, to) = (known.map_or(ItemState::Pending, |known| known.state), item.state);
            if !from.may_become(to) {
                return Err(TodoListError::State { item: item.id.clone(), from, to });
            }
            let is_begun = matches!(to, ItemState::InProgress | ItemState::Completed);
            if is_begun
                && from != to
                && let Some(on) = self.unfinished(item).next()
            {
                return Err(TodoListError::Waits { item: item.id.clone(), on: on.clone(), to });
            }
        }
        Ok(())
    }

    /// Keeps what the item returned: words, and references into its own todo, each once.
    ///
    /// # Errors
    /// When there is no such item, or a reference belongs to another todo. Nothing changes then.
    pub fn add_result(
        &mut self,
        id: &TodoId,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<(), TodoListError> {
        if let Some(foreign) = references.iter().find(|reference| reference.todo() != id) {
            let (item, reference) = (id.clone(), foreign.clone());
            return Err(TodoListError::ForeignReference { item, reference });
        }
        let item = self.items.iter_mut().find(|item| item.id == *id);
        let item = item.ok_or_else(|| TodoListError::Unknown(id.clone()))?;
        for reference in references {
            if !item.references.contains(reference) {
                item.references.push(reference.clone());
            }
        }
        if let Some(result) = result {
            item.result = Some(result.to_owned());
        }
        Ok(())
    }

    /// What `item` waits for and is not completed.
    fn unfinished<'a>(&'a self, item: &'a TodoItem) -> impl Iterator<Item = &'a TodoId> {
        item.depends_on
            .iter()
            .filter(|id| self.item(id).is_none_or(|on| on.state != ItemState::Completed))
    }
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
mod tests {
    use super::*;

    fn id(text: &str) -> TodoId {
        TodoId::new(text).unwrap()
    }

    fn item(name: &str, after: &[&str]) -> TodoItem {
        TodoItem::new(id(name), &format!("做 {name}")).after(after.iter().map(|on| id(on)))
    }

    #[track_caller]
    fn check_refused(items: Vec<TodoItem>, expected: &str) {
        assert_eq!(TodoList::new(items).unwrap_err().to_string(), expected);
    }

    /// TD4: a list that makes no sense is refused by a sentence that names the item.
    #[test]
    fn td4_a_list_is_sound_or_refused() {
        check_refused(
            vec![item("a", &[]), item("a", &[])],
            "the todo list has two items with the id a; each needs an id of its own",
        );
        check_refused(
            vec![item("a", &["b"])],
            "item a depends on b, which is not in the todo list",
        );
        check_refused(
            vec![item("a", &["a"])],
            "item a depends on itself, directly or by way of others",
        );
        check_refused(
            vec![item("z", &[]), item("a", &["c"]), item("b", &["a"]), item("c", &["b", "z"])],
            "item a depends on itself, directly or by way of others",
        );
        let mut foreign = item("a", &[]);
        foreign.references.push("b_other_001".parse().unwrap());
        check_refused(
            vec![foreign],
            "item a can return blocks and payloads of its own todo only, not b_other_001",
        );
        let many = (0..=TodoList::MAX_ITEMS).map(|n| item(&format!("i{n}"), &[])).collect();
        check_refused(many, "the todo list has 1001 items, and at most 1000 are taken");
        // A long chain and a wide fan are no circles, in whatever order they stand.
        let chain = (0..900).rev().map(|n| match n {
            0 => item("n0", &[]),
            n => item(&format!("n{n}"), &[&format!("n{}", n - 1), "n0"]),
        });
        TodoList::new(chain.collect()).unwrap();
    }

    /// TD4: states follow each other, and what waits is not begun.
    #[test]
    fn td4_states_follow_each_other() {
        use ItemState::{Cancelled, Completed, Failed, InProgress, Pending};
        let mut list = TodoList::new(vec![item("a", &[]), item("b", &["a"])]).unwrap();
        let ready = |list: &TodoList| list.ready().map(|i| i.id.to_string()).collect::<Vec<_>>();
        assert_eq!(ready(&list), ["a"]);
        let refused = |list: &mut TodoList, name: &str, state| {
            let before = list.clone();
            let error = list.set_state(&id(name), state).unwrap_err().to_string();
            assert_eq!(*list, before, "what is refused changes nothing");
            error
        };
        for state in [InProgress, Completed] {
            assert_eq!(
                refused(&mut list, "b", state),
                format!("item b cannot become {state}: it waits for a, which is not completed")
            );
        }
        assert_eq!(refused(&mut list, "c", Pending), "the todo list has no item c");
        for state in [InProgress, Failed] {
            list.set_state(&id("a"), state).unwrap();
        }
        assert_eq!(
            refused(&mut list, "a", Completed),
            "item a is failed and cannot become completed"
        );
        for state in [InProgress, Cancelled, Pending, Completed] {
            list.set_state(&id("a"), state).unwrap();
        }
        assert_eq!(
            refused(&mut list, "a", Pending),
            "item a is completed and cannot become pending"
        );
        assert_eq!(
            (list.open(), list.is_closing(), ready(&list)),
            (1, false, vec!["b".to_owned()])
        );
        list.set_state(&id("b"), InProgress).unwrap();
        assert!(list.is_closing(), "one item is left, and it is being worked on");
    }

    /// TD4: an item returns references of its own todo, each once.
    #[test]
    fn td4_an_item_keeps_what_it_returned() {
        let mut list = TodoList::new(vec![item("a", &[]), item("b", &["a"])]).unwrap();
        let own: Reference = "b_a_001".parse().unwrap();
        list.add_result(&id("a"), Some("三行"), &[own.clone(), own.clone()]).unwrap();
        let kept = list.item(&id("a")).unwrap();
        assert_eq!(
            (kept.references.as_slice(), kept.result.as_deref()),
            (&[own.clone()][..], Some("三行"))
        );
        assert!(list.add_result(&id("b"), None, &[own]).is_err());
        assert_eq!(list.dependents(&id("a")).count(), 1);
    }

    /// TD4: a stored list is read with its checks, and may leave out what has a default.
    #[test]
    fn td4_a_list_comes_back_from_json() {
        let json = r#"[{"id":"a","title":"读"},{"id":"b","title":"写","state":"in_progress","depends_on":["a"]}]"#;
        let list: TodoList = serde_json::from_str(json).unwrap();
        assert_eq!(list.item(&id("b")).unwrap().state, ItemState::InProgress);
        let again: TodoList = serde_json::from_str(&serde_json::to_string(&list).unwrap()).unwrap();
        assert_eq!(again, list);
        let wrong = serde_json::from_str::<TodoList>(&json.replace("[\"a\"]", "[\"b\"]"));
        assert!(wrong.unwrap_err().to_string().contains("depends on itself"));
    }
}
