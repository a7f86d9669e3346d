//! A search as a tool of another agent, which receives a question and returns a conclusion.

use crate::DeepSearch;
use foldback_agent::{SubAgentTool, SubAgents};
use foldback_core::ToolDefinition;
use foldback_tool::{Effect, Tool, ToolSpec};
use std::sync::Arc;

/// The most tokens by which a caller's conversation grows.
const CONCLUSION_TOKENS: usize = 1_000;

/// Creates the tool `research`: one of `searchers` works on a question by this search, in a todo of its own,
/// below the caller's. It receives the question and nothing of the caller's conversation, which grows by
/// `{"step": "research", "args": {"question": ..}, "result": ..}`: the answer with its links, and nothing
/// of what was read for it.
#[must_use]
pub fn research(search: DeepSearch, searchers: SubAgents) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: "research".to_owned(),
        description: "Searches the documents from several sides and answers a question, with links to \
            its sources. It knows only the question: write it so that it stands on its own."
            .to_owned(),
        parameters: r#"{"type": "object", "additionalProperties": false, "required": ["question"],
            "properties": {"question": {"type": "string", "description": "What is to be found out, in one or a few sentences."}}}"#
            .to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::Idempotent);
    let searchers =
        searchers.with_strategy(Arc::new(search)).with_conclusion_tokens(CONCLUSION_TOKENS);
    Arc::new(SubAgentTool::new(spec, searchers, "{question}"))
}
