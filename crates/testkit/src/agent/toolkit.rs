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

/// A number that tools and tests share.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// One more; how many there are now.
    pub fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many there are.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A tool of this name and effect, which takes any object.
pub fn spec(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec::new(ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: r#"{"type":"object"}"#.to_owned(),
    })
    .with_effect(effect)
}

/// A tool that runs beside no other call.
pub fn exclusive(name: &str) -> ToolSpec {
    spec(name, Effect::ReadOnly).with_concurrency(Concurrency::Exclusive)
}

/// A tool that is a function.
pub fn tool<F, A>(spec: ToolSpec, function: F) -> Arc<dyn Tool>
where
    F: Fn(String, CallContext) -> A + Send + Sync + 'static,
    A: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    Arc::new(FunctionTool::new(spec, function))
}

/// Answers its arguments after `{"ms": ..}` milliseconds, or at once.
pub fn wait() -> Arc<dyn Tool> {
    waiting(spec("wait", Effect::ReadOnly))
}

/// The same with another spec.
pub fn waiting(spec: ToolSpec) -> Arc<dyn Tool> {
    tool(spec, |arguments, _| async move {
        let ms = milliseconds(&arguments);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(ToolOutput::json(arguments))
    })
}

/// The `ms` of a call; without it, 0.
pub fn milliseconds(arguments: &str) -> u64 {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    arguments["ms"].as_u64().unwrap_or(0)
}

/// Fails for good.
pub fn broken() -> Arc<dyn Tool> {
    tool(spec("broken", Effect::ReadOnly), |_, _| async {
        Err(ToolError::permanent("断网: the network is down"))
    })
}

/// An executor with these tools.
pub fn executor(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Executor {
    Executor::new(Toolbox::new(tools).unwrap())
}

/// Runs a plan with default options.
pub async fn run(executor: &Executor, steps: Vec<Step>) -> Outcome {
    executor.run(&plan(steps), options("run")).await.unwrap()
}

/// The default settings, changed.
pub fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

/// A run of this name.
pub fn options(id: &str) -> RunOptions {
    RunOptions::new(id)
}

/// A plan of these steps.
pub fn plan(steps: Vec<Step>) -> Plan {
    Plan { form: Form::OnePlan, steps }
}

/// A step that calls a tool without arguments.
pub fn step(id: u32, function: &str, after: &[u32]) -> Step {
    call(id, function, Template::Object(vec![]), after)
}

/// A step that calls `wait`.
pub fn pause(id: u32, ms: u64, after: &[u32]) -> Step {
    call(id, "wait", object(&[("ms", Template::Literal(ms.to_string()))]), after)
}

/// A step that calls a tool.
pub fn call(id: u32, function: &str, arguments: Template, after: &[u32]) -> Step {
    Step {
        id: StepId(id),
        action: Action::Call { function: function.to_owned(), arguments },
        after: after.iter().copied().map(StepId).collect(),
        on_failure: FailurePolicy::default(),
    }
}

/// A step from which the plan is made anew.
pub fn anchor(id: u32, after: &[u32]) -> Step {
    let action =
        Action::Anchor { task: "若晴朗则订餐厅，若下雨则点外卖".to_owned() };
    Step { action, ..step(id, "", after) }
}

/// An object of templates.
pub fn object(members: &[(&str, Template)]) -> Template {
    Template::Object(
        members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
    )
}

/// A text without references.
pub fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

/// A reference to all of a step's result.
pub fn whole(id: u32) -> Template {
    Template::Whole(Reference { step: StepId(id), path: Vec::new() })
}

/// So many milliseconds.
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What a step came to.
pub fn result(outcome: &Outcome, id: u32) -> &StepResult {
    &outcome.results[&StepId(id)]
}

/// What a step answered.
#[track_caller]
pub fn answer(outcome: &Outcome, id: u32) -> &str {
    match result(outcome, id) {
        StepResult::Success { data } => &data.text,
        other => panic!("step{id}: {other:?}"),
    }
}

/// The kind of a step's failure, and what was said.
#[track_caller]
pub fn failure(outcome: &Outcome, id: u32) -> (FailureKind, &str) {
    match result(outcome, id) {
        StepResult::Error { failure } => (failure.kind, &failure.message),
        other => panic!("step{id}: {other:?}"),
    }
}

/// When a step's call started and ended.
pub fn times(outcome: &Outcome, id: u32) -> (Duration, Duration) {
    let report = &outcome.calls[&StepId(id)];
    (report.started, report.ended)
}

/// What a step came to that was skipped because of another.
pub fn skipped(because: u32) -> StepResult {
    StepResult::Skipped { because: StepId(because) }
}
