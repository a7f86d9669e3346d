//! Errors of todo lists.

use crate::{ItemState, Reference, TodoId, TodoList};

/// An invalid todo list, or an invalid change to one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TodoListError {
    /// Two items have the same id.
    #[error("the todo list has two items with the id {0}; each needs an id of its own")]
    Duplicate(TodoId),
    /// There are more items than a list accepts.
    #[error("the todo list has {items} items, but at most {} are accepted", TodoList::MAX_ITEMS)]
    TooMany {
        /// How many there are.
        items: usize,
    },
    /// An item waits for one that is not in the list.
    #[error("item {item} depends on {on}, which is not in the todo list")]
    UnknownDependency {
        /// The item.
        item: TodoId,
        /// What it depends on.
        on: TodoId,
    },
    /// An item waits for itself.
    #[error("item {0} depends on itself, directly or indirectly")]
    Cycle(TodoId),
    /// There is no item with this id.
    #[error("the todo list has no item {0}")]
    Unknown(TodoId),
    /// The state cannot follow the one that the item has.
    #[error("item {item} is {from} and cannot become {to}")]
    State {
        /// The item.
        item: TodoId,
        /// Its state.
        from: ItemState,
        /// The requested state.
        to: ItemState,
    },
    /// An item was to be started or completed too early.
    #[error("item {item} cannot become {to}: it waits for {on}, which is not completed")]
    Waits {
        /// The item.
        item: TodoId,
        /// What it waits for.
        on: TodoId,
        /// The requested state.
        to: ItemState,
    },
    /// An item was to be started or completed, and what it waits for has failed.
    #[error(
        "item {item} cannot become {to}: it waits for {on}, which failed; restart {on}, or drop \
         the dependency"
    )]
    WaitsForFailed {
        /// The item.
        item: TodoId,
        /// What it waits for.
        on: TodoId,
        /// The requested state.
        to: ItemState,
    },
    /// An item does not say what is to be done.
    #[error("item {0} has no title; say in a few words what is to be done")]
    NoTitle(TodoId),
    /// An item has more of something than is accepted.
    #[error("item {item} has {size} {what}, but at most {most} are accepted")]
    TooLarge {
        /// The item.
        item: TodoId,
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        size: usize,
        /// How much is accepted.
        most: usize,
    },
    /// An item names a dependency or a reference twice.
    #[error("item {item} names {what} twice; name it once")]
    Repeated {
        /// The item.
        item: TodoId,
        /// What it names twice.
        what: String,
    },
    /// An item returned what is not its own.
    #[error("item {item} can return only blocks and payloads of its own todo, not {reference}")]
    ForeignReference {
        /// The item.
        item: TodoId,
        /// What it returned.
        reference: Reference,
    },
}
