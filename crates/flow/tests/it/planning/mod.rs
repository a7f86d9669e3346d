//! The planning tool, compared with the one that it is modelled on.

mod plans;
mod tool;

use foldback_flow::{PlanCommand, PlanningTool, Plans};
use foldback_tool::{CallContext, Tool};
use serde_json::{Value, json};

/// The reference's answers to a session of commands, one per line, recorded by running its own code
/// (FoundationAgents/OpenManus, `app/tool/planning.py`) over these commands.
const SESSION: &str = include_str!("session.jsonl");

/// Its percentages of 0 to all steps done, for plans of 16, 48, 80 and 160 steps, which include halves.
const PERCENTAGES: &str = include_str!("percentages.txt");

#[derive(serde::Deserialize)]
struct Exchange {
    arguments: Value,
    output: Option<String>,
    error: Option<String>,
}

/// The commands of the session, with what is answered.
fn session() -> Vec<Exchange> {
    SESSION.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn command(arguments: Value) -> PlanCommand {
    PlanCommand::from_json(&arguments.to_string()).unwrap()
}

fn create(id: &str, steps: &[&str]) -> PlanCommand {
    command(json!({"command": "create", "plan_id": id, "title": "T", "steps": steps}))
}

/// The error of a command.
#[track_caller]
fn refused(plans: &mut Plans, arguments: Value) -> String {
    let before = plans.clone();
    let error = plans.apply(&command(arguments)).unwrap_err();
    assert_eq!(*plans, before, "a refused command changes nothing");
    error.to_string()
}

async fn call(tool: &PlanningTool, key: &str, arguments: Value) -> Result<String, String> {
    let context = CallContext { idempotency_key: key.to_owned(), ..CallContext::default() };
    let answer = tool.call(&arguments.to_string(), &context).await;
    answer.map(|output| output.data.text).map_err(|error| error.message)
}
