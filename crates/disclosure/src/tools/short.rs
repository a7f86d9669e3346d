//! The three tools in a short form, for prompts in which every token counts.

use super::{list_blocks, load, search_block};
use foldback_core::ToolDefinition;

/// The tokens of [`short`], as o200k counts them.
pub(crate) const SHORT_TOKENS: u64 = 97;

/// The three tools in a short form. They take the same arguments as in the long one; what the short form
/// leaves unsaid is told by the notices and the ledger that name them, and by their answers.
pub(crate) fn short() -> Vec<ToolDefinition> {
    let tool = |name: &str, description: &str, parameters: &str| ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_owned(),
    };
    vec![
        tool(
            search_block::TOOL.name,
            "Finds earlier messages of this task that are no longer shown, by words.",
            r#"{"type":"object","properties":{"query":{"type":"string"}}}"#,
        ),
        tool(
            list_blocks::TOOL.name,
            "Lists the blocks of messages that are no longer shown.",
            r#"{"type":"object","properties":{"cursor":{"type":"integer"}}}"#,
        ),
        tool(
            load::TOOL.name,
            "Full text of a block (b_…) or stored content (store://…).",
            r#"{"type":"object","properties":{"ref":{"type":"string"},"lines":{"type":"string"}}}"#,
        ),
    ]
}
