//! `todo_write`: the model writes its todo list.

use super::{as_told, failed, item_id, short_name};
use crate::own_tool::{context_of, read, spec};
use crate::{RunEvent, RunLog};
use foldback_core::{ItemState, TodoId, TodoItem, TodoList, TodoListError};
use foldback_tool::{CallContext, Concurrency, Effect, FunctionTool, Tool, ToolError, ToolOutput};
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Writes your todo list: the whole list, which replaces the one before. Use it for work of several \
     steps, and keep it accurate: one item in_progress before you begin it, completed once it is done, \
     failed with what went wrong. You always see the current list.";

const PARAMETERS: &str = r#"{
    "type": "object",
    "required": ["items"],
    "additionalProperties": false,
    "properties": {
        "items": {
            "type": "array",
            "description": "All items, in order.",
            "items": {
                "type": "object",
                "required": ["id", "title"],
                "additionalProperties": false,
                "properties": {
                    "id": {"type": "string", "minLength": 1, "description": "A short name that stays the same: read-report"},
                    "title": {"type": "string", "minLength": 1, "description": "What is to be done, in a few words."},
                    "state": {
                        "type": "string",
                        "enum": ["pending", "in_progress", "completed", "failed", "cancelled"],
                        "description": "Unchanged if left out; pending for a new item."
                    },
                    "depends_on": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Ids of the items that come before it. Unchanged if left out."
                    },
                    "result": {"type": "string", "description": "The outcome, in a few words."}
                }
            }
        }
    }
}"#;

#[derive(Deserialize)]
struct Arguments {
    items: Vec<Written>,
}

/// An item as the model writes it.
#[derive(Deserialize)]
struct Written {
    id: String,
    title: String,
    state: Option<ItemState>,
    depends_on: Option<Vec<String>>,
    result: Option<String>,
}

/// Creates the tool by which a model writes its todo list.
///
/// The list is passed to the context (`SubTasks::set_todo_list`) and to observers. Parts of a known item that
/// it leaves out stay, and so does what the item has returned. A list that is invalid, or does not follow from
/// the one before, changes nothing, and the answer says what was expected.
#[must_use]
pub fn todo_write() -> Arc<dyn Tool> {
    let spec = spec("todo_write", DESCRIPTION, PARAMETERS)
        .with_effect(Effect::Idempotent)
        // Nothing else may change the list in the meantime.
        .with_concurrency(Concurrency::Exclusive);
    Arc::new(FunctionTool::new(
        spec,
        |arguments, call| async move { write(&arguments, &call).await },
    ))
}

async fn write(arguments: &str, call: &CallContext) -> Result<ToolOutput, ToolError> {
    let Arguments { items } = read(arguments)?;
    let context = context_of(call, "todo_write")?;
    let parent = context.todo().clone();
    let names: Vec<String> = items.iter().map(|item| item.id.trim().to_owned()).collect();
    let of = parent.clone();
    let changed = context.change_todo_list(move |list| rewritten(&of, &list, items)).await;
    let list = changed.map_err(|error| failed(context, &error))?.map_err(|error| {
        let error = as_told(&parent, &error.to_string());
        ToolError::arguments(format!("{error}. The list is unchanged; write the whole list again."))
    })?;
    let told = told(&parent, &list, &names);
    RunLog::of(call).emit(RunEvent::Todos { list: &list });
    Ok(ToolOutput::text(told))
}

/// Returns the list as the model writes it; parts that it leaves out stay as they were.
fn rewritten(
    parent: &TodoId,
    before: &TodoList,
    items: Vec<Written>,
) -> Result<TodoList, TodoListError> {
    let id = |name: &str| item_id(parent, before, name);
    let items = items.into_iter().map(|written| {
        let id_of = id(&written.id);
        let known = before.item(&id_of).cloned();
        let mut item = known.unwrap_or_else(|| TodoItem::new(id_of, ""));
        item.title = written.title;
        let before = item.state;
        item.state = written.state.unwrap_or(before);
        if let Some(names) = written.depends_on {
            item.depends_on = names.iter().map(|name| id(name)).collect();
        }
        // The reason why an item failed no longer applies when it is reopened.
        let known = item.result.filter(|_| !before.is_reopened_by(item.state));
        item.result = written.result.or(known);
        item
    });
    let list = TodoList::new(items.collect())?;
    list.check_change(before)?;
    Ok(list)
}

/// Reports how many items are in which state, and the actual names of items whose given names were changed.
fn told(parent: &TodoId, list: &TodoList, names: &[String]) -> String {
    let states = [
        ItemState::Completed,
        ItemState::InProgress,
        ItemState::Pending,
        ItemState::Failed,
        ItemState::Cancelled,
    ];
    let counts = states.iter().filter_map(|state| {
        let count = list.items().iter().filter(|item| item.state == *state).count();
        (count > 0).then(|| format!("{count} {}", state.as_str().replace('_', " ")))
    });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() {
        return "The todo list is empty.".to_owned();
    }
    let renamed = list.items().iter().zip(names).filter_map(|(item, name)| {
        let short = short_name(parent, &item.id);
        let is_own = short == name || item.id.as_str() == name;
        (!is_own).then(|| format!("{name} is called {short}"))
    });
    let renamed: Vec<String> = renamed.collect();
    let mut told = format!("Todo list: {}.", counts.join(", "));
    if !renamed.is_empty() {
        told.push_str(&format!(" Ids: {}.", renamed.join(", ")));
    }
    told
}
