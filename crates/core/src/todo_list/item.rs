//! One sub-task and its state.

use crate::{Reference, TodoId, TodoList, TodoListError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// One sub-task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// The todo in which it is worked on.
    pub id: TodoId,
    /// What is to be done, in a few words.
    pub title: String,
    /// Its state.
    #[serde(default)]
    pub state: ItemState,
    /// The items that must be completed, or cancelled, before it is started.
    #[serde(default)]
    pub depends_on: Vec<TodoId>,
    /// The blocks and payloads of its todo that it returned.
    #[serde(default)]
    pub references: Vec<Reference>,
    /// The result, in a few words; of a failed item, the reason.
    #[serde(default)]
    pub result: Option<String>,
}

/// The state of an item.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Nobody has started it.
    #[default]
    Pending,
    /// Somebody is working on it.
    InProgress,
    /// It is done.
    Completed,
    /// It was tried and could not be done.
    Failed,
    /// It is no longer wanted.
    Cancelled,
}

impl ItemState {
    /// Returns whether something is left to be done.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// Returns whether an item that has ended is taken up again by going to `next`.
    #[must_use]
    pub fn is_reopened_by(self, next: Self) -> bool {
        !self.is_open() && next.is_open()
    }

    /// Returns the name as it is serialised.
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

    /// Returns whether an item may go from this state to `next`. A completed item stays so; a
    /// failed or cancelled one must be taken up again before it can end in another way.
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
    /// Creates an item that nobody has started and that waits for none.
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

    /// Returns the same item, waiting for these.
    #[must_use]
    pub fn after(self, others: impl IntoIterator<Item = TodoId>) -> Self {
        Self { depends_on: others.into_iter().collect(), ..self }
    }

    /// Checks what can be checked of the item without the others.
    pub(super) fn check(&self) -> Result<(), TodoListError> {
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
