//! An executor of steps of a flow.

use crate::ReferenceAgentError;
use crate::named_tool::no_tool;
use foldback_agent::{Agent, ContextWindow};
use foldback_flow::StepExecutor;
use foldback_llm::ChatModel;
use foldback_tool::Tool;
use std::fmt;
use std::sync::Arc;

/// An executor of steps of a flow: the agent with instructions, tools and a model of its own. A step
/// calls it by its name in brackets, `[CODER] ..`.
#[derive(Clone)]
#[non_exhaustive]
pub struct FlowExecutor {
    /// The name by which steps call it.
    pub name: String,
    /// What it is good at, as text for the model that makes the plan.
    pub description: String,
    /// Standing instructions that follow the agent's.
    pub instructions: String,
    /// The agent's tools that it has, by name or by a prefix and `*`; if empty, all of them.
    pub tools: Vec<String>,
    /// The model that it works with; without one, the agent's.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The window of that model.
    pub window: ContextWindow,
}

impl FlowExecutor {
    /// Creates an executor of this name, which is like the agent in everything else.
    #[must_use]
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            instructions: String::new(),
            tools: Vec::new(),
            model: None,
            window: ContextWindow::default(),
        }
    }

    /// Sets its standing instructions.
    #[must_use]
    pub fn with_instructions(self, instructions: &str) -> Self {
        Self { instructions: instructions.to_owned(), ..self }
    }

    /// Limits it to these of the agent's tools.
    #[must_use]
    pub fn with_tools(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { tools: tools.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets a model of its own and the window of that model; requests are kept within the window.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>, window: ContextWindow) -> Self {
        Self { model: Some(model), window, ..self }
    }

    /// Returns its tools from those of the agent.
    pub(crate) fn tools_of(
        &self,
        tools: &[Arc<dyn Tool>],
    ) -> Result<Vec<Arc<dyn Tool>>, ReferenceAgentError> {
        if self.tools.is_empty() {
            return Ok(tools.to_vec());
        }
        let is_none =
            |pattern: &&String| !tools.iter().any(|tool| is_meant(pattern, tool.spec().name()));
        if let Some(pattern) = self.tools.iter().find(is_none) {
            return Err(no_tool(pattern, tools));
        }
        Ok(tools.iter().filter(|tool| self.names(tool.spec().name())).cloned().collect())
    }

    /// Returns whether its settings name this tool.
    pub(crate) fn names(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| is_meant(pattern, tool))
    }

    /// Creates this executor from the agent with its tools.
    pub(crate) fn made_of(&self, agent: Agent) -> StepExecutor {
        let agent = match self.instructions.trim() {
            "" => agent,
            own => agent.clone().with_system_prompt(&agent.system_prompt_with(own)),
        };
        let agent = match &self.model {
            Some(model) => agent.with_model(Arc::clone(model)).with_window(self.window.clone()),
            None => agent,
        };
        StepExecutor::new(&self.name, &self.description, agent)
    }
}

/// Returns whether a pattern, a name or a prefix and `*`, matches a name.
fn is_meant(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

impl fmt::Debug for FlowExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowExecutor")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
