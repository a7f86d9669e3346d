//! The runs of the agent as the inspector shows them: each record with its trajectory.

use super::folder::{RunFolder, Runs};
use super::record::{RunRecord, RunState};
use crate::error::CliError;
use foldback_agent::trajectory::{
    CallRecord, CallTime, ToolCallRecord, Trajectory, read_trajectories,
};
use foldback_core::TodoId;
use foldback_inspector::{Chosen, Run, RunSpent, RunStep, RunSubAgent, RunTurn};
use foldback_planner::{Action, Step, StepId, StepResult};
use foldback_tool::Data;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

/// The greatest number of characters of a result or of arguments.
const CHARS: usize = 4_000;

impl foldback_inspector::Runs for Runs {
    fn last(&self, todo: &TodoId, most: usize) -> Result<(usize, Vec<Run>), String> {
        let all = self.list().map_err(|error| error.sentence())?;
        // A run that cannot be read names no todo, so it belongs to no session's page.
        let own = all.into_iter().flatten().filter(|(_, record)| record.todo() == todo);
        let own: Vec<_> = own.collect();
        let (total, earlier) = (own.len(), own.len().saturating_sub(most));
        let last = own.into_iter().skip(earlier).map(|(folder, record)| run(&folder, record));
        Ok((total, last.collect()))
    }
}

fn run(folder: &RunFolder, record: RunRecord) -> Run {
    let (trajectory, unrecorded) = match trajectory(folder, &record) {
        Ok(Some(trajectory)) => (Some(trajectory), None),
        Ok(None) => {
            let why = match record.state {
                RunState::Running => "its steps are shown once it has ended",
                _ => "it ended before its steps were written down",
            };
            (None, Some(why.to_owned()))
        }
        Err(error) => (None, Some(error.sentence())),
    };
    let strategy = trajectory.as_ref().map(|trajectory| &trajectory.strategy);
    let account = record.account;
    Run {
        id: record.id.to_string(),
        state: record.state.name().to_owned(),
        task: beginning(record.task),
        task_seq: None,
        tools: trajectory.as_ref().map(|trajectory| {
            trajectory.situation.tools.iter().map(|tool| tool.name.clone()).collect()
        }),
        strategy: record.strategy,
        chosen: strategy.and_then(|record| {
            let because = record.because.clone()?;
            Some(Chosen { strategy: record.chosen.to_string(), because })
        }),
        degraded: strategy
            .and_then(|record| record.degraded.as_ref())
            .map(|degraded| degraded.detail.clone()),
        context: record.context,
        model: record.model,
        began: record.began.to_rfc3339(),
        changed: record.changed.to_rfc3339(),
        answer: record.answer.map(beginning),
        why: record.why.map(beginning),
        spent: RunSpent {
            calls: account.calls,
            input_tokens: account.usage.input,
            cached_tokens: account.usage.cached_read,
            output_tokens: account.usage.output,
            cost: account.cost,
            full_tokens: account.full,
        },
        total_us: trajectory.as_ref().map(|trajectory| trajectory.timing.total_us),
        turns: trajectory.as_ref().map(turns).unwrap_or_default(),
        unrecorded,
    }
}

/// The record of a run, which is written when it ends.
fn trajectory(folder: &RunFolder, record: &RunRecord) -> Result<Option<Trajectory>, CliError> {
    let path = folder.trajectory();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(CliError::Io {
                what: format!("{} could not be read", path.display()),
                source,
            });
        }
    };
    // A resumed run leaves its earlier record until it ends.
    if record.state == RunState::Running {
        return Ok(None);
    }
    let read = read_trajectories(BufReader::new(file)).next().transpose();
    read.map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))
}

/// What is known of a step that was called: its call, and when that was.
type Called<'t> = (&'t ToolCallRecord, CallTime);

fn turns(trajectory: &Trajectory) -> Vec<RunTurn> {
    let timed = trajectory.calls.iter().zip(&trajectory.timing.calls);
    let called: BTreeMap<(u32, StepId), Called<'_>> = timed
        .filter_map(|(call, time)| match call {
            CallRecord::Tool(call) => Some(((call.turn, call.step), (call, *time))),
            CallRecord::Model(_) => None,
        })
        .collect();
    let results = trajectory.results.iter();
    let results: BTreeMap<(u32, StepId), &StepResult> =
        results.map(|one| ((one.turn, one.step), &one.result)).collect();
    let mut turns: BTreeMap<u32, (RunTurn, BTreeMap<StepId, RunStep>)> = BTreeMap::new();
    let empty = |turn| {
        let (purposes, findings, steps) = (Vec::new(), Vec::new(), Vec::new());
        (RunTurn { turn, purposes, findings, steps }, BTreeMap::new())
    };
    for plan in &trajectory.plan {
        let (turn, steps) = turns.entry(plan.turn).or_insert_with(|| empty(plan.turn));
        turn.purposes.push(plan.purpose.to_string());
        turn.findings.extend(plan.findings.iter().cloned());
        // Another plan took the place of one with faults.
        for step in plan.steps.iter().filter(|_| plan.findings.is_empty()) {
            let place = (plan.turn, step.id);
            let (call, result) = (called.get(&place).copied(), results.get(&place).copied());
            // A later plan of the same turn repeats the steps that it keeps.
            steps.insert(step.id, run_step(step.id, Some(step), call, result));
        }
    }
    // Steps of a plan with faults may have begun while it was still being written.
    for ((turn, id), call) in &called {
        let (_, steps) = turns.entry(*turn).or_insert_with(|| empty(*turn));
        let result = results.get(&(*turn, *id)).copied();
        steps.entry(*id).or_insert_with(|| run_step(*id, None, Some(*call), result));
    }
    let whole = turns.into_values().map(|(turn, steps)| {
        let steps = steps.into_values().collect();
        RunTurn { steps, ..turn }
    });
    whole.collect()
}

fn run_step(
    id: StepId,
    planned: Option<&Step>,
    called: Option<Called<'_>>,
    result: Option<&StepResult>,
) -> RunStep {
    let (tool, arguments) = match (planned.map(|step| &step.action), called) {
        (_, Some((call, _))) => (Some(call.function.clone()), call.arguments.clone()),
        (Some(Action::Call { function, arguments }), None) => {
            (Some(function.clone()), arguments.to_string())
        }
        (Some(Action::Anchor { task }), None) => (None, task.clone()),
        (None, None) => (None, String::new()),
    };
    let (state, told) = match result {
        None => ("open", None),
        Some(StepResult::Success { data }) => {
            let state = if has_exit_failure(data) { "failed" } else { "done" };
            (state, Some(data.text.clone()))
        }
        Some(StepResult::Error { failure }) => ("failed", Some(failure.message.clone())),
        Some(StepResult::Skipped { because }) => {
            ("skipped", Some(format!("not run because of step {because}")))
        }
    };
    let after = planned.map(|step| step.after.iter().map(|id| id.0).collect());
    RunStep {
        step: id.0,
        tool,
        arguments: beginning(arguments),
        after: after.unwrap_or_default(),
        state,
        call_seq: None,
        result_seq: None,
        result: told.map(beginning),
        start_us: called.map(|(_, time)| time.start_us),
        end_us: called.map(|(_, time)| time.end_us),
        sub_agents: called.map(|(call, _)| sub_agents(call)).unwrap_or_default(),
    }
}

/// Whether a command ran and ended with another exit code than 0: its tool succeeded, and the call did not.
fn has_exit_failure(data: &Data) -> bool {
    let structured = data.structured.as_deref().and_then(|json| json.parse::<Value>().ok());
    structured.is_some_and(|json| json["exit_code"].as_i64().is_some_and(|code| code != 0))
}

fn sub_agents(call: &ToolCallRecord) -> Vec<RunSubAgent> {
    let seen = call.sub_agents.iter().map(|record| RunSubAgent {
        session: record.situation.todo.as_ref().map(ToString::to_string),
        task: beginning(record.situation.request.clone()),
        ended: record.outcome.stop.to_string(),
        answer: record.outcome.answer.clone().map(beginning),
        model_calls: record.model_calls().count() as u64,
        tool_calls: record.tool_calls().count() as u64,
    });
    seen.collect()
}

/// The beginning of a text that may be long.
fn beginning(text: String) -> String {
    match text.char_indices().nth(CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
