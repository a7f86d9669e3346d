//! The todo list at the end of each prompt, if the context's policy does not show it.

use crate::agent::AgentError;
use crate::notes::Notes;
use foldback_core::{
    Budget, ContextError, ContextManager, Estimate, ItemState, Message, Prompt, Reference, TodoId,
    TodoList, TodoListError, message_tokens,
};
use std::sync::Arc;

/// The kind under which the list is noted.
const KIND: &str = "todo_list";

/// A todo list that the policy does not keep: it is recited as the last message of each prompt, so that
/// nothing before it changes when an item is ticked.
#[derive(Debug)]
pub(crate) struct Recital {
    notes: Notes,
    /// The list, if the policy keeps none.
    list: Option<TodoList>,
}

impl Recital {
    /// Restores the list as earlier processes left it.
    pub(crate) fn new(notes: Notes) -> Self {
        let list = notes.past(KIND).last();
        Self { notes, list }
    }

    /// Returns the current list.
    pub(crate) fn list(&self, context: &mut dyn ContextManager) -> TodoList {
        let kept = || context.sub_tasks().map(|kept| kept.todo_list()).unwrap_or_default();
        self.list.clone().unwrap_or_else(kept)
    }

    /// Stores the current list, unless the policy does. It is shown either way.
    pub(crate) fn set(
        &mut self,
        context: &mut dyn ContextManager,
        list: &TodoList,
    ) -> Result<(), ContextError> {
        if let Some(kept) = context.sub_tasks() {
            kept.set_todo_list(list)?;
            self.list = None;
            return Ok(());
        }
        list.check_change(&self.list.clone().unwrap_or_default()).map_err(refused)?;
        self.keep(list.clone())
    }

    /// Stores the result of a sub-task. If the policy does not do so, the references lead nowhere and are not
    /// shown.
    pub(crate) fn finish_item(
        &mut self,
        context: &mut dyn ContextManager,
        item: &TodoId,
        state: ItemState,
        result: Option<&str>,
        references: &[Reference],
    ) -> Result<bool, ContextError> {
        if let Some(kept) = context.sub_tasks()
            && kept.finish_item(item, state, result, references)?
        {
            return Ok(true);
        }
        let Some(mut list) = self.list.clone() else { return Ok(false) };
        list.set_state(item, state).map_err(refused)?;
        list.add_result(item, result, &[]).map_err(refused)?;
        self.keep(list)?;
        Ok(false)
    }

    fn keep(&mut self, list: TodoList) -> Result<(), ContextError> {
        self.notes.note(KIND, &list).map_err(AgentError::into_context)?;
        self.list = Some(list);
        Ok(())
    }

    /// Returns what the context shows within a budget, followed by the list.
    pub(crate) fn prompt(&self, budget: &Budget, shown: impl Fn(&Budget) -> Prompt) -> Prompt {
        let Some(told) = self.list.as_ref().and_then(told) else { return shown(budget) };
        let tokens = message_tokens(&Estimate, &told);
        let left = budget.tokens.map(|bound| bound.saturating_sub(tokens));
        let mut prompt = shown(&Budget { tokens: left });
        // The list comes after the part that changes from call to call.
        prompt.conversation = Some(prompt.conversation().to_vec());
        prompt.messages.push(Arc::new(told));
        prompt.tokens += tokens;
        prompt.volatile += 1;
        prompt
    }
}

/// Returns the list as a message; `None` for an empty one.
fn told(list: &TodoList) -> Option<Message> {
    let text = list.text(&Estimate);
    let told =
        format!("[state of the work, not said by the user]\nTodo list:\n{}", text.trim_end());
    (!text.is_empty()).then(|| Message::user(&told))
}

fn refused(error: TodoListError) -> ContextError {
    ContextError { message: error.to_string(), source: Some(Box::new(error)) }
}
