//! A tool that a sub-agent uses on behalf of the agent.

use foldback_agent::{ContextWindow, React, SubAgentTool, SubAgents};
use foldback_llm::ChatModel;
use foldback_tool::Tool;
use std::fmt;
use std::sync::Arc;

/// A tool that a sub-agent uses on behalf of the agent, much as one uses a calculator: the sub-agent is given
/// the arguments of a call and nothing of the agent's conversation, which grows only by a short conclusion and
/// not by the sub-agent's work.
///
/// The agent sees the tool under its own name, with its own description and arguments.
#[derive(Clone)]
#[non_exhaustive]
pub struct Calculator {
    /// The name of the tool.
    pub tool: String,
    /// The sub-agent's task, with `{name}` for an argument and `{arguments}` for all of them.
    pub task: Option<String>,
    /// The most tokens of the conclusion.
    pub conclusion_tokens: usize,
    /// The model that it works with; without one, the agent's.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The window of that model.
    pub window: ContextWindow,
}

impl Calculator {
    /// The most tokens of a conclusion by default.
    pub const CONCLUSION_TOKENS: usize = 400;

    /// Creates a sub-agent that works with this tool.
    #[must_use]
    pub fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            task: None,
            conclusion_tokens: Self::CONCLUSION_TOKENS,
            model: None,
            window: ContextWindow::default(),
        }
    }

    /// Sets the sub-agent's task.
    #[must_use]
    pub fn with_task(self, task: &str) -> Self {
        Self { task: Some(task.to_owned()), ..self }
    }

    /// Limits the tokens of the conclusion.
    #[must_use]
    pub fn with_conclusion_tokens(self, conclusion_tokens: usize) -> Self {
        Self { conclusion_tokens, ..self }
    }

    /// Sets a model of its own and the window of that model; requests are kept within the window.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>, window: ContextWindow) -> Self {
        Self { model: Some(model), window, ..self }
    }

    /// Returns the tool that replaces `tool`, with which these sub-agents work.
    pub(crate) fn in_place_of(
        &self,
        tool: &Arc<dyn Tool>,
        sub_agents: SubAgents,
        react: React,
    ) -> Arc<dyn Tool> {
        let mut spec = tool.spec().clone();
        // The answer is a conclusion, no longer the tool's own answer.
        (spec.output, spec.answers_data, spec.global_context) = (None, false, false);
        let name = spec.name();
        let usual = || {
            format!(
                "Call the tool `{name}` with these arguments, and again where that helps:\n\
                 {{arguments}}\n\nThen answer in a few sentences: the result, and nothing about the way there."
            )
        };
        let task = self.task.clone().unwrap_or_else(usual);
        let sub_agents = sub_agents
            .with_strategy(Arc::new(react))
            .with_conclusion_tokens(self.conclusion_tokens);
        Arc::new(SubAgentTool::new(spec, sub_agents, &task))
    }
}

impl fmt::Debug for Calculator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calculator")
            .field("tool", &self.tool)
            .field("task", &self.task)
            .field("conclusion_tokens", &self.conclusion_tokens)
            .finish_non_exhaustive()
    }
}
