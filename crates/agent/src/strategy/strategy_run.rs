//! A run in the hands of a strategy.

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

/// A run in the hands of a [`Strategy`]: the agent and the task, and the ways to ask the model, run tools,
/// spend, and keep what the run has to know when it goes on.
///
/// The context comes beside it, so that a strategy can ask several questions at once. Whatever is asked and
/// called by way of this is written to the journal, charged to the task, told to its observer, and stands
/// in the [trajectory](crate::Trajectory); clones are the same run.
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
    /// The way to the context that tools are lent, and what they ask of it.
    handle: ContextHandle,
    requests: Arc<tokio::sync::Mutex<Requests>>,
}

impl<'a> StrategyRun<'a> {
    /// Works on a task by a strategy, in a context that knows what it holds of the run.
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

    /// The agent: its model, its executor and its system prompt.
    #[must_use]
    pub fn agent(&self) -> &'a Agent {
        self.agent
    }

    /// The task: the request, the name of the run, whether it was cancelled, and what it may spend.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The todo that the context belongs to.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        &self.todo
    }

    /// The todo of a part of the run that has a context of its own
    /// ([`ContextManager::child`]); always the same for one name.
    #[must_use]
    pub fn child_todo(&self, name: &str) -> TodoId {
        child_id(&self.todo, name)
    }

    /// Records the system prompt where the conversation has not begun, and the request.
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

    /// A message of the model with ids that no call of the conversation has yet: chat APIs refuse two calls
    /// with one id. For a run that is [open](Self::open).
    #[must_use]
    pub fn with_own_ids(&self, message: Message) -> Message {
        self.ids.lock().own(message)
    }

    /// Asks the agent's model.
    ///
    /// `key` is unique among the questions of one purpose in the run, and the same when the run goes on
    /// (`3`, `query-2`): by it the answer is found that the journal holds, and nobody is asked again.
    /// Questions may be asked beside each other.
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

    /// The same with another model than the agent's.
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

    /// Waits for `work`, and meanwhile does with the context what tools ask of it. Tools that were begun may
    /// still ask for something while the model answers, so a strategy with tools waits for everything by way
    /// of this.
    pub async fn serve<T>(
        &self,
        context: &mut dyn ContextManager,
        work: impl Future<Output = T>,
    ) -> T {
        let mut requests = self.requests.lock().await;
        requests.serve(context, work).await
    }

    /// Runs the steps of a plan as the next turn of the run, and gives what became of each. Tools may ask
    /// for something of the context meanwhile, and those that see all of a conversation are told what it
    /// shows.
    ///
    /// Nothing of it is recorded: what the model sees of the results is the strategy's own matter. A run
    /// that was cancelled meanwhile makes the calls that had not ended when it goes on, so it ends with
    /// [`Stop::Cancelled`](crate::Stop) before it says anything of them.
    ///
    /// # Errors
    /// When the steps make no plan, and when the context or the journal fails.
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

    /// Whether a tool of the plan sees all of a conversation.
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

    /// Says that the steps of a plan are the next turn of the run, and gives its number.
    pub fn begin_turn(&self, purpose: Purpose, plan: &Plan) -> u32 {
        let turn = self.log.next_turn();
        let (purpose, calls, findings) = (&purpose, plan.steps.len(), &[]);
        self.log.emit(RunEvent::Planned { turn, purpose, plan, calls, findings });
        turn
    }

    /// Runs steps of a turn by an executor, beside whatever else goes on. `name` is theirs in the journal:
    /// unique in the run, and the same when it goes on. A call that was not made for a limit of the run is
    /// made then.
    ///
    /// # Errors
    /// When the steps make no plan, and when the journal fails.
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

    /// Says that a call of a turn's step begins now, where its place in the record matters: calls beside
    /// each other stand there in the order in which they began.
    pub fn step_began(&self, turn: u32, step: StepId, function: &str, arguments: &str) {
        self.log.emit(RunEvent::StepPlaced { turn, step, tool: function, arguments });
    }

    /// The way to the context that the tools of the run are lent.
    pub(crate) fn handle(&self) -> ContextHandle {
        self.handle.clone()
    }

    /// What earlier processes of this run [noted](Self::note) of a kind, in order.
    pub fn noted<T: DeserializeOwned>(&self, kind: &str) -> Vec<T> {
        self.notes.past(kind).collect()
    }

    /// Writes something into the run's journal, for the process to find that goes on with the run. Without
    /// a journal nothing is written. `kind` is a word of the strategy's own: `best_of.choice`.
    ///
    /// # Errors
    /// When the journal fails.
    pub fn note(&self, kind: &str, what: &impl Serialize) -> Result<(), AgentError> {
        self.notes.note(kind, what)
    }

    /// Where the run says what happens in it.
    #[must_use]
    pub fn log(&self) -> &RunLog {
        &self.log
    }

    /// Says that the run goes on by another strategy, and why: the record has it as the one that was
    /// chosen. It is run by its own [`run`](Strategy::run), with this run.
    pub fn choose(&self, strategy: StrategyName, because: &str) {
        spans::rename_agent(&self.span, &strategy.recorded());
        self.log.emit(RunEvent::Chose { strategy: &strategy, because });
    }

    /// The same run within narrower limits, and with a cancellation of its own, which the task's brings with
    /// it.
    ///
    /// # Errors
    /// When a limit makes no sense.
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
    /// journal: that of `task`. What it did stands in no record yet; see [`absorb`](Self::absorb).
    ///
    /// For a part with a context of its own there is [`Agent::run`], and [`ContextManager::child`].
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

    /// Takes what a part of the run did into its record: its turns follow on those that there are.
    pub fn absorb(&self, part: Report) {
        if let Some(recorder) = self.log.recorder() {
            recorder.absorb(part);
        }
    }

    /// Names tools of others that work in this run, for the record: those of the agent are known.
    pub fn know_tools<'t>(&self, tools: impl IntoIterator<Item = &'t ToolSpec>) {
        if let Some(recorder) = self.log.recorder() {
            recorder.know_tools(tools.into_iter().map(ToolRecord::from));
        }
    }
}
