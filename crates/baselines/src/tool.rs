//! The declarations of the tools that a policy gives.

use foldback_core::{TokenCounter, ToolDefinition};

/// The declaration of a tool; `parameters` is a JSON schema.
pub(crate) fn tool(name: &str, description: &str, parameters: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_owned(),
    }
}

/// The tokens that declarations take in each request.
pub(crate) fn tool_tokens(counter: &dyn TokenCounter, tools: &[ToolDefinition]) -> usize {
    let texts = tools.iter().flat_map(|tool| [&tool.name, &tool.description, &tool.parameters]);
    texts.map(|text| counter.count(text)).sum()
}
