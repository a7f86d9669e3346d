//! `memory_share`: the model lets an item of its todo list read parts of its own conversation.

use super::{as_told, failed, item_id, short_name};
use crate::own_tool::{context_of, read, spec};
use foldback_core::{Reference, TodoId, TodoList};
use foldback_tool::{
    CallContext, ContextHandle, Effect, FunctionTool, Tool, ToolError, ToolOutput,
};
use serde::Deserialize;
use std::sync::Arc;

const DESCRIPTION: &str = "Lets an item of your todo list read blocks and stored parts of your own conversation, by their names. \
     Delegation passes references by itself; use this for an item that needs more later.";

const PARAMETERS: &str = r#"{
    "type": "object",
    "required": ["to", "references"],
    "additionalProperties": false,
    "properties": {
        "to": {"type": "string", "minLength": 1, "description": "The id of the item."},
        "references": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string"},
            "description": "Names as shown to you: b_003, store://2-k4qd"
        }
    }
}"#;

#[derive(Deserialize)]
struct Arguments {
    to: String,
    references: Vec<String>,
}

/// Creates the tool by which a model lets an item of its todo list read blocks and payloads of its own
/// conversation. Nothing of another todo can be shared, and nothing with a todo that is not an item of the
/// list.
#[must_use]
pub fn memory_share() -> Arc<dyn Tool> {
    let spec = spec("memory_share", DESCRIPTION, PARAMETERS).with_effect(Effect::Idempotent);
    Arc::new(FunctionTool::new(
        spec,
        |arguments, call| async move { share(&arguments, &call).await },
    ))
}

async fn share(arguments: &str, call: &CallContext) -> Result<ToolOutput, ToolError> {
    let Arguments { to, references } = read(arguments)?;
    let context = context_of(call, "memory_share")?;
    let list = context.todo_list().await.map_err(|error| failed(context, &error))?;
    let item = item_id(context.todo(), &list, &to);
    if list.item(&item).is_none() {
        return Err(ToolError::arguments(no_item(context.todo(), &list, &to)));
    }
    let references = own_references(context.todo(), &references)?;
    // An item that has not begun has no todo yet.
    let child = context.child(item.clone()).await.map_err(|error| failed(context, &error))?;
    drop(child);
    let names: Vec<String> = references.iter().map(ToString::to_string).collect();
    if !grant(context, item, references).await? {
        let message = "this context keeps nothing that can be shared; write what is needed into the \
                       item's task instead";
        return Err(ToolError::permanent(message));
    }
    Ok(ToolOutput::text(format!("{} may read {} now.", to.trim(), names.join(", "))))
}

/// Grants a todo the right to read something of this one; returns whether the policy keeps such grants.
pub(crate) async fn grant(
    context: &ContextHandle,
    to: TodoId,
    references: Vec<Reference>,
) -> Result<bool, ToolError> {
    context.grant(to, references).await.map_err(|error| {
        let error = as_told(context.todo(), &error.message);
        ToolError::arguments(format!(
            "{error}. Use names that you were shown in this conversation."
        ))
    })
}

/// Resolves names to references, all of them of the todo `own`.
pub(crate) fn own_references(own: &TodoId, names: &[String]) -> Result<Vec<Reference>, ToolError> {
    let mut references = Vec::with_capacity(names.len());
    for name in names {
        let reference = Reference::parse_in(own, name.trim())
            .map_err(|error| ToolError::arguments(error.to_string()))?;
        if reference.todo() != own {
            return Err(ToolError::arguments(format!(
                "{name} is not from your own conversation, and nothing else can be shared; an item that \
                 depends on another may read what that one returned"
            )));
        }
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    Ok(references)
}

/// Returns the message that there is no such item, with those that exist.
fn no_item(parent: &TodoId, list: &TodoList, name: &str) -> String {
    let names: Vec<&str> = list.items().iter().map(|item| short_name(parent, &item.id)).collect();
    if names.is_empty() {
        return "the todo list has no items; write it first, with todo_write".to_owned();
    }
    format!("the todo list has no item {name:?}; the items are {}", names.join(", "))
}
