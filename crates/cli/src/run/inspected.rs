//! The runs of the agent as the inspector shows them: each record with its trajectory.

use super::folder::{RunFolder, Runs};
use super::record::{RunRecord, RunState};
use crate::error::CliError;
use foldback_agent::trajectory::{
    CallRecord, PlanRecord, ToolCallRecord, Trajectory, read_trajectories,
};
use foldback_core::TodoId;
use foldback_inspector::{Chosen, Run, RunSpent, RunStep, RunSubAgent, RunTurn};
use foldback_planner::{Action, Step, StepResult};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

/// The greatest number of characters of a result or of arguments.
const CHARS: usize = 4_000;

impl foldback_inspector::Runs for Runs {
    fn of(&self, todo: &TodoId) -> Result<Vec<Run>, String> {
        let all = self.list().map_err(|error| error.sentence())?;
        // A run that cannot be read names no todo, so it belongs to no session's page.
        let own = all.into_iter().flatten().filter(|(_, record)| record.todo() == todo);
        Ok(own.map(|(folder, record)| run(&folder, record)).collect())
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
        task: record.task,
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
        answer: record.answer,
        why: record.why,
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

fn turns(trajectory: &Trajectory) -> Vec<RunTurn> {
    let mut turns: BTreeMap<u32, RunTurn> = BTreeMap::new();
    for plan in &trajectory.plan {
        let turn = turns.entry(plan.turn).or_insert_with(|| RunTurn {
            turn: plan.turn,
            purposes: Vec::new(),
            findings: Vec::new(),
            steps: Vec::new(),
        });
        turn.purposes.push(plan.purpose.to_string());
        turn.findings.extend(plan.findings.iter().cloned());
        // A plan with faults was not run: another took its place.
        if plan.findings.is_empty() {
            add_steps(turn, plan, trajectory);
        }
    }
    turns.into_values().collect()
}

/// Adds the steps of a plan. A later plan of the same turn repeats the steps that it keeps.
fn add_steps(turn: &mut RunTurn, plan: &PlanRecord, trajectory: &Trajectory) {
    for step in &plan.steps {
        let seen = run_step(step, plan.turn, trajectory);
        match turn.steps.iter_mut().find(|known| known.step == seen.step) {
            Some(known) => *known = seen,
            None => turn.steps.push(seen),
        }
    }
}

fn run_step(step: &Step, turn: u32, trajectory: &Trajectory) -> RunStep {
    let call = trajectory.calls.iter().zip(&trajectory.timing.calls).find_map(|(call, time)| {
        let CallRecord::Tool(call) = call else { return None };
        ((call.turn, call.step) == (turn, step.id)).then_some((call, *time))
    });
    let (tool, planned) = match &step.action {
        Action::Call { function, arguments } => (Some(function.clone()), arguments.to_string()),
        Action::Anchor { task } => (None, task.clone()),
    };
    let result = trajectory.result(turn, step.id);
    let (state, told) = match result {
        None => ("open", None),
        Some(StepResult::Success { data }) => ("done", Some(data.text.clone())),
        Some(StepResult::Error { failure }) => ("failed", Some(failure.message.clone())),
        Some(StepResult::Skipped { because }) => {
            ("skipped", Some(format!("not run because of step {because}")))
        }
    };
    let arguments = call.map_or(planned, |(call, _)| call.arguments.clone());
    RunStep {
        step: step.id.0,
        tool,
        arguments: beginning(arguments),
        after: step.after.iter().map(|id| id.0).collect(),
        state,
        result: told.map(beginning),
        start_us: call.map(|(_, time)| time.start_us),
        end_us: call.map(|(_, time)| time.end_us),
        sub_agents: call.map(|(call, _)| sub_agents(call)).unwrap_or_default(),
    }
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
