//! The same plans under this executor and under another scheduler.

use super::clock::{milliseconds, wall};
use super::dag::{Dag, DagKind, DagStep, Dags};
use super::gold::GoldPlan;
use super::makespan::executor;
use super::result::{Peer, PeerRow};
use foldback_agent::RunOptions;
use foldback_bench::BenchError;
use foldback_bench::quantile;
use foldback_core::ToolDefinition;
use foldback_planner::{
    Action, FailurePolicy, Form, Piece, Plan, Reference, Step, StepId, StepResult, Template,
};
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, Toolbox};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Another scheduler's results on plans, as `peers/llmcompiler.py` writes them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PeerRun {
    /// The other scheduler's name.
    pub peer: String,
    /// The commit that was measured, if it is known.
    pub commit: Option<String>,
    /// Its result on each plan.
    pub rows: Vec<PeerTime>,
}

/// Another scheduler's result on a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PeerTime {
    /// The plan.
    pub name: String,
    /// The time that it took, in milliseconds.
    pub ms: f64,
    /// Whether it came to an end.
    pub ended: bool,
    /// The error that the scheduler raised, if any.
    pub error: Option<String>,
    /// The calls that were begun, by the number of their step.
    pub begun: BTreeMap<u32, BegunCall>,
}

/// A call that was begun.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BegunCall {
    /// The time, in milliseconds from the start.
    pub at_ms: f64,
    /// The arguments of its tool.
    pub arguments: Vec<String>,
}

/// The number of runs of a plan whose tools take no time.
const RUNS: usize = 31;

/// Runs the plans that another scheduler was given.
///
/// # Errors
/// When its figures belong to other plans, or a plan does not run.
pub(crate) fn beside(recorded: &[GoldPlan], peer: &PeerRun, seed: u64) -> Result<Peer, BenchError> {
    let mut rows = Vec::new();
    for dag in Dags::of(recorded, seed).dags {
        let Some(other) = peer.rows.iter().find(|row| row.name == dag.name) else {
            return Err(BenchError::Input(format!(
                "the figures of {} have no plan {:?}; they come from other files, another seed or an older \
                 version: write the plans again with --dags",
                peer.peer, dag.name
            )));
        };
        let own = run(&dag)?;
        rows.push(PeerRow {
            own_ms: own.ms,
            peer_ms: other.ended.then_some(other.ms),
            own_says: says(&dag, &own),
            peer_says: says(&dag, other),
            name: dag.name,
            kind: dag.kind,
            critical_path_ms: dag.critical_path_ms,
        });
    }
    Ok(Peer { name: peer.peer.clone(), commit: peer.commit.clone(), rows })
}

/// Returns a remark on a run.
fn says(dag: &Dag, ran: &PeerTime) -> String {
    let begun = |step: u32| ran.begun.get(&step);
    let raised = ran.error.as_ref().map_or_else(String::new, |error| format!(", then {error}"));
    let count = format!("{} of {} steps begun{raised}", ran.begun.len(), dag.steps.len());
    match dag.kind {
        DagKind::Overhead | DagKind::Recorded => String::new(),
        DagKind::Error | DagKind::Cycle => count,
        DagKind::Streamed => {
            begun(2).map_or_else(|| count, |call| format!("step 2 begun at {:.1} ms", call.at_ms))
        }
        DagKind::Substitution => {
            begun(3).map_or_else(|| count, |call| format!("given {:?}", call.arguments.join(", ")))
        }
    }
}

fn run(dag: &Dag) -> Result<PeerTime, BenchError> {
    let runs = if dag.kind == DagKind::Overhead { RUNS } else { 1 };
    let runtime = wall()?;
    let mut times = Vec::with_capacity(runs);
    let mut begun = BTreeMap::new();
    for _ in 0..runs {
        let (took, calls) = runtime.block_on(run_once(dag))?;
        times.push(milliseconds(took));
        begun = calls;
    }
    times.sort_by(f64::total_cmp);
    let ms = (quantile(&times, 0.5) * 1_000.0).round() / 1_000.0;
    Ok(PeerTime { name: dag.name.clone(), ms, ended: true, error: None, begun })
}

type Calls = BTreeMap<u32, BegunCall>;

/// Returns how long a plan took, and which calls were begun. If it is refused before anything runs, the
/// time is that of the refusal.
async fn run_once(dag: &Dag) -> Result<(Duration, Calls), BenchError> {
    let failed = |error: String| BenchError::Input(format!("{}: {error}", dag.name));
    let log = Arc::new(Mutex::new(Calls::new()));
    let start = Instant::now();
    let toolbox =
        Toolbox::new([tool(dag, &log, start)]).map_err(|error| failed(error.to_string()))?;
    let executor = executor(toolbox);
    let plan = plan(dag);
    if !plan.graph().cycles().is_empty() {
        return Ok((start.elapsed(), Calls::new()));
    }
    let begun = Instant::now();
    let outcome = match dag.kind {
        DagKind::Streamed => {
            let mut run =
                executor.open(RunOptions::default()).map_err(|error| failed(error.to_string()))?;
            for (step, written) in plan.steps.iter().zip(&dag.steps) {
                let due = begun + Duration::from_secs_f64(written.planned_ms / 1_000.0);
                loop {
                    tokio::select! {
                        biased;
                        () = sleep_until(due) => break,
                        Some(_) = run.next() => {}
                    }
                }
                run.extend(std::slice::from_ref(step))
                    .map_err(|error| failed(error.to_string()))?;
            }
            run.seal().map_err(|error| failed(error.to_string()))?;
            run.finish().await
        }
        _ => executor.run(&plan, RunOptions::default()).await,
    };
    let took = begun.elapsed();
    let outcome = outcome.map_err(|error| failed(error.to_string()))?;
    let wrong = |step: &DagStep| {
        let result = outcome.results.get(&StepId(step.id));
        matches!(result, Some(StepResult::Success { .. })) == step.fails
    };
    if dag.kind != DagKind::Error && dag.steps.iter().any(wrong) {
        return Err(failed("a step failed".to_owned()));
    }
    let calls = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((took, calls))
}

/// Returns the plan; `$2` in a step's arguments is a reference.
fn plan(dag: &Dag) -> Plan {
    let ids = |after: &[u32]| after.iter().copied().map(StepId).collect();
    let steps = dag.steps.iter().map(|step| {
        let arguments = step.arguments.iter().map(|text| template(text, &step.after));
        let arguments = Template::Object(vec![
            ("id".to_owned(), Template::Literal(step.id.to_string())),
            ("arguments".to_owned(), Template::Array(arguments.collect())),
        ]);
        let action = Action::Call { function: "work".to_owned(), arguments };
        let on_failure = FailurePolicy::default();
        Step { id: StepId(step.id), action, after: ids(&step.after), on_failure }
    });
    Plan { form: Form::OnePlan, steps: steps.collect() }
}

fn template(text: &str, after: &[u32]) -> Template {
    let Some((front, rest)) = text.split_once('$') else { return Template::Text(text.to_owned()) };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let behind = rest.get(digits.len()..).unwrap_or_default();
    let Some(step) = digits.parse().ok().filter(|step| after.contains(step)) else {
        return Template::Text(text.to_owned());
    };
    let reference = Reference { step: StepId(step), path: Vec::new() };
    if front.is_empty() && behind.is_empty() {
        return Template::Whole(reference);
    }
    let text = |text: &str| (!text.is_empty()).then(|| Piece::Text(text.to_owned()));
    let pieces = [text(front), Some(Piece::Reference(reference)), text(behind)];
    Template::Mixed(pieces.into_iter().flatten().collect())
}

/// The one tool of all steps.
fn tool(dag: &Dag, log: &Arc<Mutex<Calls>>, start: Instant) -> Arc<dyn Tool> {
    let mut spec = ToolSpec::new(ToolDefinition {
        name: "work".to_owned(),
        description: "Does the work of a step.".to_owned(),
        parameters: json!({ "type": "object" }).to_string(),
    });
    spec.effect = Effect::ReadOnly;
    let steps: BTreeMap<u32, DagStep> =
        dag.steps.iter().map(|step| (step.id, step.clone())).collect();
    let (steps, log) = (Arc::new(steps), Arc::clone(log));
    Arc::new(FunctionTool::new(spec, move |arguments, _| {
        let (steps, log) = (Arc::clone(&steps), Arc::clone(&log));
        async move {
            let at_ms = milliseconds(start.elapsed());
            let wrong = || ToolError::arguments(format!("expected id and arguments: {arguments}"));
            let given: Value = serde_json::from_str(&arguments).map_err(|_| wrong())?;
            let id = given.get("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
            let step = id.and_then(|id| steps.get(&id)).ok_or_else(wrong)?;
            let texts = given.get("arguments").and_then(Value::as_array).ok_or_else(wrong)?;
            let texts = texts.iter().map(|text| text.as_str().unwrap_or_default().to_owned());
            let call = BegunCall { at_ms, arguments: texts.collect() };
            log.lock().unwrap_or_else(PoisonError::into_inner).insert(step.id, call);
            if step.ms > 0.0 {
                sleep(Duration::from_secs_f64(step.ms / 1_000.0)).await;
            }
            match step.fails {
                true => Err(ToolError::permanent("the tool failed")),
                false => Ok(ToolOutput::text(step.result.clone())),
            }
        }
    }))
}
