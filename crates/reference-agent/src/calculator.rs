//! A tool that a sub-agent works with in the agent's place.

use foldback_agent::{ContextWindow, React, SubAgentTool, SubAgents};
use foldback_llm::ChatModel;
use foldback_tool::Tool;
use std::fmt;
use std::sync::Arc;

/// A tool that a sub-agent works with in the agent's place, as somebody uses a calculator: the sub-agent is
/// given the arguments of a call and nothing of the agent's conversation, which grows by a short conclusion
/// and nothing of the sub-agent's work.
///
/// The agent sees the tool by its own name, description and arguments.
#[derive(Clone)]
#[non_exhaustive]
pub struct Calculator {
    /// The name of the tool.
    pub tool: String,
    /// What the sub-agent is asked, with `{name}` for an argument and `{arguments}` for all of them.
    pub task: Option<String>,
    /// How many tokens the conclusion has at most.
    pub conclusion_tokens: usize,
    /// The model that it works with; else the agent's.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The window of that model.
    pub window: ContextWindow,
}

impl Calculator {
    /// How many tokens a conclusion has at most, unless told.
    pub const CONCLUSION_TOKENS: usize = 400;

    /// A sub-agent that works with this tool.
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

    /// The same, asked this.
    #[must_use]
    pub fn with_task(self, task: &str) -> Self {
        Self { task: Some(task.to_owned()), ..self }
    }

    /// The same with conclusions of at most so many tokens.
    #[must_use]
    pub fn with_conclusion_tokens(self, conclusion_tokens: usize) -> Self {
        Self { conclusion_tokens, ..self }
    }

    /// The same with a model of its own, whose window is this: requests are kept within it.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>, window: ContextWindow) -> Self {
        Self { model: Some(model), window, ..self }
    }

    /// The tool that takes the place of `tool`, with which these sub-agents work.
    pub(crate) fn in_place_of(
        &self,
        tool: &Arc<dyn Tool>,
        sub_agents: SubAgents,
        react: React,
    ) -> Arc<dyn Tool> {
        let mut spec = tool.spec().clone();
        // What it answers is a conclusion, and no longer the tool's own answer.
        (spec.output, spec.answers_data, spec.global_context) = (None, false, false);
        let name = spec.name();
        let usual = || {
            format!(
                "Call the tool `{name}` with these arguments, and again where that helps:\n\
                 {{arguments}}\n\nThen answer in a few sentences: what came of it, and nothing of the way there."
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
