//! What a strategy works with: a model, an executor with its tools, and standing instructions.

use crate::call_ids::CallIds;
use crate::one_plan::OnePlanSettings;
use crate::react::ReactSettings;
use crate::trajectory::{Situation, TRAJECTORY_VERSION, ToolRecord, Trajectory};
use crate::{AgentEvent, ContextHandle, Executor, Host, Observer, Purse, RunError, Trace};
use foldback_core::{Budget, ContextError, ContextManager, Message, TodoId};
use foldback_llm::{ChatModel, ChatRequest, ClockError, check_clocks, coarsen_clocks};
use foldback_planner::Validator;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A model with tools, ready to work on requests by either strategy:
/// [`one_plan`](Self::one_plan) or [`react`](Self::react).
///
/// The [crate's page](crate) has an example.
#[derive(Clone)]
pub struct Agent {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) executor: Executor,
    pub(crate) head: String,
    pub(crate) react: ReactSettings,
    pub(crate) one_plan: OnePlanSettings,
}

/// One piece of work.
#[derive(Clone, Default)]
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
    pub purse: Purse,
}

impl Task {
    /// A request, in a run of this name.
    #[must_use]
    pub fn new(run: &str, request: &str) -> Self {
        Self { request: request.to_owned(), run: run.to_owned(), ..Self::default() }
    }
}

impl Task {
    /// What is lent to the tools of the task's runs.
    pub(crate) fn host(&self, context: Option<ContextHandle>) -> Host {
        Host { context, observer: self.observer.clone(), purse: self.purse.clone() }
    }

    /// Tells whoever watches.
    pub(crate) fn tell(&self, todo: &TodoId, event: &AgentEvent) {
        if let Some(observer) = &self.observer {
            observer.observe(todo, event);
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("request", &self.request)
            .field("run", &self.run)
            .field("depth", &self.depth)
            .field("purse", &self.purse)
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
    /// alike; [`Agent::with_coarse_head`] tells the day or the hour.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A tool of the agent and one of the context's policy have one name.
    #[error("both the agent and its context policy have a tool named {name:?}; rename one of them")]
    SameName {
        /// The name.
        name: String,
    },
}

impl Agent {
    /// An agent without standing instructions, with default settings.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, executor: Executor) -> Self {
        let (react, one_plan) = (ReactSettings::default(), OnePlanSettings::default());
        Self { model, executor, head: String::new(), react, one_plan }
    }

    /// The same with standing instructions: who it works for, and how. `<!-- CACHE_BREAKPOINT -->` in
    /// them is a cache mark and is not sent. A clock that reads to the second is an error of each run.
    #[must_use]
    pub fn with_head(self, head: &str) -> Self {
        Self { head: head.to_owned(), ..self }
    }

    /// The same with standing instructions in which a clock that reads to the second is made one of the
    /// day or the hour.
    #[must_use]
    pub fn with_coarse_head(self, head: &str) -> Self {
        Self { head: coarsen_clocks(head).into_owned(), ..self }
    }

    /// The same with other settings for going step by step.
    #[must_use]
    pub fn with_react(self, react: ReactSettings) -> Self {
        Self { react, ..self }
    }

    /// The same with other settings for planning.
    #[must_use]
    pub fn with_one_plan(self, one_plan: OnePlanSettings) -> Self {
        Self { one_plan, ..self }
    }

    /// Checks plans against the agent's tools, within the executor's limits.
    pub(crate) fn validator(&self) -> Validator<'_> {
        let limits = self.executor.settings().quota.plan;
        Validator::new(self.executor.toolbox().catalog()).within(limits)
    }

    /// What a record tells of the situation.
    pub(crate) fn situation(&self, request: &str) -> Situation {
        Situation {
            version: TRAJECTORY_VERSION,
            head: self.head.clone(),
            request: request.to_owned(),
            model: self.model.name().to_owned(),
            tools: self.executor.toolbox().specs().map(ToolRecord::from).collect(),
        }
    }

    /// Refuses instructions and tools with a clock in them, and a context whose policy has a tool named
    /// like one of the agent's.
    pub(crate) fn check(&self, context: &dyn ContextManager) -> Result<(), AgentError> {
        let toolbox = self.executor.toolbox();
        check_clocks(&ChatRequest {
            messages: vec![Arc::new(Message::system(&self.head))],
            tools: toolbox.specs().map(|spec| spec.definition.clone()).collect(),
            ..ChatRequest::default()
        })?;
        match context.tools().iter().find(|tool| toolbox.get(&tool.name).is_some()) {
            Some(tool) => Err(AgentError::SameName { name: tool.name.clone() }),
            None => Ok(()),
        }
    }

    /// Records the instructions where the conversation has not begun, and the request. Gives the ids that
    /// calls have so far.
    pub(crate) fn open(
        &self,
        context: &mut dyn ContextManager,
        system: &str,
        request: &str,
    ) -> Result<CallIds, AgentError> {
        let has_begun = !context.prompt(&Budget::default()).messages.is_empty();
        if !has_begun && !system.is_empty() {
            context.record(Message::system(system))?;
        }
        let recorded = context.record(Message::user(request))?;
        Ok(CallIds::of(context, has_begun.then_some(recorded.seq)))
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
