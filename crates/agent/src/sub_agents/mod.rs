//! Sub-agents: agents that work for an agent, on items of its todo list or as a tool.

mod assignment;
mod conclusion;
mod delegate;
mod delegation;
mod noted;
mod report;
mod sub_agent_tool;

pub(crate) use noted::noted_runs;
pub use sub_agent_tool::SubAgentTool;

use crate::agent::{Agent, AgentError, Report, Task};
use crate::{Adaptive, RunEvent, RunLog, SettingError, SpendLimits, Strategy};
use delegate::Delegate;
use foldback_core::{ContextManager, TodoId, ToolDefinition};
use foldback_tool::{CallContext, Tool, Toolbox};
use noted::note_run;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The instructions of every sub-agent, in addition to those of its template.
const INSTRUCTIONS: &str = include_str!("../prompts/sub_agent.md");

/// A factory of sub-agents: each is made from a template, with a context, a budget and a run of its own.
///
/// [`delegate`](Self::delegate) is the tool by which a model gives them items of its todo list. A
/// [`SubAgentTool`] is a sub-agent that answers a call and knows only its arguments.
///
/// ```
/// use foldback_agent::{Agent, Executor, SpendLimits, SubAgents, todo_write};
/// use foldback_llm::ScriptedModel;
/// use foldback_tool::Toolbox;
/// use std::sync::Arc;
///
/// let model = Arc::new(ScriptedModel::new([]));
/// let template = Agent::new(model.clone(), Executor::new(Toolbox::new([todo_write()])?));
/// let sub_agents = SubAgents::new(template)
///     .with_limits(SpendLimits::default().with_model_calls(20))
///     .with_max_parallel(3);
/// let toolbox = Toolbox::new([todo_write(), sub_agents.delegate()])?;
/// let agent = Agent::new(model, Executor::new(toolbox));
/// # let _ = agent;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SubAgents {
    template: Agent,
    strategy: Arc<dyn Strategy>,
    limits: SpendLimits,
    share: f64,
    max_parallel: usize,
    levels: u32,
    conclusion_tokens: usize,
    reported: Option<Arc<Reported>>,
}

/// A receiver of the reports of sub-agents.
type Reported = dyn Fn(&TodoId, &Report) + Send + Sync;

impl SubAgents {
    /// Creates sub-agents with the model, the tools, the instructions and the settings of `template`. A tool
    /// named `delegate` is not among theirs; see [`with_levels`](Self::with_levels).
    #[must_use]
    pub fn new(template: Agent) -> Self {
        let parts = [template.system_prompt.trim_end(), INSTRUCTIONS.trim_end()];
        let parts = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>();
        Self {
            template: template.clone().with_system_prompt(&parts.join("\n\n")),
            strategy: Arc::new(Adaptive::default()),
            limits: SpendLimits::default(),
            share: 1.0,
            max_parallel: 4,
            levels: 1,
            conclusion_tokens: 400,
            reported: None,
        }
    }

    /// Sets their strategy, instead of [`Adaptive`].
    #[must_use]
    pub fn with_strategy(self, strategy: Arc<dyn Strategy>) -> Self {
        Self { strategy, ..self }
    }

    /// Limits what each of them may spend. It is charged to the caller, too.
    #[must_use]
    pub fn with_limits(self, limits: SpendLimits) -> Self {
        Self { limits, ..self }
    }

    /// Limits what each of them may spend to a share, above 0 and at most 1, of its caller's remaining budget when
    /// it begins: with 0.5, none of them takes more than half. The default is all of it.
    ///
    /// # Errors
    /// When it is not such a share.
    pub fn with_share(self, share: f64) -> Result<Self, SettingError> {
        if share > 0.0 && share <= 1.0 {
            return Ok(Self { share, ..self });
        }
        Err(SettingError::new("share", share, "a number above 0 and at most 1"))
    }

    /// Sets how many sub-agents of one call work at once. The default is 4.
    #[must_use]
    pub fn with_max_parallel(self, max_parallel: usize) -> Self {
        Self { max_parallel: max_parallel.max(1), ..self }
    }

    /// Sets the levels of sub-agents below the agent: with 2, sub-agents can delegate, and theirs cannot. The
    /// default is 1.
    #[must_use]
    pub fn with_levels(self, levels: u32) -> Self {
        Self { levels: levels.max(1), ..self }
    }

    /// Sets the most tokens of a conclusion, by which the caller's conversation grows. The default is 400. A
    /// longer one is cut in its middle, and says so.
    #[must_use]
    pub fn with_conclusion_tokens(self, conclusion_tokens: usize) -> Self {
        Self { conclusion_tokens, ..self }
    }

    /// Passes the report of each sub-agent, and the todo of its conversation, to `reported`.
    #[must_use]
    pub fn with_reports(self, reported: impl Fn(&TodoId, &Report) + Send + Sync + 'static) -> Self {
        Self { reported: Some(Arc::new(reported)), ..self }
    }

    /// Creates the tool `delegate`, which gives items of the caller's todo list to sub-agents.
    ///
    /// Each item is worked on in its own todo, a child of the caller's, with its own conversation and
    /// budget. Items that wait for nothing are worked on in parallel; one that waits for others is given their
    /// results, and one that waits for a failed item fails without being begun. The caller receives a short
    /// conclusion of each; everything else that a sub-agent wrote stays in its todo, and can be read by the
    /// references that come with the conclusion.
    ///
    /// With a journal, a call that was killed resumes: finished items are not worked on again, and items in
    /// progress continue where they were.
    #[must_use]
    pub fn delegate(self) -> Arc<dyn Tool> {
        Arc::new(Delegate::new(self))
    }

    /// Returns the tools that sub-agents have, before any are left out.
    fn toolbox(&self) -> impl Iterator<Item = Arc<dyn Tool>> {
        let own = self.template.executor.toolbox();
        let own = own.specs().filter(|spec| spec.name() != delegate::NAME);
        let own = own.filter_map(|spec| self.template.executor.toolbox().get(spec.name())).cloned();
        let below =
            (self.levels > 1).then(|| Self { levels: self.levels - 1, ..self.clone() }.delegate());
        own.chain(below)
    }

    /// Creates a sub-agent with the tools of these names and families (`file_`), or with all of them if none are
    /// named. It always has those of the context's policy.
    ///
    /// # Errors
    /// When a name is neither that of a tool nor that of a family; the error has the first such name.
    fn agent(&self, tools: Option<&[String]>, policy: &[ToolDefinition]) -> Result<Agent, String> {
        let all: Vec<Arc<dyn Tool>> = self.toolbox().collect();
        let chosen: Vec<Arc<dyn Tool>> = match tools.filter(|names| !names.is_empty()) {
            None => all,
            Some(names) => {
                let is_named = |tool: &Arc<dyn Tool>, name: &String| {
                    let own = tool.spec().name();
                    own == name || (name.ends_with('_') && own.starts_with(name.as_str()))
                };
                let is_known = |name: &String| {
                    all.iter().any(|tool| is_named(tool, name))
                        || policy.iter().any(|tool| tool.name == *name)
                };
                let unknown = names.iter().find(|name| !is_known(name));
                if let Some(unknown) = unknown {
                    return Err(no_tool(unknown, &all));
                }
                let is_chosen =
                    |tool: &Arc<dyn Tool>| names.iter().any(|name| is_named(tool, name));
                all.into_iter().filter(is_chosen).collect()
            }
        };
        let toolbox = Toolbox::new(chosen).map_err(|error| error.to_string())?;
        let executor = self.template.executor.clone().with_toolbox(toolbox);
        Ok(Agent { executor, ..self.template.clone() })
    }

    /// Lets an agent work on a request in a context of its own, below the call.
    async fn work(
        &self,
        agent: &Agent,
        call: &CallContext,
        context: &mut dyn ContextManager,
        (run, request): (String, String),
    ) -> Result<Report, AgentError> {
        let log = RunLog::of(call);
        let left = log.spend().left().part(self.share);
        let task = Task {
            request,
            run,
            cancelled: call.cancelled.child_token(),
            depth: call.depth,
            observer: log.observer().cloned(),
            spend: log.spend().share(self.limits.least(left))?,
        };
        let report = agent.run(&*self.strategy, context, &task).await?;
        let (key, trajectory) = (&*call.idempotency_key, &report.trajectory);
        if let Some(journal) = agent.executor.journal() {
            note_run(&**journal, key, trajectory)?;
        }
        log.emit(RunEvent::SubAgentEnded { call: key, trajectory });
        if let Some(reported) = &self.reported {
            reported(context.todo(), &report);
        }
        Ok(report)
    }
}

/// Returns the message that there is no such tool, with those that exist.
fn no_tool(name: &str, all: &[Arc<dyn Tool>]) -> String {
    let names: BTreeSet<&str> = all.iter().map(|tool| tool.spec().name()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    format!(
        "there is no tool or family of tools named {name:?}; use these names, or a beginning of names \
         that ends in _: {names}"
    )
}

impl fmt::Debug for SubAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubAgents")
            .field("template", &self.template)
            .field("strategy", &self.strategy)
            .field("limits", &self.limits)
            .field("share", &self.share)
            .field("max_parallel", &self.max_parallel)
            .field("levels", &self.levels)
            .field("conclusion_tokens", &self.conclusion_tokens)
            .finish_non_exhaustive()
    }
}
