//! The cost of the executor itself: tools that do nothing, plans of the shapes that hurt other executors.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use divan::{Bencher, black_box};
use foldback_agent::{Executor, FileJournal, MemoryJournal, RunOptions, Settings};
use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, FailurePolicy, Form, Limits, Plan, Reference, Step, StepId, Template,
};
use foldback_tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

fn main() {
    divan::main();
}

/// The runtimes that an agent may run on.
const RUNTIMES: [&str; 2] = ["current_thread", "multi_thread"];

fn runtime(name: &str) -> Runtime {
    let mut builder = match name {
        "current_thread" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.enable_time().build().unwrap()
}

fn executor(effect: Effect) -> Executor {
    let definition = ToolDefinition {
        name: "nothing".to_owned(),
        description: "Does nothing.".to_owned(),
        parameters: r#"{"type":"object","properties":{"city":{"type":"string"}}}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(effect);
    let tool = FunctionTool::new(spec, |_, _| async { Ok(ToolOutput::text("done")) });
    let mut settings = Settings::default().with_max_parallel(usize::MAX);
    settings.quota.plan = Limits::default().with_steps(usize::MAX);
    settings.quota.calls = usize::MAX;
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(tool)];
    Executor::new(Toolbox::new(tools).unwrap()).with_settings(settings)
}

/// A step that passes on the answer of the first one that it waits for.
fn step(id: u32, after: &[u32]) -> Step {
    let city = match after.first() {
        Some(first) => Template::Whole(Reference { step: StepId(*first), path: Vec::new() }),
        None => Template::Text("沈阳".to_owned()),
    };
    let arguments = Template::Object(vec![("city".to_owned(), city)]);
    Step {
        id: StepId(id),
        action: Action::Call { function: "nothing".to_owned(), arguments },
        after: after.iter().copied().map(StepId).collect(),
        on_failure: FailurePolicy::default(),
    }
}

fn plan(length: u32, after: impl Fn(u32) -> Vec<u32>) -> Plan {
    let steps = (1..=length).map(|id| step(id, &after(id))).collect();
    Plan { form: Form::OnePlan, steps }
}

fn chain(length: u32) -> Plan {
    plan(length, |id| if id == 1 { vec![] } else { vec![id - 1] })
}

fn independent(length: u32) -> Plan {
    plan(length, |_| vec![])
}

/// Ten layers of ten; each step waits for three of the layer before.
fn layers() -> Plan {
    plan(100, |id| match id {
        1..=10 => vec![],
        _ => {
            let layer = (id - 1) / 10 * 10;
            let mut after: Vec<u32> = [0, 3, 7].map(|k| layer - 9 + (id + k) % 10).to_vec();
            after.sort_unstable();
            after
        }
    })
}

fn bench(bencher: Bencher<'_, '_>, runtime_name: &str, plan: &Plan, executor: &Executor) {
    let runtime = runtime(runtime_name);
    let mut run = 0;
    bencher.counter(divan::counter::ItemsCount::new(plan.steps.len())).bench_local(|| {
        run += 1;
        let options = RunOptions::new(&format!("run {run}"));
        // As a task, like an agent: on a worker of the runtime, not outside it.
        let (executor, plan) = (executor.clone(), plan.clone());
        let task = runtime.spawn(async move { executor.run(&plan, options).await });
        black_box(runtime.block_on(task).unwrap().unwrap())
    });
}

#[divan::bench(args = RUNTIMES)]
fn chain_of_50(bencher: Bencher<'_, '_>, runtime: &str) {
    bench(bencher, runtime, &chain(50), &executor(Effect::ReadOnly));
}

#[divan::bench(args = RUNTIMES)]
fn independent_100(bencher: Bencher<'_, '_>, runtime: &str) {
    bench(bencher, runtime, &independent(100), &executor(Effect::ReadOnly));
}

#[divan::bench(args = RUNTIMES)]
fn dag_of_100(bencher: Bencher<'_, '_>, runtime: &str) {
    bench(bencher, runtime, &layers(), &executor(Effect::ReadOnly));
}

#[divan::bench(args = RUNTIMES)]
fn one_call(bencher: Bencher<'_, '_>, runtime: &str) {
    bench(bencher, runtime, &chain(1), &executor(Effect::ReadOnly));
}

#[divan::bench(args = RUNTIMES, sample_count = 10)]
fn independent_10_000(bencher: Bencher<'_, '_>, runtime: &str) {
    bench(bencher, runtime, &independent(10_000), &executor(Effect::ReadOnly));
}

#[divan::bench(args = RUNTIMES, sample_count = 10)]
fn chain_of_10_000(bencher: Bencher<'_, '_>, runtime: &str) {
    bench(bencher, runtime, &chain(10_000), &executor(Effect::ReadOnly));
}

#[divan::bench(args = RUNTIMES)]
fn dag_of_100_with_memory_journal(bencher: Bencher<'_, '_>, runtime: &str) {
    let executor = executor(Effect::ReadOnly).with_journal(Arc::new(MemoryJournal::default()));
    bench(bencher, runtime, &layers(), &executor);
}

#[divan::bench(args = RUNTIMES)]
fn dag_of_100_with_file_journal(bencher: Bencher<'_, '_>, runtime: &str) {
    let dir = tempfile::tempdir().unwrap();
    let journal = FileJournal::open(dir.path().join("journal.jsonl")).unwrap();
    let executor = executor(Effect::ReadOnly).with_journal(Arc::new(journal));
    bench(bencher, runtime, &layers(), &executor);
}

/// Each call is durable before it is made; simultaneous ones share a sync.
#[divan::bench(args = RUNTIMES)]
fn effectful_dag_of_100_with_file_journal(bencher: Bencher<'_, '_>, runtime: &str) {
    let dir = tempfile::tempdir().unwrap();
    let journal = FileJournal::open(dir.path().join("journal.jsonl")).unwrap();
    let executor = executor(Effect::Effectful).with_journal(Arc::new(journal));
    bench(bencher, runtime, &layers(), &executor);
}
