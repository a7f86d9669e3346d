//! The agent: a model, an executor with its tools, and standing instructions.

use crate::executor::Trace;
use crate::trajectory::{Situation, TRAJECTORY_VERSION, ToolRecord, Trajectory};
use crate::{ContextWindow, Executor, Observer, RunError, SettingError, SpendError, SpendTracker};
use foldback_core::{ContextError, ContextManager, Message, TodoId};
use foldback_llm::{
    AvailabilityError, ChatModel, ChatRequest, ClockError, check_clocks, coarsen_clocks,
};
use foldback_planner::Validator;
use foldback_tool::CancellationToken;
use std::fmt;
use std::sync::Arc;

/// Returns the standing instructions of the reference agent: how it works with a todo list, tools and a
/// memory. The caller adds its purpose and surroundings.
#[must_use]
pub fn reference_system_prompt() -> &'static str {
    include_str!("prompts/agent.md").trim_ascii_end()
}

/// Returns a short form of them, for a model with a small window.
#[must_use]
pub fn short_system_prompt() -> &'static str {
    include_str!("prompts/agent_short.md").trim_ascii_end()
}

/// A model with tools that works on requests: [`run`](Self::run) does so by any
/// [`Strategy`](crate::Strategy).
///
/// The [crate's page](crate) has an example.
#[derive(Clone)]
pub struct Agent {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) executor: Executor,
    pub(crate) system_prompt: String,
    pub(crate) window: ContextWindow,
}

/// One piece of work.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Task {
    /// The request.
    pub request: String,
    /// The name of the run: unique in the executor's journal, and the same when the run is resumed.
    pub run: String,
    /// The token that cancels the run.
    pub cancelled: CancellationToken,
    /// The number of runs around this one.
    pub depth: u32,
    /// The observer of its events.
    pub observer: Option<Arc<dyn Observer>>,
    /// The tracker of what was spent, and of what may be.
    pub spend: SpendTracker,
}

impl Task {
    /// Creates a task for a request, in a run of this name.
    #[must_use]
    pub fn new(run: &str, request: &str) -> Self {
        Self { request: request.to_owned(), run: run.to_owned(), ..Self::default() }
    }

    /// Sets the token that cancels the run.
    #[must_use]
    pub fn with_cancelled(self, cancelled: CancellationToken) -> Self {
        Self { cancelled, ..self }
    }

    /// Sets the number of runs around this one.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// Sets the observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Sets the tracker that the run is charged to.
    #[must_use]
    pub fn with_spend(self, spend: SpendTracker) -> Self {
        Self { spend, ..self }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("request", &self.request)
            .field("run", &self.run)
            .field("depth", &self.depth)
            .field("spend", &self.spend)
            .finish_non_exhaustive()
    }
}

/// The outcome of a task.
#[derive(Clone, Debug)]
pub struct Report {
    /// The record of the whole run.
    pub trajectory: Trajectory,
    /// The executor's traces, one for each plan of steps that ran.
    pub traces: Vec<Trace>,
}

impl Report {
    /// Returns the final answer, if the run produced one.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.trajectory.outcome.answer.as_deref()
    }
}

/// The reason why a run could not continue. A mistake of the model is not one: it is reported to the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The context failed.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The executor could not run what it was given, or its journal failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The agent's instructions or tools give the time to the second, so that no two requests begin with the
    /// same bytes; [`Agent::with_coarse_system_prompt`] reduces it to the day or the hour.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A tool of the agent and one of the context's policy have the same name.
    #[error("both the agent and its context policy have a tool named {name:?}; rename one of them")]
    SameName {
        /// The name.
        name: String,
    },
    /// A spend limit is invalid.
    #[error(transparent)]
    SpendTracker(#[from] SpendError),
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The table of tool availability does not fit the tools.
    #[error(transparent)]
    Availability(#[from] AvailabilityError),
    /// A run of this name was begun with another request or strategy.
    #[error(
        "run {run:?} was begun {found}; resume it with its own request and strategy, or begin a run \
        under another name"
    )]
    OtherTask {
        /// The run.
        run: String,
        /// What the journal says about it.
        found: String,
    },
    /// A strategy cannot continue, for a reason of its own.
    #[error(transparent)]
    Strategy(Box<dyn std::error::Error + Send + Sync>),
    /// The context has changed since the run left it.
    #[error(
        "todo {todo} has changed since run {run:?} left it: {detail}; begin a run under another name"
    )]
    ContextMoved {
        /// The todo.
        todo: TodoId,
        /// The run.
        run: String,
        /// The change that was found.
        detail: String,
    },
}

impl AgentError {
    /// Wraps a strategy's own error, or a sentence that says what was wrong and what was expected.
    #[must_use]
    pub fn strategy(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Strategy(error.into())
    }

    /// Wraps it as the failure of a context, from which [`out_of_context`](Self::out_of_context) unwraps it.
    pub(crate) fn into_context(self) -> ContextError {
        ContextError { message: self.to_string(), source: Some(Box::new(self)) }
    }

    /// Unwraps the error if it was wrapped as the failure of a context.
    pub(crate) fn out_of_context(self) -> Self {
        let Self::Context(ContextError { message, source: Some(source) }) = self else {
            return self;
        };
        match source.downcast() {
            Ok(own) => *own,
            Err(source) => Self::Context(ContextError { message, source: Some(source) }),
        }
    }
}

impl Agent {
    /// Creates an agent without standing instructions.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, executor: Executor) -> Self {
        let window = ContextWindow::default();
        Self { model, executor, system_prompt: String::new(), window }
    }

    /// Sets the standing instructions: who it works for, and how. `<!-- CACHE_BREAKPOINT -->` in them is a
    /// cache mark and is not sent. If they give the time to the second, each run fails.
    #[must_use]
    pub fn with_system_prompt(self, system_prompt: &str) -> Self {
        Self { system_prompt: system_prompt.to_owned(), ..self }
    }

    /// Sets the standing instructions, with a time to the second reduced to the day or the hour.
    #[must_use]
    pub fn with_coarse_system_prompt(self, system_prompt: &str) -> Self {
        Self { system_prompt: coarsen_clocks(system_prompt).into_owned(), ..self }
    }

    /// Sets another model. Its window is unknown until [`with_window`](Self::with_window) sets it.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { model, window: ContextWindow::default(), ..self }
    }

    /// Sets another executor.
    #[must_use]
    pub fn with_executor(self, executor: Executor) -> Self {
        Self { executor, ..self }
    }

    /// Sets the window of the model; requests are kept within it.
    #[must_use]
    pub fn with_window(self, window: ContextWindow) -> Self {
        Self { window, ..self }
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &dyn ChatModel {
        &*self.model
    }

    /// Returns the executor, with the agent's tools.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Returns the standing instructions.
    #[must_use]
    pub fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// Returns the standing instructions followed by others, such as those of a strategy.
    #[must_use]
    pub fn system_prompt_with(&self, instructions: &str) -> String {
        if self.system_prompt.is_empty() {
            instructions.to_owned()
        } else {
            format!("{}\n\n{instructions}", self.system_prompt)
        }
    }

    /// Returns a validator of plans against the agent's tools, within the executor's limits.
    pub(crate) fn validator(&self) -> Validator<'_> {
        let limits = self.executor.settings().quota.plan;
        Validator::new(self.executor.catalog()).within(limits)
    }

    /// Returns the situation for a record.
    pub(crate) fn situation(&self, todo: &TodoId, request: &str) -> Situation {
        Situation {
            version: TRAJECTORY_VERSION,
            system_prompt: self.system_prompt.clone(),
            request: request.to_owned(),
            model: self.model.name().to_owned(),
            tools: self.executor.toolbox().specs().map(ToolRecord::from).collect(),
            todo: Some(todo.clone()),
            parent: None,
        }
    }

    /// Refuses instructions and tools that contain a clock, and a context whose policy has a tool with the name
    /// of one of the agent's.
    pub(crate) fn check(&self, context: &dyn ContextManager) -> Result<(), AgentError> {
        let toolbox = self.executor.toolbox();
        let tools = toolbox.specs().map(|spec| spec.definition.clone()).collect();
        check_clocks(&ChatRequest::new([Message::system(&self.system_prompt)]).with_tools(tools))?;
        match context.tools().iter().find(|tool| toolbox.get(&tool.name).is_some()) {
            Some(tool) => Err(AgentError::SameName { name: tool.name.clone() }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.model.name())
            .field("executor", &self.executor)
            .finish_non_exhaustive()
    }
}
