//! The part of a context policy that keeps sub-tasks.

use crate::{BlockId, ContextError, ContextManager, ItemState, Reference, TodoId, TodoList};

/// The todo list of a context, what its items hand back, and what todos may read of each other. A policy that keeps
/// these shows the list at the end of its prompts by itself.
///
/// It is reached through [`ContextManager::sub_tasks`], which borrows the context
/// mutably; so do the methods here, including those that only read.
pub trait SubTasks: Send {
    /// Returns the current todo list; empty if there is none yet.
    fn todo_list(&mut self) -> TodoList;

    /// Replaces the todo list.
    ///
    /// # Errors
    /// When the list does not follow from the one before it, or the store behind the policy fails.
    fn set_todo_list(&mut self, list: &TodoList) -> Result<(), ContextError>;

    /// Takes what a sub-task handed back: the new state of its item of the todo list, the result, and the references of
    /// its todo that may be read from here, and by the items that wait for it, from now on. Returns whether they can
    /// be: a reference leads nowhere if the policy keeps only lists.
    ///
    /// # Errors
    /// When there is no such item, a reference is not the item's, or the store behind the policy fails.
    fn finish_item(
        &mut self,
        item: &TodoId,
        state: ItemState,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<bool, ContextError>;

    /// Lets another todo read these blocks and payloads, this one's own or returned by an item of its list. Returns
    /// whether it can from now on.
    ///
    /// # Errors
    /// When a reference leads nowhere or is neither, or the store behind the policy fails.
    fn grant(&mut self, to: &TodoId, references: &[Reference]) -> Result<bool, ContextError>;

    /// Returns what other todos have let this one read, the oldest first.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn granted(&mut self) -> Result<Vec<Reference>, ContextError>;

    /// Notes that the work on this todo is over, at least for now: closes what is open, so that it can be named.
    /// Returns the block that holds the last message, if there is one; a second call returns the same.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn conclude(&mut self) -> Result<Option<BlockId>, ContextError>;
}

/// Returns the sub-tasks of a context that has to keep them.
///
/// # Errors
/// When its policy keeps none.
pub fn sub_tasks_of(context: &mut dyn ContextManager) -> Result<&mut dyn SubTasks, ContextError> {
    let todo = context.todo().clone();
    context.sub_tasks().ok_or_else(|| {
        let message = format!("the context of todo {todo} keeps no todo list");
        ContextError { message, source: None }
    })
}
