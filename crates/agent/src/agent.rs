//! What a strategy works with: a model, an executor with its tools, and standing instructions.

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

/// The standing instructions of the reference agent: how it works with a todo list, tools and a memory.
/// What it works for, and where, is added by whoever runs it.
#[must_use]
pub fn reference_system_prompt() -> &'static str {
    include_str!("prompts/agent.md").trim_ascii_end()
}

/// The same in a few words, for a model with a small window.
#[must_use]
pub fn short_system_prompt() -> &'static str {
    include_str!("prompts/agent_short.md").trim_ascii_end()
}

/// A model with tools, ready to work on requests: [`run`](Self::run) does, by any
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
    /// What is asked.
    pub request: String,
    /// The name of the run: unique in the executor's journal, and the same when the run is resumed.
    pub run: String,
    /// Cancels the run.
    pub cancelled: CancellationToken,
    /// How many runs stand around this one.
    pub depth: u32,
    /// Who is told of what happens.
    pub observer: Option<Arc<dyn Observer>>,
    /// What was spent, and what may be.
    pub spend: SpendTracker,
}

impl Task {
    /// A request, in a run of this name.
    #[must_use]
    pub fn new(run: &str, request: &str) -> Self {
        Self { request: request.to_owned(), run: run.to_owned(), ..Self::default() }
    }

    /// The same, cancelled by this token.
    #[must_use]
    pub fn with_cancelled(self, cancelled: CancellationToken) -> Self {
        Self { cancelled, ..self }
    }

    /// The same, inside this many runs.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// The same, watched by this observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same, charged to this tracker.
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

/// What became of a task.
#[derive(Clone, Debug)]
pub struct Report {
    /// The record of all of it.
    pub trajectory: Trajectory,
    /// What the executor did, one trace for each plan of steps that ran.
    pub traces: Vec<Trace>,
}

impl Report {
    /// What is told to whoever asked, where the run came to it.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.trajectory.outcome.answer.as_deref()
    }
}

/// A run that could not go on. What the model did wrong is no such thing: it is told to the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The context could not be kept.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The executor could not run what it was given, or its journal failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The agent's instructions or tools tell the time to the second, so that no two requests begin
    /// alike; [`Agent::with_coarse_system_prompt`] tells the day or the hour.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A tool of the agent and one of the context's policy have one name.
    #[error("both the agent and its context policy have a tool named {name:?}; rename one of them")]
    SameName {
        /// The name.
        name: String,
    },
    /// What it may spend is no bound.
    #[error(transparent)]
    SpendTracker(#[from] SpendError),
    /// A setting makes no sense.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The table of which tools may be called when does not fit the tools.
    #[error(transparent)]
    Availability(#[from] AvailabilityError),
    /// A run of this name was begun for something else, or in another way.
    #[error(
        "run {run:?} was begun {found}; give it the request and the strategy that it had, or begin a run \
         of another name"
    )]
    OtherTask {
        /// The run.
        run: String,
        /// What the journal says of it.
        found: String,
    },
    /// A strategy cannot go on, for a reason of its own.
    #[error(transparent)]
    Strategy(Box<dyn std::error::Error + Send + Sync>),
    /// The context does not stand where the run left it.
    #[error(
        "todo {todo} does not stand where run {run:?} left it: {detail}; begin a run of another name"
    )]
    ContextMoved {
        /// The todo.
        todo: TodoId,
        /// The run.
        run: String,
        /// What was found there.
        detail: String,
    },
}

impl AgentError {
    /// A strategy's own error, or a sentence that says what was wrong and what was expected.
    #[must_use]
    pub fn strategy(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Strategy(error.into())
    }

    /// As the failure of a context, from which [`out_of_context`](Self::out_of_context) brings it back.
    pub(crate) fn into_context(self) -> ContextError {
        ContextError { message: self.to_string(), source: Some(Box::new(self)) }
    }

    /// The error itself, where it came as the failure of a context.
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
    /// An agent without standing instructions.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, executor: Executor) -> Self {
        let window = ContextWindow::default();
        Self { model, executor, system_prompt: String::new(), window }
    }

    /// The same with standing instructions: who it works for, and how. `<!-- CACHE_BREAKPOINT -->` in
    /// them is a cache mark and is not sent. A clock that reads to the second is an error of each run.
    #[must_use]
    pub fn with_system_prompt(self, system_prompt: &str) -> Self {
        Self { system_prompt: system_prompt.to_owned(), ..self }
    }

    /// The same with standing instructions in which a clock that reads to the second is made one of the
    /// day or the hour.
    #[must_use]
    pub fn with_coarse_system_prompt(self, system_prompt: &str) -> Self {
        Self { system_prompt: coarsen_clocks(system_prompt).into_owned(), ..self }
    }

    /// The same with another model, whose window is not known: [`with_window`](Self::with_window) says it.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { model, window: ContextWindow::default(), ..self }
    }

    /// The same with another executor.
    #[must_use]
    pub fn with_executor(self, executor: Executor) -> Self {
        Self { executor, ..self }
    }

    /// The same with a model whose window is this: requests are kept within it.
    #[must_use]
    pub fn with_window(self, window: ContextWindow) -> Self {
        Self { window, ..self }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &dyn ChatModel {
        &*self.model
    }

    /// The executor, with the agent's tools.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The standing instructions.
    #[must_use]
    pub fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// The standing instructions with others after them: those of a strategy, say.
    #[must_use]
    pub fn system_prompt_with(&self, instructions: &str) -> String {
        if self.system_prompt.is_empty() {
            instructions.to_owned()
        } else {
            format!("{}\n\n{instructions}", self.system_prompt)
        }
    }

    /// Checks plans against the agent's tools, within the executor's limits.
    pub(crate) fn validator(&self) -> Validator<'_> {
        let limits = self.executor.settings().quota.plan;
        Validator::new(self.executor.catalog()).within(limits)
    }

    /// What a record tells of the situation.
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

    /// Refuses instructions and tools with a clock in them, and a context whose policy has a tool named
    /// like one of the agent's.
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
