//! The builder of an agent.

use crate::context_reader::ContextReader;
use crate::named_tool::position;
use crate::strategies::strategy_name;
use crate::tool_families::ToolFamilies;
use crate::workspace_tools::WorkspaceTools;
use crate::{Calculator, FlowExecutor, ReadyAgent, ReferenceAgentError, STRATEGIES};
use foldback_agent::{
    Adaptive, Agent, Approver, AskPerson, ContextWindow, Executor, Journal, OnePlan,
    OnePlanSettings, React, ReactSettings, Strategy, SubAgents, memory_share,
    reference_system_prompt, short_system_prompt, think, todo_write,
};
use foldback_deep_search::{DeepSearch, research};
use foldback_flow::{Flow, FlowSettings, StepExecutor};
use foldback_llm::{ChatModel, RetryPolicy, Retrying, ToolChoice};
use foldback_tool::{Tool, Toolbox};
use foldback_tools::Permissions;
use std::fmt;
use std::sync::Arc;

/// A builder of an agent. [`build`](Self::build) returns the agent; the [crate's page](crate) has an example.
///
/// By default the agent has `todo_write`, `think`, `ask_person` (which says that nobody is there), `delegate`
/// and `memory_share`. Everything else is given to it.
#[derive(Clone)]
#[must_use = "`build` gives the agent"]
pub struct ReferenceAgent {
    model: Arc<dyn ChatModel>,
    instructions: String,
    permissions: Option<Permissions>,
    shell_substitute: Option<Arc<dyn Tool>>,
    person: Option<Arc<AskPerson>>,
    tools: Vec<Arc<dyn Tool>>,
    documents: Option<DeepSearch>,
    journal: Option<Arc<dyn Journal>>,
    approver: Option<Arc<dyn Approver>>,
    families: Option<ToolFamilies>,
    is_short: bool,
    window: ContextWindow,
    sub_agent_share: f64,
    sub_agent_strategy: Option<Arc<dyn Strategy>>,
    react: ReactSettings,
    one_plan: OnePlanSettings,
    flow: Option<FlowSettings>,
    executors: Vec<FlowExecutor>,
    calculators: Vec<Calculator>,
    /// The tools that are handed the whole context, each with the argument that takes it.
    readers: Vec<(String, String)>,
    strategy: Chosen,
}

/// The strategy as it was asked for.
#[derive(Clone, Debug)]
enum Chosen {
    Named(String),
    Own(Arc<dyn Strategy>),
}

impl ReferenceAgent {
    /// The default share of the remaining budget that a sub-agent may spend: a half, so that later ones have
    /// something as well.
    pub const SUB_AGENT_SHARE: f64 = 0.5;

    /// Creates a builder for an agent that uses this model.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        let [default, ..] = &STRATEGIES;
        Self {
            model,
            instructions: String::new(),
            permissions: None,
            shell_substitute: None,
            person: None,
            tools: Vec::new(),
            documents: None,
            journal: None,
            approver: None,
            families: None,
            is_short: false,
            window: ContextWindow::default(),
            sub_agent_share: Self::SUB_AGENT_SHARE,
            sub_agent_strategy: None,
            react: ReactSettings::default(),
            one_plan: OnePlanSettings::default(),
            flow: None,
            executors: Vec::new(),
            calculators: Vec::new(),
            readers: Vec::new(),
            strategy: Chosen::Named(default.to_string()),
        }
    }

    /// Sets the policy for retrying requests to its model after passing failures.
    pub fn with_retries(self, policy: RetryPolicy) -> Self {
        Self { model: Arc::new(Retrying::new(self.model, policy)), ..self }
    }

    /// Sets standing instructions that follow the reference agent's own: who it works for, and how.
    pub fn with_instructions(self, instructions: &str) -> Self {
        Self { instructions: instructions.to_owned(), ..self }
    }

    /// Adds tools for files, commands and pages, as far as they are permitted. If commands are permitted but no
    /// sandbox is available, the agent has no shell and [`ReadyAgent::no_shell`] says why.
    pub fn in_workspace(self, permissions: Permissions) -> Self {
        Self { permissions: Some(permissions), ..self }
    }

    /// Sets the tool that replaces the shell if no shell is available.
    pub fn with_shell_substitute(self, substitute: Arc<dyn Tool>) -> Self {
        Self { shell_substitute: Some(substitute), ..self }
    }

    /// Sets the person whom `ask_person` asks.
    pub fn with_person(self, person: AskPerson) -> Self {
        Self { person: Some(Arc::new(person)), ..self }
    }

    /// Adds further tools: those of the program, or of MCP servers.
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets documents to search: the agent has the tool `research`, and can work by deep search.
    pub fn with_documents(self, documents: DeepSearch) -> Self {
        Self { documents: Some(documents), ..self }
    }

    /// Sets a journal, from which a run of the same name resumes where it was left or killed.
    pub fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Sets the approver, which says which calls need approval. Without one, every call is made.
    pub fn with_approver(self, approver: Arc<dyn Approver>) -> Self {
        Self { approver: Some(approver), ..self }
    }

    /// Limits the tools of the agent and its sub-agents to those of these families (`file` for `file_read` and
    /// its siblings) and those with these names.
    pub fn with_tool_families<'f>(self, families: impl IntoIterator<Item = &'f str>) -> Self {
        Self { families: Some(ToolFamilies::new(families, false)), ..self }
    }

    /// Limits the built-in tools to these families and names. Whatever was given to the agent stays: the program's
    /// tools, the documents, the person, and the tools that an executor of a flow names.
    pub fn with_built_in_families<'f>(self, families: impl IntoIterator<Item = &'f str>) -> Self {
        Self { families: Some(ToolFamilies::new(families, true)), ..self }
    }

    /// Shortens the agent's own instructions, for a model with a small window.
    pub fn with_short_instructions(self) -> Self {
        Self { is_short: true, ..self }
    }

    /// Sets the window of the model; requests are kept within it.
    pub fn with_window(self, window: ContextWindow) -> Self {
        Self { window, ..self }
    }

    /// Sets the share, above 0 and at most 1, of the remaining budget that each sub-agent may spend when it
    /// begins.
    pub fn with_sub_agent_share(self, share: f64) -> Self {
        Self { sub_agent_share: share, ..self }
    }

    /// Sets the strategy of sub-agents, instead of [`Adaptive`].
    pub fn with_sub_agent_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { sub_agent_strategy: Some(strategy), ..self }
    }

    /// Sets how the agent and its sub-agents go step by step, whatever the strategy. The rule of which tools may
    /// be called in which phase applies to the agent alone.
    pub fn with_react(self, settings: ReactSettings) -> Self {
        Self { react: settings, ..self }
    }

    /// Sets how the agent and its sub-agents plan.
    pub fn with_one_plan(self, settings: OnePlanSettings) -> Self {
        Self { one_plan: settings, ..self }
    }

    /// Sets how a flow works on its steps, if flow is the strategy.
    pub fn with_flow(self, settings: FlowSettings) -> Self {
        Self { flow: Some(settings), ..self }
    }

    /// Adds an executor that works on steps of a flow, if flow is the strategy. A step that names no executor
    /// goes to the first one.
    pub fn with_flow_executor(mut self, executor: FlowExecutor) -> Self {
        self.executors.push(executor);
        self
    }

    /// Adds a sub-agent that uses one of the agent's tools on its behalf.
    pub fn with_calculator(mut self, calculator: Calculator) -> Self {
        self.calculators.push(calculator);
        self
    }

    /// Hands one of the tools the whole context as this argument, which the model neither sees nor writes. Such a
    /// tool never causes a new plan.
    pub fn with_context_reader(mut self, tool: &str, argument: &str) -> Self {
        self.readers.push((tool.to_owned(), argument.to_owned()));
        self
    }

    /// Sets the strategy by its name, one of [`STRATEGIES`]. The default is the first of them.
    pub fn with_strategy_named(self, name: &str) -> Self {
        Self { strategy: Chosen::Named(name.to_owned()), ..self }
    }

    /// Sets the strategy.
    pub fn with_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { strategy: Chosen::Own(strategy), ..self }
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// When its permissions cannot be used, two tools have the same name, the sub-agents' share is not above 0 and
    /// at most 1, no strategy has the name that was given, a deep search has no documents, or a setting names a
    /// tool that does not exist.
    pub fn build(self) -> Result<ReadyAgent, ReferenceAgentError> {
        if let Chosen::Named(name) = &self.strategy {
            strategy_name(name)?;
        }
        let WorkspaceTools { mut tools, no_shell } = match &self.permissions {
            Some(allowed) => WorkspaceTools::open(allowed, self.shell_substitute.as_ref())?,
            None => WorkspaceTools::default(),
        };
        tools.extend([todo_write(), think(), self.ask_person()]);
        tools.extend(self.tools.iter().cloned());
        if let Some(documents) = &self.documents {
            let searchers = SubAgents::new(self.agent(&[])?).with_share(self.sub_agent_share)?;
            tools.push(research(documents.clone(), searchers));
        }
        self.hand_context(&mut tools)?;
        self.put_calculators(&mut tools)?;
        self.families.as_ref().map_or(Ok(()), |families| families.check(&tools))?;
        let mut left_out = Vec::new();
        self.choose(&mut tools, &mut left_out);
        let sub_agents = SubAgents::new(self.agent(&tools)?)
            .with_strategy(self.sub_agent_strategy())
            .with_share(self.sub_agent_share)?;
        let mut for_sub_agents = vec![sub_agents.delegate(), memory_share()];
        self.choose(&mut for_sub_agents, &mut left_out);
        tools.extend(for_sub_agents);
        let strategy = match &self.strategy {
            Chosen::Named(name) => self.strategy_named(name, &tools)?,
            Chosen::Own(strategy) => Arc::clone(strategy),
        };
        Ok(ReadyAgent { agent: self.agent(&tools)?, strategy, no_shell, left_out })
    }

    /// Removes the tools that the agent is not to have.
    fn choose(&self, tools: &mut Vec<Arc<dyn Tool>>, left_out: &mut Vec<String>) {
        let Some(families) = &self.families else { return };
        let is_given = |name: &str| {
            let is_of_person =
                self.person.as_ref().is_some_and(|person| person.spec().name() == name);
            // `research` is there only because documents were given.
            is_of_person
                || name == "research"
                || self.tools.iter().any(|tool| tool.spec().name() == name)
                || self.executors.iter().any(|executor| executor.names(name))
        };
        families.choose(tools, is_given, left_out);
    }

    /// Creates the strategy of this name, with the settings for going step by step and for planning.
    fn strategy_named(
        &self,
        name: &str,
        tools: &[Arc<dyn Tool>],
    ) -> Result<Arc<dyn Strategy>, ReferenceAgentError> {
        let name = strategy_name(name)?;
        if name == React::NAME {
            return Ok(Arc::new(self.react()));
        }
        if name == OnePlan::NAME {
            return Ok(Arc::new(self.one_plan()));
        }
        if name == Flow::NAME {
            let by_react = || FlowSettings::default().with_strategy(Arc::new(self.react()));
            let mut settings = self.flow.clone().unwrap_or_else(by_react);
            for executor in &self.executors {
                settings.executors.push(self.step_executor(executor, tools)?);
            }
            return Ok(Arc::new(Flow::new(settings)));
        }
        if name == DeepSearch::NAME {
            let documents = self.documents.clone().ok_or(ReferenceAgentError::NoDocuments)?;
            return Ok(Arc::new(documents));
        }
        Ok(Arc::new(Adaptive::new(self.one_plan())))
    }

    fn sub_agent_strategy(&self) -> Arc<dyn Strategy> {
        let react = self.react_of_others();
        let own = || {
            let one_plan = OnePlan::new(self.one_plan.clone()).with_react(react.clone());
            Arc::new(Adaptive::new(one_plan)) as Arc<dyn Strategy>
        };
        self.sub_agent_strategy.clone().unwrap_or_else(own)
    }

    /// Returns how sub-agents and executors go step by step: the rules on what the agent itself has to call do
    /// not apply to them.
    fn react_of_others(&self) -> ReactSettings {
        self.react.clone().with_tool_choice(ToolChoice::Auto).with_availability(None)
    }

    fn react(&self) -> React {
        React::new(self.react.clone())
    }

    fn one_plan(&self) -> OnePlan {
        OnePlan::new(self.one_plan.clone()).with_react(self.react.clone())
    }

    /// Makes the agent an executor of steps of a flow.
    fn step_executor(
        &self,
        executor: &FlowExecutor,
        tools: &[Arc<dyn Tool>],
    ) -> Result<StepExecutor, ReferenceAgentError> {
        Ok(executor.made_of(self.agent(&executor.tools_of(tools)?)?))
    }

    /// Wraps the tools that are to be handed the whole context.
    fn hand_context(&self, tools: &mut [Arc<dyn Tool>]) -> Result<(), ReferenceAgentError> {
        for (name, argument) in &self.readers {
            let at = position(name, tools)?;
            tools[at] = Arc::new(ContextReader::new(Arc::clone(&tools[at]), argument)?);
        }
        Ok(())
    }

    /// Replaces tools with the sub-agents that use them.
    fn put_calculators(&self, tools: &mut [Arc<dyn Tool>]) -> Result<(), ReferenceAgentError> {
        let react = self.react_of_others();
        for calculator in &self.calculators {
            let at = position(&calculator.tool, tools)?;
            let agent = self.agent(&[Arc::clone(&tools[at])])?;
            let agent = match &calculator.model {
                Some(model) => {
                    agent.with_model(Arc::clone(model)).with_window(calculator.window.clone())
                }
                None => agent,
            };
            let sub_agents = SubAgents::new(agent).with_share(self.sub_agent_share)?;
            tools[at] = calculator.in_place_of(&tools[at], sub_agents, React::new(react.clone()));
        }
        Ok(())
    }

    /// Creates an agent with these tools.
    fn agent(&self, tools: &[Arc<dyn Tool>]) -> Result<Agent, ReferenceAgentError> {
        let mut executor = Executor::new(Toolbox::new(tools.iter().cloned())?);
        if let Some(journal) = &self.journal {
            executor = executor.with_journal(Arc::clone(journal));
        }
        if let Some(approver) = &self.approver {
            executor = executor.with_approver(Arc::clone(approver));
        }
        let own = if self.is_short { short_system_prompt() } else { reference_system_prompt() };
        let parts = [own, self.instructions.trim()];
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let agent = Agent::new(Arc::clone(&self.model), executor);
        Ok(agent.with_system_prompt(&parts.join("\n\n")).with_window(self.window.clone()))
    }

    fn ask_person(&self) -> Arc<dyn Tool> {
        match &self.person {
            Some(person) => Arc::clone(person) as Arc<dyn Tool>,
            None => Arc::new(AskPerson::nobody()),
        }
    }
}

impl fmt::Debug for ReferenceAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferenceAgent")
            .field("model", &self.model.name())
            .field("permissions", &self.permissions)
            .field("strategy", &self.strategy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
