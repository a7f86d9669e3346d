//! The declarations of a policy's tools.

use foldback_core::{TokenCounter, ToolDefinition};

/// Returns the declaration of a tool; `parameters` is a JSON schema.
pub(crate) fn tool(name: &str, description: &str, parameters: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_owned(),
    }
}

/// Returns the tokens that declarations take in each request.
pub(crate) fn tool_tokens(counter: &dyn TokenCounter, tools: &[ToolDefinition]) -> usize {
    let texts = tools.iter().flat_map(|tool| [&tool.name, &tool.description, &tool.parameters]);
    texts.map(|text| counter.count(text)).sum()
}
