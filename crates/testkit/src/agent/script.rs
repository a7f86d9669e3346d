//! Agents with a scripted model, and the traces of their runs.

use super::toolkit::{spec, tool};
use foldback_agent::executor::Trace;
use foldback_agent::{
    Agent, AgentError, Executor, OnePlan, OnePlanSettings, React, ReactSettings, Report, Strategy,
    Task,
};
use foldback_baselines::Full;
use foldback_core::{
    Budget, ContextError, ContextLayer, ContextManager, Estimate, Message, Prompt, Role, TodoId,
    ToolAnswer, ToolCall, ToolDefinition, check_request,
};
use foldback_llm::{
    Answer, Capabilities, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
    ScriptedModel,
};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec, Toolbox};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Returns a model that gives these answers in order and can be asked what it saw.
pub fn model(answers: impl IntoIterator<Item = Answer>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(answers))
}

/// Returns a model that answers these texts in order.
pub fn texts(answers: &[&str]) -> Arc<ScriptedModel> {
    model(answers.iter().map(|text| Answer::text(text)))
}

/// Returns an agent with these tools, whose model is sent only what chat APIs accept.
pub fn agent(model: &Arc<ScriptedModel>, tools: Vec<Arc<dyn Tool>>) -> Agent {
    running(model, Executor::new(Toolbox::new(tools).unwrap()))
}

/// Returns an agent whose model is sent only what chat APIs accept.
pub fn running(model: &Arc<ScriptedModel>, executor: Executor) -> Agent {
    Agent::new(Arc::new(Strict(model.clone())), executor)
}

/// A model that is as strict about requests as the strictest chat API.
struct Strict(Arc<ScriptedModel>);

impl Strict {
    /// Calls and results belong together, and the last word is not the model's own.
    fn check(request: &ChatRequest) {
        let messages = || request.messages.iter().map(AsRef::as_ref);
        assert_eq!(check_request(messages()), [], "{request:?}");
        let last = request.messages.last().unwrap();
        assert!(
            *last.role() != Role::Assistant || !last.tool_calls().is_empty(),
            "the last word is the model's own: {}",
            last.text()
        );
    }
}

impl ChatModel for Strict {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        Self::check(request);
        self.0.complete(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        Self::check(request);
        self.0.stream(request)
    }
}

/// Returns a context of the todo `task` that shows everything.
pub fn full() -> Box<dyn ContextManager> {
    Full.start(TodoId::new("task").unwrap(), Arc::new(Estimate))
}

/// Returns the run `run` of a request.
pub fn task(request: &str) -> Task {
    Task::new("run", request)
}

/// Works on "go" by one plan, in a separate context.
pub async fn plan_and_run(agent: &Agent) -> Report {
    plan_and_run_by(agent, OnePlanSettings::default()).await
}

/// Does the same with other settings.
pub async fn plan_and_run_by(agent: &Agent, settings: OnePlanSettings) -> Report {
    agent.run(&OnePlan::new(settings), full().as_mut(), &task("go")).await.unwrap()
}

/// Works on "go" step by step, in a separate context; the conversation stays a valid request.
pub async fn walk(agent: &Agent) -> (Report, Vec<Arc<Message>>) {
    walk_by(agent, ReactSettings::default()).await
}

/// Does the same with other settings.
pub async fn walk_by(agent: &Agent, settings: ReactSettings) -> (Report, Vec<Arc<Message>>) {
    let mut context = full();
    let report = agent.run(&React::new(settings), context.as_mut(), &task("go")).await.unwrap();
    (report, conversation(context.as_ref()))
}

/// Checks that a run by a strategy is refused with this sentence, before anything is sent or recorded.
pub async fn is_refused(strategy: &dyn Strategy, told: &str) {
    let model = model([]);
    let agent = agent(&model, vec![]);
    let mut context = full();
    let run = agent.run(strategy, context.as_mut(), &task("How is it?")).await;
    let error = run.map(|report| report.trajectory.outcome).unwrap_err();
    assert!(matches!(&error, AgentError::Setting(_)), "{error:?}");
    assert_eq!(error.to_string(), told);
    assert_eq!((model.calls(), context.recorded()), (0, 0), "{told}");
}

/// Returns all messages of a context that shows everything; chat APIs would accept them.
#[track_caller]
pub fn conversation(context: &dyn ContextManager) -> Vec<Arc<Message>> {
    let messages = context.prompt(&Budget::default()).messages;
    assert_eq!(check_request(messages.iter().map(AsRef::as_ref)), []);
    messages
}

/// Returns the last message of a request.
pub fn asked(request: &ChatRequest) -> String {
    request.messages.last().unwrap().text().into_owned()
}

/// Returns a tool that answers a text, after a while.
pub fn says(name: &str, ms: u64, text: &str) -> Arc<dyn Tool> {
    answering(spec(name, Effect::ReadOnly), ms, text)
}

/// Returns the same with another spec.
pub fn answering(spec: ToolSpec, ms: u64, text: &str) -> Arc<dyn Tool> {
    let text = text.to_owned();
    tool(spec, move |_, _| {
        let text = text.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(ToolOutput::text(text))
        }
    })
}

/// Returns a tool that fails permanently, after a while.
pub fn fails(name: &str, ms: u64) -> Arc<dyn Tool> {
    tool(spec(name, Effect::ReadOnly), move |_, _| async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Err(ToolError::permanent("断网: the network is down"))
    })
}

/// Returns when a step's call started and ended, in milliseconds since the beginning of the run.
#[track_caller]
pub fn times(report: &Report, step: u32) -> (u64, u64) {
    let record = &report.trajectory;
    let place = record.calls.iter().position(|call| match call {
        foldback_agent::trajectory::CallRecord::Tool(call) => call.step == StepId(step),
        foldback_agent::trajectory::CallRecord::Model(_) => false,
    });
    let time = record.timing.calls[place.unwrap()];
    (time.start_us / 1000, time.end_us / 1000)
}

/// Returns the outcome of a step of the first turn.
#[track_caller]
pub fn result(report: &Report, step: u32) -> &StepResult {
    report.trajectory.result(0, StepId(step)).unwrap()
}

/// Returns the answer of a step of the first turn.
#[track_caller]
pub fn text(report: &Report, step: u32) -> &str {
    match result(report, step) {
        StepResult::Success { data } => &data.text,
        other => panic!("step{step}: {other:?}"),
    }
}

/// Returns the lines of a trace.
pub fn lines(trace: &Trace) -> Vec<String> {
    trace.to_string().lines().map(str::to_owned).collect()
}

/// A context with a memory tool that gives a fixed answer.
pub struct Remembering {
    /// The context that shows everything.
    pub inner: Box<dyn ContextManager>,
    /// Its tools: `load`.
    pub tools: Vec<ToolDefinition>,
    /// The answer of `load`.
    pub answer: String,
}

impl Remembering {
    /// Returns a context whose tool `load` gives this answer.
    pub fn new(answer: &str) -> Self {
        let load = ToolDefinition {
            name: "load".to_owned(),
            description: "Loads what was said.".to_owned(),
            parameters: r#"{"type":"object"}"#.to_owned(),
        };
        Self { inner: full(), tools: vec![load], answer: answer.to_owned() }
    }
}

impl ContextLayer for Remembering {
    fn inner(&self) -> &dyn ContextManager {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.inner.as_mut()
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        let mut prompt = self.inner.prompt(budget);
        prompt.tools.clone_from(&self.tools);
        prompt
    }

    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn call(&mut self, _call: &ToolCall) -> Result<ToolAnswer, ContextError> {
        Ok(ToolAnswer { text: self.answer.clone(), is_error: false })
    }
}
