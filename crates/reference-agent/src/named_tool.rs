//! A lookup of tools by name.

use crate::ReferenceAgentError;
use foldback_tool::Tool;
use std::sync::Arc;

/// Returns the position of the tool with this name.
pub(crate) fn position(name: &str, tools: &[Arc<dyn Tool>]) -> Result<usize, ReferenceAgentError> {
    let at = tools.iter().position(|tool| tool.spec().name() == name);
    at.ok_or_else(|| no_tool(name, tools))
}

pub(crate) fn no_tool(name: &str, tools: &[Arc<dyn Tool>]) -> ReferenceAgentError {
    let names = tools.iter().map(|tool| tool.spec().name()).collect::<Vec<_>>().join(", ");
    ReferenceAgentError::NoTool { name: name.to_owned(), names }
}
