//! Plans in the forms that models write, checked and run on the paused clock, with tools that take
//! time.

use super::clock::{milliseconds, paused};
use super::closed_form::critical_path;
use super::dag::tool_times;
use super::form::{checked, written};
use super::gold::GoldPlan;
use super::result::{Forms, Placeholders, PlanFigures, Way};
use super::stub::{Filling, World};
use foldback_agent::{Executor, Outcome, RunOptions, Settings};
use foldback_bench::BenchError;
use foldback_planner::{Form, Plan, StepId, StepResult};
use foldback_tool::Toolbox;
use serde_json::Value;
use std::time::Duration;

/// The forms that express dependences.
pub(crate) const FORMS: [Form; 2] = [Form::OnePlan, Form::ExecuteTools];

/// The time after its critical path at which an unfinished run is taken to hang.
pub(crate) const BOUND: Duration = Duration::from_secs(3_600);

/// The outcome of a plan in one form.
pub(crate) struct Ran {
    pub(crate) elapsed: Duration,
    pub(crate) wrong_arguments: usize,
    pub(crate) failed_steps: usize,
}

/// Runs a plan in each form that can express it.
///
/// # Errors
/// When a correct plan is refused, or does not end.
pub(crate) fn run_forms(gold: &GoldPlan, seed: u64) -> Result<PlanFigures, BenchError> {
    let waits = gold.waits();
    let times = tool_times(&gold.id, waits.len(), seed);
    let times: Vec<Duration> =
        times.into_iter().map(|ms| Duration::from_secs_f64(ms / 1_000.0)).collect();
    let mut forms = Forms::default();
    let (mut makespan, mut longest, mut serial) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for form in FORMS {
        let world = World::new(gold, &times, Filling::Values);
        let Some(ran) = run(gold, &world, form)? else {
            forms.only_one_plan += 1;
            continue;
        };
        match form {
            Form::OnePlan => forms.one_plan += 1,
            _ => forms.execute_tools += 1,
        }
        forms.wrong_arguments += ran.wrong_arguments;
        forms.failed_steps += ran.failed_steps;
        let taken = world.times();
        longest = critical_path(&waits, |at| taken.get(at).copied().unwrap_or_default());
        serial = taken.iter().sum();
        makespan = makespan.max(ran.elapsed);
    }
    Ok(PlanFigures {
        set: gold.set,
        id: gold.id.clone(),
        steps: waits.len(),
        levels: critical_path(&waits, |_| 1_u64) as usize,
        critical_path_ms: milliseconds(longest),
        serial_ms: milliseconds(serial),
        makespan_ms: milliseconds(makespan),
        forms,
        react: Way::default(),
        one_plan: Way::default(),
    })
}

/// Runs a plan, in each form, with tools whose answers look like references and like the end of a
/// call.
///
/// # Errors
/// When a correct plan is refused, or does not end.
pub(crate) fn run_placeholders(gold: &GoldPlan) -> Result<Placeholders, BenchError> {
    let mut placeholders = Placeholders::default();
    for form in FORMS {
        let world = World::new(gold, &[], Filling::Placeholders);
        if let Some(ran) = run(gold, &world, form)? {
            placeholders.tried += 1;
            placeholders.inert += usize::from(ran.wrong_arguments + ran.failed_steps == 0);
        }
    }
    Ok(placeholders)
}

/// Runs a plan as a model would write it; `None` if the form cannot express it.
fn run(gold: &GoldPlan, world: &World, form: Form) -> Result<Option<Ran>, BenchError> {
    let name = format!("{} as {form:?}", gold.id);
    let refused = |what: &str| BenchError::Input(format!("{name}: {what}"));
    let toolbox = Toolbox::new(world.tools()).map_err(|error| refused(&error.to_string()))?;
    let Some(written) = written(&gold.plan, form, &toolbox) else { return Ok(None) };
    let plan =
        checked(&written.text, form, &toolbox).map_err(|refusal| refused(&refusal.sentences()))?;
    let outcome = execute(&executor(toolbox), &plan)?.ok_or_else(|| refused("it did not end"))?;
    Ok(Some(Ran {
        elapsed: outcome.elapsed,
        wrong_arguments: wrong_arguments(&outcome, world, &written.order),
        failed_steps: failed_steps(&outcome),
    }))
}

/// Returns an executor without limits on concurrency.
pub(crate) fn executor(toolbox: Toolbox) -> Executor {
    let settings = Settings::default().with_max_parallel(usize::MAX >> 4).with_timeout(None);
    Executor::new(toolbox).with_settings(settings)
}

/// Runs a plan on the paused clock; `None` if it does not end within [`BOUND`].
pub(crate) fn execute(executor: &Executor, plan: &Plan) -> Result<Option<Outcome>, BenchError> {
    let ran = paused()?.block_on(async {
        tokio::time::timeout(BOUND, executor.run(plan, RunOptions::default())).await
    });
    match ran {
        Ok(Ok(outcome)) => Ok(Some(outcome)),
        Ok(Err(error)) => Err(BenchError::Input(error.to_string())),
        Err(_) => Ok(None),
    }
}

/// Returns the steps whose tool was given other arguments than it should have been, or none. `order`
/// gives the step of each call.
fn wrong_arguments(outcome: &Outcome, world: &World, order: &[StepId]) -> usize {
    let is_right = |(number, step): (u32, &StepId)| {
        let expected = world.expected().get((step.0 as usize).saturating_sub(1));
        let call = outcome.calls.get(&StepId(number));
        let given = call.and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok());
        given.is_some() && given.as_ref() == expected
    };
    world.expected().len() - (1..).zip(order).filter(|call| is_right(*call)).count()
}

pub(crate) fn failed_steps(outcome: &Outcome) -> usize {
    let failed = |result: &&StepResult| !matches!(result, StepResult::Success { .. });
    outcome.results.values().filter(failed).count()
}
