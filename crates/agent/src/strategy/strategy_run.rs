//! A run, as a strategy is given it.

use super::{Strategy, StrategyName};
use crate::agent::{Agent, AgentError, Report, Task};
use crate::call_ids::CallIds;
use crate::facts::conversation;
use crate::model_caller::{ModelCaller, Reply};
use crate::notes::{Notes, settle};
use crate::todo::child_id;
use crate::trajectory::{Purpose, Recorder, ToolRecord};
use crate::{Executor, Outcome, RunEvent, RunLog, RunOptions, SpendLimits, spans};
use foldback_core::{Budget, ContextManager, Message, TodoId};
use foldback_llm::{ChatModel, ChatRequest};
use foldback_planner::{Action, Plan, StepId};
use foldback_tool::{ContextHandle, Requests, ToolSpec};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tracing::{Instrument, Span};

/// A run, as a [`Strategy`] is given it: the agent and the task, and the ways to ask the model, run tools,
/// spend, and keep what the run has to know when it resumes.
///
/// The context is passed separately, so that a strategy can ask several questions at once. All questions and
/// calls through this value are written to the journal, charged to the task, reported to its observer, and
/// recorded in the [trajectory](crate::Trajectory). Clones share one run.
#[derive(Clone)]
pub struct StrategyRun<'a> {
    agent: &'a Agent,
    task: Task,
    todo: TodoId,
    pub(crate) model_caller: ModelCaller,
    log: RunLog,
    notes: Notes,
    span: Span,
    ids: Arc<Mutex<CallIds>>,
    /// The handle to the context that tools are lent, and the receiver of their requests.
    handle: ContextHandle,
    requests: Arc<tokio::sync::Mutex<Requests>>,
}

impl<'a> StrategyRun<'a> {
    /// Works on a task by a strategy, in a context that knows how much of the run it holds.
    pub(crate) async fn work(
        agent: &'a Agent,
        strategy: &dyn Strategy,
        context: &mut dyn ContextManager,
        (task, notes): (&Task, Notes),
        log: &RunLog,
    ) -> Result<Report, AgentError> {
        strategy.check()?;
        agent.check(context)?;
        let todo = context.todo().clone();
        let name = strategy.name();
        let (handle, requests) = ContextHandle::new(todo.clone());
        let span = spans::invoke_agent(&name.recorded(), todo.as_str());
        let recorder = Recorder::begin(agent.situation(&todo, &task.request), name);
        let log = log.with_recorder(&recorder);
        let run = Self {
            agent,
            model_caller: ModelCaller::open(agent, task, &log)?,
            log,
            task: task.clone(),
            todo,
            notes,
            span: span.clone(),
            ids: Arc::default(),
            handle,
            requests: Arc::new(tokio::sync::Mutex::new(requests)),
        };
        let ending = strategy.run(&run, context).instrument(span.clone()).await?;
        let report = recorder.finish(ending);
        spans::record_usage(&span, &report.trajectory.spent().usage);
        Ok(report)
    }

    /// Returns the agent: its model, its executor and its system prompt.
    #[must_use]
    pub fn agent(&self) -> &'a Agent {
        self.agent
    }

    /// Returns the task: the request, the name of the run, whether it was cancelled, and what it may spend.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns the todo that the context belongs to.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        &self.todo
    }

    /// Returns the todo of a part of the run that has a context of its own
    /// ([`ContextManager::child`]); always the same for one name.
    #[must_use]
    pub fn child_todo(&self, name: &str) -> TodoId {
        child_id(&self.todo, name)
    }

    /// Records the system prompt, if the conversation has not begun, and the request.
    ///
    /// # Errors
    /// When the context fails.
    pub fn open(
        &self,
        context: &mut dyn ContextManager,
        system_prompt: &str,
    ) -> Result<(), AgentError> {
        let has_begun = context.recorded() > 0;
        if !has_begun && !system_prompt.is_empty() {
            context.record(Message::system(system_prompt))?;
        }
        let recorded = context.record(Message::user(&self.task.request))?;
        *self.ids.lock() = CallIds::of(context, has_begun.then_some(recorded.seq));
        Ok(())
    }

    /// Returns a message of the model with ids that no call of the conversation has yet: chat APIs refuse
    /// duplicate ids. The run has to be [open](Self::open).
    #[must_use]
    pub fn with_own_ids(&self, message: Message) -> Message {
        self.ids.lock().own(message)
    }

    /// Asks the agent's model.
    ///
    /// `key` is unique among the questions of one purpose in the run, and the same when the run resumes
    /// (`3`, `query-2`): it identifies the answer that the journal holds, so that the model is not asked
    /// again. Questions may be asked in parallel.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn ask(
        &self,
        purpose: Purpose,
        key: &str,
        request: ChatRequest,
    ) -> Result<Reply, AgentError> {
        self.ask_model(&*self.agent.model, purpose, key, request).await
    }

    /// Asks another model than the agent's.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn ask_model(
        &self,
        model: &dyn ChatModel,
        purpose: Purpose,
        key: &str,
        request: ChatRequest,
    ) -> Result<Reply, AgentError> {
        self.model_caller.ask(model, purpose, key, request).await
    }

    /// Returns whether the journal holds the answer to a question, which is then not asked.
    #[must_use]
    pub fn has_answer(&self, purpose: &Purpose, key: &str) -> bool {
        self.model_caller.holds(purpose, key)
    }

    /// Waits for `work`, and meanwhile serves the tools' requests to the context. Tools that were started may
    /// still send requests while the model answers, so a strategy with tools has to use this for every wait.
    pub async fn serve<T>(
        &self,
        context: &mut dyn ContextManager,
        work: impl Future<Output = T>,
    ) -> T {
        let mut requests = self.requests.lock().await;
        requests.serve(context, work).await
    }

    /// Runs the steps of a plan as the next turn of the run, and returns their results. Tools may send requests
    /// to the context meanwhile, and those that see all of a conversation are given what it shows.
    ///
    /// Nothing is recorded: the strategy decides what the model sees of the results. A run that was cancelled
    /// meanwhile makes the unfinished calls when it resumes, so it has to end with
    /// [`Stop::Cancelled`](crate::Stop) before it records anything about them.
    ///
    /// # Errors
    /// When the steps do not form a plan, and when the context or the journal fails.
    pub async fn run_plan(
        &self,
        context: &mut dyn ContextManager,
        purpose: Purpose,
        plan: &Plan,
    ) -> Result<Outcome, AgentError> {
        let turn = self.begin_turn(purpose, plan);
        let shown = || conversation(&context.prompt(&Budget::default()).messages).into();
        let global_context = self.sees_all(plan).then(shown);
        self.run_turn(context, turn, plan, global_context).await
    }

    /// Returns whether a tool of the plan sees all of a conversation.
    pub(crate) fn sees_all(&self, plan: &Plan) -> bool {
        let catalog = self.agent.executor.catalog();
        plan.steps.iter().any(|step| match &step.action {
            Action::Call { function, .. } => {
                catalog.get(function).is_some_and(|tool| tool.global_context)
            }
            Action::Anchor { .. } => false,
        })
    }

    /// Runs the steps of a turn; `global_context` is for tools that see all of a conversation.
    pub(crate) async fn run_turn(
        &self,
        context: &mut dyn ContextManager,
        turn: u32,
        plan: &Plan,
        global_context: Option<Arc<str>>,
    ) -> Result<Outcome, AgentError> {
        let (executor, name) = (&self.agent.executor, format!("turn-{turn}"));
        let work = self.run_steps_seeing(executor, turn, &name, plan, global_context);
        let outcome = self.serve(context, work).await?;
        settle(executor, &format!("{}/{name}", self.task.run), &outcome)?;
        Ok(outcome)
    }

    /// Makes the steps of a plan the next turn of the run, and returns its number.
    pub fn begin_turn(&self, purpose: Purpose, plan: &Plan) -> u32 {
        let turn = self.log.next_turn();
        let (purpose, calls, findings) = (&purpose, plan.steps.len(), &[]);
        self.log.emit(RunEvent::Planned { turn, purpose, plan, calls, findings });
        turn
    }

    /// Runs steps of a turn by an executor, in parallel with other work. `name` names them in the journal: it is
    /// unique in the run, and the same when the run resumes. A call that was not made because of a limit of the
    /// run is made then.
    ///
    /// # Errors
    /// When the steps do not form a plan, and when the journal fails.
    pub async fn run_steps(
        &self,
        executor: &Executor,
        turn: u32,
        name: &str,
        plan: &Plan,
    ) -> Result<Outcome, AgentError> {
        self.run_steps_seeing(executor, turn, name, plan, None).await
    }

    async fn run_steps_seeing(
        &self,
        executor: &Executor,
        turn: u32,
        name: &str,
        plan: &Plan,
        global_context: Option<Arc<str>>,
    ) -> Result<Outcome, AgentError> {
        let options = RunOptions {
            id: format!("{}/{name}", self.task.run),
            cancelled: self.task.cancelled.clone(),
            global_context,
            depth: self.task.depth,
            context: Some(self.handle()),
            log: self.log.clone(),
            turn: Some(turn),
        };
        let outcome = executor.run(plan, options).await?;
        self.log.emit(RunEvent::StepsRan { turn, outcome: &outcome });
        Ok(outcome)
    }

    /// Emits that a call of a turn's step begins now, if its place in the record matters: concurrent calls are
    /// recorded in the order in which they began.
    pub fn step_began(&self, turn: u32, step: StepId, function: &str, arguments: &str) {
        self.log.emit(RunEvent::StepPlaced { turn, step, tool: function, arguments });
    }

    /// Returns the handle to the context that the tools of the run are lent.
    pub(crate) fn handle(&self) -> ContextHandle {
        self.handle.clone()
    }

    /// Returns the [notes](Self::note) of a kind from earlier processes of this run, in order.
    pub fn noted<T: DeserializeOwned>(&self, kind: &str) -> Vec<T> {
        self.notes.past(kind).collect()
    }

    /// Writes a note into the run's journal, for the process that resumes the run. Without a journal nothing is
    /// written. `kind` is a word of the strategy's own: `best_of.choice`.
    ///
    /// # Errors
    /// When the journal fails.
    pub fn note(&self, kind: &str, what: &impl Serialize) -> Result<(), AgentError> {
        self.notes.note(kind, what)
    }

    /// Returns the log of the run.
    #[must_use]
    pub fn log(&self) -> &RunLog {
        &self.log
    }

    /// Notes that the run continues by another strategy, and why: the record names that one as chosen. Run it by
    /// its own [`run`](Strategy::run), with this run.
    pub fn choose(&self, strategy: StrategyName, because: &str) {
        spans::rename_agent(&self.span, &strategy.recorded());
        self.log.emit(RunEvent::Chose { strategy: &strategy, because });
    }

    /// Returns the same run within narrower limits, and with a cancellation of its own, which the task's
    /// cancellation includes.
    ///
    /// # Errors
    /// When a limit is invalid.
    pub fn within(&self, limits: SpendLimits) -> Result<Self, AgentError> {
        let task = Task {
            spend: self.task.spend.share(limits)?,
            cancelled: self.task.cancelled.child_token(),
            ..self.task.clone()
        };
        let log = self.log.with_spend(task.spend.clone());
        let model_caller = self.model_caller.within(&task, &log);
        Ok(Self { task, log, model_caller, ..self.clone() })
    }

    /// Works on a part of the run by a strategy, in the same context. The part has a name of its own in the
    /// journal: that of `task`. It is not yet in the run's record; see [`absorb`](Self::absorb).
    ///
    /// For a part with a context of its own use [`Agent::run`] and [`ContextManager::child`].
    ///
    /// # Errors
    /// As [`Agent::run`].
    pub async fn run_part(
        &self,
        agent: &Agent,
        strategy: &dyn Strategy,
        context: &mut dyn ContextManager,
        task: &Task,
    ) -> Result<Report, AgentError> {
        let notes = Notes::open(&agent.executor, &task.run)?;
        let log = self.log.with_spend(task.spend.clone());
        StrategyRun::work(agent, strategy, context, (task, notes), &log).await
    }

    /// Adds a part of the run to its record: the part's turns follow the existing ones.
    pub fn absorb(&self, part: Report) {
        if let Some(recorder) = self.log.recorder() {
            recorder.absorb(part);
        }
    }

    /// Adds the tools of other agents that work in this run to the record; those of the agent are already known.
    pub fn know_tools<'t>(&self, tools: impl IntoIterator<Item = &'t ToolSpec>) {
        if let Some(recorder) = self.log.recorder() {
            recorder.know_tools(tools.into_iter().map(ToolRecord::from));
        }
    }
}
