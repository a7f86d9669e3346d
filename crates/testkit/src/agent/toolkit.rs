//! Tools and plans that the tests run.

use foldback_agent::{Executor, Outcome, RunOptions, Settings};
use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, FailurePolicy, Form, Plan, Reference, Step, StepId, StepResult, Template,
};
use foldback_tool::{
    CallContext, Concurrency, Effect, FailureKind, FunctionTool, Tool, ToolError, ToolOutput,
    ToolSpec, Toolbox,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A counter that tools and tests share.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// Increments the counter and returns its new value.
    pub fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns the count.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns the spec of a tool with this name and effect, which takes any object.
pub fn spec(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec::new(ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: r#"{"type":"object"}"#.to_owned(),
    })
    .with_effect(effect)
}

/// Returns the spec of a tool that runs alongside no other call.
pub fn exclusive(name: &str) -> ToolSpec {
    spec(name, Effect::ReadOnly).with_concurrency(Concurrency::Exclusive)
}

/// Returns a tool that is a function.
pub fn tool<F, A>(spec: ToolSpec, function: F) -> Arc<dyn Tool>
where
    F: Fn(String, CallContext) -> A + Send + Sync + 'static,
    A: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(FunctionTool::new(spec, function))
}

/// Returns a tool that answers its arguments after `{"ms": ..}` milliseconds, or at once.
pub fn wait() -> Arc<dyn Tool> {
    waiting(spec("wait", Effect::ReadOnly))
}

/// Returns the same with another spec.
pub fn waiting(spec: ToolSpec) -> Arc<dyn Tool> {
    tool(spec, |arguments, _| async move {
        let ms = milliseconds(&arguments);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(ToolOutput::json(arguments))
    })
}

/// Returns the `ms` of a call, or 0 without it.
pub fn milliseconds(arguments: &str) -> u64 {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    arguments["ms"].as_u64().unwrap_or(0)
}

/// Returns a tool that fails permanently.
pub fn broken() -> Arc<dyn Tool> {
    tool(spec("broken", Effect::ReadOnly), |_, _| async {
        Err(ToolError::permanent("断网: the network is down"))
    })
}

/// Returns an executor with these tools.
pub fn executor(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Executor {
    Executor::new(Toolbox::new(tools).unwrap())
}

/// Runs a plan with default options.
pub async fn run(executor: &Executor, steps: Vec<Step>) -> Outcome {
    executor.run(&plan(steps), options("run")).await.unwrap()
}

/// Returns the default settings with changes.
pub fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

/// Returns a run of this name.
pub fn options(id: &str) -> RunOptions {
    RunOptions::new(id)
}

/// Returns a plan of these steps.
pub fn plan(steps: Vec<Step>) -> Plan {
    Plan { form: Form::OnePlan, steps }
}

/// Returns a step that calls a tool without arguments.
pub fn step(id: u32, function: &str, after: &[u32]) -> Step {
    call(id, function, Template::Object(vec![]), after)
}

/// Returns a step that calls `wait`.
pub fn pause(id: u32, ms: u64, after: &[u32]) -> Step {
    call(id, "wait", object(&[("ms", Template::Literal(ms.to_string()))]), after)
}

/// Returns a step that calls a tool.
pub fn call(id: u32, function: &str, arguments: Template, after: &[u32]) -> Step {
    Step {
        id: StepId(id),
        action: Action::Call { function: function.to_owned(), arguments },
        after: after.iter().copied().map(StepId).collect(),
        on_failure: FailurePolicy::default(),
    }
}

/// Returns an anchor step, at which a new plan is made.
pub fn anchor(id: u32, after: &[u32]) -> Step {
    let action =
        Action::Anchor { task: "若晴朗则订餐厅，若下雨则点外卖".to_owned() };
    Step { action, ..step(id, "", after) }
}

/// Returns an object of templates.
pub fn object(members: &[(&str, Template)]) -> Template {
    Template::Object(
        members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
    )
}

/// Returns a text without references.
pub fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

/// Returns a reference to the whole of a step's result.
pub fn whole(id: u32) -> Template {
    Template::Whole(Reference { step: StepId(id), path: Vec::new() })
}

/// Returns this many milliseconds.
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Returns the outcome of a step.
pub fn result(outcome: &Outcome, id: u32) -> &StepResult {
    &outcome.results[&StepId(id)]
}

/// Returns the answer of a step.
#[track_caller]
pub fn answer(outcome: &Outcome, id: u32) -> &str {
    match result(outcome, id) {
        StepResult::Success { data } => &data.text,
        other => panic!("step{id}: {other:?}"),
    }
}

/// Returns the kind of a step's failure, and its message.
#[track_caller]
pub fn failure(outcome: &Outcome, id: u32) -> (FailureKind, &str) {
    match result(outcome, id) {
        StepResult::Error { failure } => (failure.kind, &failure.message),
        other => panic!("step{id}: {other:?}"),
    }
}

/// Returns when a step's call started and ended.
pub fn times(outcome: &Outcome, id: u32) -> (Duration, Duration) {
    let report = &outcome.calls[&StepId(id)];
    (report.started, report.ended)
}

/// Returns the outcome of a step that was skipped because of another.
pub fn skipped(because: u32) -> StepResult {
    StepResult::Skipped { because: StepId(because) }
}
