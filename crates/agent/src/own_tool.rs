//! What the agent's own tools have in common: how they are declared, read their arguments and find the
//! context of whoever calls.

use foldback_core::ToolDefinition;
use foldback_tool::{CallContext, ContextHandle, ToolError, ToolSpec};
use serde::de::DeserializeOwned;

/// What a planner has to know of a tool of this name.
pub(crate) fn spec(name: &str, description: &str, parameters: &str) -> ToolSpec {
    ToolSpec::new(ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_owned(),
    })
}

/// The arguments of a call.
pub(crate) fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, ToolError> {
    serde_json::from_str(arguments)
        .map_err(|error| ToolError::arguments(format!("the arguments cannot be read: {error}")))
}

/// The context of whoever calls.
pub(crate) fn context_of<'a>(
    call: &'a CallContext,
    tool: &str,
) -> Result<&'a ContextHandle, ToolError> {
    let nowhere = || {
        ToolError::permanent(format!("{tool} works only in an agent, and no agent makes this call"))
    };
    call.context.as_ref().ok_or_else(nowhere)
}
