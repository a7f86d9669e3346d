//! What a context policy keeps of sub-tasks.

use crate::{BlockId, ContextError, ContextManager, ItemState, Reference, TodoId, TodoList};

/// The todo list of a context, what its items hand back, and what todos may read of each other. A policy
/// that keeps these shows the list at the end of its prompts by itself.
///
/// It is reached through [`ContextManager::sub_tasks`](crate::ContextManager::sub_tasks), which borrows the
/// context for a change; so do the methods here, those that only read as well.
pub trait SubTasks: Send {
    /// The todo list as it stands; empty where there is none yet.
    fn todo_list(&mut self) -> TodoList;

    /// Takes the todo list as it stands now.
    ///
    /// # Errors
    /// When the list does not follow from the one before it, or the store behind the policy fails.
    fn set_todo_list(&mut self, list: &TodoList) -> Result<(), ContextError>;

    /// Takes what a sub-task handed back: where its item of the todo list stands, what came out, and the
    /// references of its todo that may be read from here, and by the items that wait for it, from now
    /// on. Says whether they can be: references lead nowhere where the policy keeps lists alone.
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

    /// Lets another todo read these blocks and payloads, this one's own or returned by an item of its
    /// list. Says whether it can from now on.
    ///
    /// # Errors
    /// When a reference leads nowhere or is neither, or the store behind the policy fails.
    fn grant(&mut self, to: &TodoId, references: &[Reference]) -> Result<bool, ContextError>;

    /// What other todos have let this one read, the oldest first.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn granted(&mut self) -> Result<Vec<Reference>, ContextError>;

    /// The work on this todo is over, at least for now: closes what is open, so that it can be named.
    /// Gives the block that the last message stands in, where there is one; asked again, the same.
    ///
    /// # Errors
    /// When the store behind the policy fails.
    fn conclude(&mut self) -> Result<Option<BlockId>, ContextError>;
}

/// What a context keeps of sub-tasks, where it has to.
///
/// # Errors
/// When its policy keeps nothing of them.
pub fn sub_tasks_of(context: &mut dyn ContextManager) -> Result<&mut dyn SubTasks, ContextError> {
    let todo = context.todo().clone();
    context.sub_tasks().ok_or_else(|| {
        let message = format!("the context of todo {todo} keeps no todo list");
        ContextError { message, source: None }
    })
}
