//! Common parts of the agent's own tools: declaring them, reading their arguments, and finding the caller's
//! context.

use foldback_core::ToolDefinition;
use foldback_tool::{CallContext, ContextHandle, ToolError, ToolSpec};
use serde::de::DeserializeOwned;

/// Returns the specification of a tool with this name.
pub(crate) fn spec(name: &str, description: &str, parameters: &str) -> ToolSpec {
    ToolSpec::new(ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_owned(),
    })
}

/// Reads the arguments of a call.
pub(crate) fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, ToolError> {
    serde_json::from_str(arguments)
        .map_err(|error| ToolError::arguments(format!("the arguments cannot be read: {error}")))
}

/// Returns the caller's context.
pub(crate) fn context_of<'a>(
    call: &'a CallContext,
    tool: &str,
) -> Result<&'a ContextHandle, ToolError> {
    let nowhere = || {
        ToolError::permanent(format!("{tool} works only in an agent, and no agent makes this call"))
    };
    call.context.as_ref().ok_or_else(nowhere)
}
