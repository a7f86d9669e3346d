//! The cost of scheduling a plan: a whole run, from the plan's steps to the end of the last one.
//!
//! `cargo bench -p foldback-planner --bench schedule`. Times are of a whole run; divide by the number
//! in the name for the time per step. LLMCompiler's scheduler polls every 10 ms: a chain of 50 steps
//! that take no time costs it 524 ms.
//!
//! P13 asks for at most 5 ms for a graph of 100 steps and 50 us for a call; `dags` with 100 measures
//! the scheduler's part of it.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use divan::Bencher;
use divan::counter::ItemsCount;
use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, Catalog, FailurePolicy, Form, PathSegment, Plan, Reference, Schedule, Step, StepId,
    Template, Validator,
};
use foldback_tool::ToolSpec;

fn main() {
    divan::main();
}

/// Returns a plan in which step `i` waits for `after(i)`.
fn plan(count: u32, after: impl Fn(u32) -> Vec<u32>) -> Plan {
    let steps = (1..=count).map(|id| {
        let after: Vec<StepId> = after(id).into_iter().map(StepId).collect();
        let path = vec![PathSegment::Key("结果".to_owned()), PathSegment::Index(0)];
        let refer = |&step: &StepId| Template::Whole(Reference { step, path: path.clone() });
        let members = after.first().map(|step| ("of".to_owned(), refer(step)));
        Step {
            id: StepId(id),
            action: Action::Call {
                function: "search".to_owned(),
                arguments: Template::Object(members.into_iter().collect()),
            },
            after,
            on_failure: FailurePolicy::default(),
        }
    });
    Plan { form: Form::OnePlan, steps: steps.collect() }
}

fn chain(count: u32) -> Plan {
    plan(count, |id| if id > 1 { vec![id - 1] } else { Vec::new() })
}

fn independent(count: u32) -> Plan {
    plan(count, |_| Vec::new())
}

/// Makes each step wait for up to three earlier steps, spread by a fixed rule.
fn dag(count: u32) -> Plan {
    plan(count, |id| {
        let mut after: Vec<u32> =
            [id / 2, id * 2 / 3, id.saturating_sub(3)].into_iter().filter(|on| *on > 0).collect();
        after.retain(|on| *on < id);
        after.sort_unstable();
        after.dedup();
        after
    })
}

/// Runs a plan whose steps take no time, starting all ready steps at once.
fn run(plan: &Plan) -> usize {
    let mut schedule = Schedule::new(plan).unwrap();
    let mut running = std::collections::VecDeque::new();
    while !schedule.is_done() {
        while let Some(id) = schedule.next_ready() {
            schedule.start(id).unwrap();
            running.push_back(id);
        }
        schedule.finish(running.pop_front().unwrap()).unwrap();
    }
    schedule.len()
}

#[divan::bench(args = [50, 1_000, 100_000])]
fn chains(bencher: Bencher<'_, '_>, count: u32) {
    bench(bencher, &chain(count));
}

#[divan::bench(args = [100, 1_000, 100_000])]
fn independents(bencher: Bencher<'_, '_>, count: u32) {
    bench(bencher, &independent(count));
}

#[divan::bench(args = [100, 1_000, 100_000])]
fn dags(bencher: Bencher<'_, '_>, count: u32) {
    bench(bencher, &dag(count));
}

fn bench(bencher: Bencher<'_, '_>, plan: &Plan) {
    bencher.counter(ItemsCount::new(plan.steps.len())).bench(|| run(plan));
}

/// One failure at the root: every other step is skipped.
#[divan::bench(args = [100, 100_000])]
fn skips(bencher: Bencher<'_, '_>, count: u32) {
    let plan = chain(count);
    bencher.counter(ItemsCount::new(plan.steps.len())).bench(|| {
        let mut schedule = Schedule::new(&plan).unwrap();
        schedule.start(StepId(1)).unwrap();
        schedule.fail(StepId(1)).unwrap().len()
    });
}

/// Steps that arrive one by one, while the plan is being written.
#[divan::bench(args = [100, 100_000])]
fn streams(bencher: Bencher<'_, '_>, count: u32) {
    let plan = dag(count);
    bencher.counter(ItemsCount::new(plan.steps.len())).bench(|| {
        let mut schedule = Schedule::open();
        for step in &plan.steps {
            schedule.extend([step]).unwrap();
        }
        schedule.seal().unwrap();
        schedule.len()
    });
}

/// Validation before a plan runs, with schemas of arguments and results.
#[divan::bench(args = [10, 100, 1_000])]
fn validations(bencher: Bencher<'_, '_>, count: u32) {
    let plan = dag(count);
    let mut tool = ToolSpec::new(ToolDefinition {
        name: "search".to_owned(),
        description: String::new(),
        parameters: r#"{"type": "object", "properties": {"of": {"type": "string"}}}"#.to_owned(),
    });
    tool.output = Some(
        r#"{"properties": {"结果": {"type": "array", "items": {"type": "string"}}}}"#.to_owned(),
    );
    let catalog: Catalog = [tool].into_iter().collect();
    bencher.counter(ItemsCount::new(plan.steps.len())).with_inputs(|| plan.clone()).bench_values(
        |mut plan| {
            let findings = Validator::new(&catalog).plan(&mut plan);
            assert!(findings.is_empty());
        },
    );
}
