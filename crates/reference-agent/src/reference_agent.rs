//! What an agent is put together from.

use crate::strategies::{DeepSearch, FlowSettings, research, strategy};
use crate::{ReadyAgent, ReferenceAgentError, STRATEGIES};
use foldback_agent::{
    Adaptive, Agent, Approver, AskPerson, Executor, Journal, Strategy, SubAgents, memory_share,
    reference_system_prompt, think, todo_write,
};
use foldback_llm::{ChatModel, RetryPolicy, Retrying};
use foldback_tool::{Tool, Toolbox};
use foldback_tools::{Permissions, PermissionsError, toolset};
use std::fmt;
use std::sync::Arc;

/// Puts an agent together. [`build`](Self::build) gives it; the [crate's page](crate) has an example.
///
/// By itself it has `todo_write`, `think`, `ask_person` (which says that nobody is there), `delegate` and
/// `memory_share`. Everything else is given to it.
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
    sub_agent_share: f64,
    sub_agent_strategy: Arc<dyn Strategy>,
    flow: FlowSettings,
    strategy: Chosen,
}

/// A strategy as it was asked for.
#[derive(Clone, Debug)]
enum Chosen {
    Named(String),
    Own(Arc<dyn Strategy>),
}

/// Tools for a workspace.
#[derive(Default)]
struct WorkspaceTools {
    tools: Vec<Arc<dyn Tool>>,
    /// Why there is no shell among them, where there should be one.
    no_shell: Option<String>,
}

/// The tool that runs commands.
const SHELL: &str = "shell_run";

impl ReferenceAgent {
    /// The part of what is left that a sub-agent may spend, unless another is set: a half, so that later ones
    /// have something as well.
    pub const SUB_AGENT_SHARE: f64 = 0.5;

    /// An agent that asks this model.
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
            sub_agent_share: Self::SUB_AGENT_SHARE,
            sub_agent_strategy: Arc::new(Adaptive::default()),
            flow: FlowSettings::default(),
            strategy: Chosen::Named(default.to_string()),
        }
    }

    /// The same, asking its model again by this policy where a failure passes.
    pub fn with_retries(self, policy: RetryPolicy) -> Self {
        Self { model: Arc::new(Retrying::new(self.model, policy)), ..self }
    }

    /// The same with standing instructions that follow the reference agent's own: who it works for, and how.
    pub fn with_instructions(self, instructions: &str) -> Self {
        Self { instructions: instructions.to_owned(), ..self }
    }

    /// The same with tools for files, commands and pages, as far as they are permitted. Where commands are
    /// permitted and no sandbox is available, it has no shell and [`ReadyAgent::no_shell`] says why.
    pub fn in_workspace(self, permissions: Permissions) -> Self {
        Self { permissions: Some(permissions), ..self }
    }

    /// The same, with this tool in the shell's place where there is no shell.
    pub fn with_shell_substitute(self, substitute: Arc<dyn Tool>) -> Self {
        Self { shell_substitute: Some(substitute), ..self }
    }

    /// The same with somebody whom `ask_person` asks.
    pub fn with_person(self, person: AskPerson) -> Self {
        Self { person: Some(Arc::new(person)), ..self }
    }

    /// The same with further tools: those of the program, or of MCP servers.
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// The same with documents to search: it has the tool `research`, and can work by deep search.
    pub fn with_documents(self, documents: DeepSearch) -> Self {
        Self { documents: Some(documents), ..self }
    }

    /// The same with a journal, from which a run of the same name resumes where it was left or killed.
    pub fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// The same, asking before calls that this approver says need it. Without one every call is made.
    pub fn with_approver(self, approver: Arc<dyn Approver>) -> Self {
        Self { approver: Some(approver), ..self }
    }

    /// The same, with sub-agents that may each spend this part, above 0 up to 1, of what is left when they
    /// begin.
    pub fn with_sub_agent_share(self, share: f64) -> Self {
        Self { sub_agent_share: share, ..self }
    }

    /// The same, with sub-agents that work by this strategy instead of [`Adaptive`].
    pub fn with_sub_agent_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { sub_agent_strategy: strategy, ..self }
    }

    /// The same with settings for a flow, where that is the strategy.
    pub fn with_flow(self, settings: FlowSettings) -> Self {
        Self { flow: settings, ..self }
    }

    /// The same, working by the strategy of this name: one of [`STRATEGIES`], whose first it is unless set.
    pub fn with_strategy_named(self, name: &str) -> Self {
        Self { strategy: Chosen::Named(name.to_owned()), ..self }
    }

    /// The same, working by this strategy.
    pub fn with_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { strategy: Chosen::Own(strategy), ..self }
    }

    /// The agent.
    ///
    /// # Errors
    /// When its permissions cannot be used, two tools have one name, the sub-agents' share is not above 0 and
    /// at most 1, no strategy has the name that was given, or a deep search has no documents.
    pub fn build(self) -> Result<ReadyAgent, ReferenceAgentError> {
        let strategy = match &self.strategy {
            Chosen::Named(name) => strategy(name, self.flow.clone(), self.documents.as_ref())?,
            Chosen::Own(strategy) => Arc::clone(strategy),
        };
        let WorkspaceTools { mut tools, no_shell } = self.workspace_tools()?;
        tools.extend([todo_write(), think(), self.ask_person()]);
        tools.extend(self.tools.iter().cloned());
        if let Some(documents) = &self.documents {
            let searchers = SubAgents::new(self.agent(&[])?).with_share(self.sub_agent_share)?;
            tools.push(research(documents.clone(), searchers));
        }
        let sub_agents = SubAgents::new(self.agent(&tools)?)
            .with_strategy(Arc::clone(&self.sub_agent_strategy))
            .with_share(self.sub_agent_share)?;
        tools.extend([sub_agents.delegate(), memory_share()]);
        Ok(ReadyAgent { agent: self.agent(&tools)?, strategy, no_shell })
    }

    /// An agent with these tools.
    fn agent(&self, tools: &[Arc<dyn Tool>]) -> Result<Agent, ReferenceAgentError> {
        let mut executor = Executor::new(Toolbox::new(tools.iter().cloned())?);
        if let Some(journal) = &self.journal {
            executor = executor.with_journal(Arc::clone(journal));
        }
        if let Some(approver) = &self.approver {
            executor = executor.with_approver(Arc::clone(approver));
        }
        let parts = [reference_system_prompt(), self.instructions.trim()];
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let agent = Agent::new(Arc::clone(&self.model), executor);
        Ok(agent.with_system_prompt(&parts.join("\n\n")))
    }

    /// The tools that its permissions allow here.
    fn workspace_tools(&self) -> Result<WorkspaceTools, PermissionsError> {
        let Some(permissions) = &self.permissions else { return Ok(WorkspaceTools::default()) };
        match toolset(permissions) {
            Err(PermissionsError::Unavailable { tool: SHELL, reason }) => {
                let mut without = permissions.clone();
                without.shell.allow = false;
                let mut tools = toolset(&without)?;
                tools.extend(self.shell_substitute.clone());
                Ok(WorkspaceTools { tools, no_shell: Some(reason) })
            }
            tools => Ok(WorkspaceTools { tools: tools?, no_shell: None }),
        }
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
mod tests {
    use super::*;
    use foldback_core::ToolDefinition;
    use foldback_llm::ScriptedModel;
    use foldback_tool::{FunctionTool, ToolOutput, ToolSpec};

    fn reference_agent() -> ReferenceAgent {
        ReferenceAgent::new(Arc::new(ScriptedModel::new([])))
    }

    fn tool(name: &str) -> Arc<dyn Tool> {
        let parameters = r#"{"type": "object"}"#.to_owned();
        let definition =
            ToolDefinition { name: name.to_owned(), description: "Tells.".to_owned(), parameters };
        let spec = ToolSpec::new(definition);
        Arc::new(FunctionTool::new(spec, |_, _| async { Ok(ToolOutput::text("6.4 m")) }))
    }

    fn names(agent: &ReadyAgent) -> Vec<&str> {
        agent.agent().executor().toolbox().specs().map(ToolSpec::name).collect()
    }

    #[test]
    fn it_has_what_it_was_given_and_what_every_agent_has() {
        let bare = reference_agent().build().unwrap();
        let own = ["ask_person", "delegate", "memory_share", "think", "todo_write"];
        assert_eq!(names(&bare), own);
        assert_eq!(bare.agent().system_prompt(), reference_system_prompt());
        assert_eq!(bare.no_shell(), None, "none was permitted");

        let folder = tempfile::tempdir().unwrap();
        let agent = reference_agent()
            .in_workspace(Permissions::in_workspace(folder.path()))
            .with_tools([tool("tide")])
            .with_instructions("\nYou work for the harbour of Holm.\n")
            .build()
            .unwrap();
        let files = ["file_edit", "file_grep", "file_list", "file_read", "file_write"];
        let mut all: Vec<&str> = own.into_iter().chain(files).chain(["tide"]).collect();
        all.sort_unstable();
        assert_eq!(names(&agent), all);
        let system_prompt = agent.agent().system_prompt();
        let (begin, end) = (reference_system_prompt(), "\n\nYou work for the harbour of Holm.");
        assert!(
            system_prompt.starts_with(begin) && system_prompt.ends_with(end),
            "{system_prompt}"
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        let refused = |agent: ReferenceAgent| agent.build().unwrap_err().to_string();
        assert_eq!(
            refused(reference_agent().with_strategy_named("guess")),
            "there is no strategy \"guess\"; there are adaptive, react, one-plan, flow, deep-search"
        );
        assert_eq!(
            refused(reference_agent().with_strategy_named("deep-search")),
            "deep-search needs documents to look into, and the agent was given none"
        );
        assert_eq!(
            refused(reference_agent().with_sub_agent_share(0.0)),
            "share is 0.0, but a part above 0, up to 1 is expected"
        );
        assert_eq!(
            refused(reference_agent().with_tools([tool("think")])),
            "there are two tools named \"think\"; each name may be given once"
        );
        for strategy in STRATEGIES.iter().filter(|name| name.as_str() != "deep-search") {
            assert!(reference_agent().with_strategy_named(strategy.as_str()).build().is_ok());
        }
    }
}
