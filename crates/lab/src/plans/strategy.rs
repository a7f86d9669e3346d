//! The agent's two ways of doing a task, run with scripted models that know the right calls.

use super::clock::paused;
use super::closed_form::MODEL_TIMES;
use super::form::written;
use super::gold::{GoldPlan, call_of};
use super::makespan::executor;
use super::result::Way;
use super::stub::{Filling, World};
use foldback_agent::{Agent, OnePlan, React, Task};
use foldback_baselines::baseline;
use foldback_bench::{BenchError, Counts};
use foldback_core::{Estimate, TodoId, ToolCall};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_planner::Form;
use foldback_tool::Toolbox;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time of a tool on the paused clock.
const TOOL: Duration = Duration::from_secs(1);
/// The agent's system prompt, in both ways.
const SYSTEM_PROMPT: &str = "You are a helpful assistant. Use the tools to do what the user asks.";
/// The scripted model's final answer.
const ANSWER: &str = "Done.";

/// A way of doing a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Working step by step.
    React,
    /// One plan.
    OnePlan,
}

/// Does the task of a plan in one way, for each of [`MODEL_TIMES`].
///
/// # Errors
/// When the agent does not reach the answer, or asks the model for something else.
pub(crate) fn run_strategy(gold: &GoldPlan, strategy: Strategy) -> Result<Way, BenchError> {
    let mut way = Way::default();
    for l in MODEL_TIMES {
        let (elapsed, requests) = run(gold, strategy, TOOL.mul_f64(l))?;
        way.times.push(elapsed.as_secs_f64() / TOOL.as_secs_f64());
        if way.llm_calls == 0 {
            way.llm_calls = requests.len();
            let mut counts = Counts::default();
            way.tokens = requests.iter().map(|request| tokens(request, &mut counts)).sum();
        }
    }
    Ok(way)
}

/// Returns the tokens of a request, including its tools.
fn tokens(request: &ChatRequest, counts: &mut Counts) -> u64 {
    let messages: u64 = request.messages.iter().map(|message| counts.shared(message)).sum();
    messages + counts.tools(&request.tools)
}

/// Returns the time on the paused clock, and what the model was asked.
fn run(
    gold: &GoldPlan,
    strategy: Strategy,
    model_time: Duration,
) -> Result<(Duration, Vec<ChatRequest>), BenchError> {
    let failed = |what: String| BenchError::Input(format!("{}, {strategy:?}: {what}", gold.id));
    let times = vec![TOOL; gold.plan.steps.len()];
    let world = World::new(gold, &times, Filling::Values);
    let toolbox = Toolbox::new(world.tools()).map_err(|error| failed(error.to_string()))?;
    let mut answers = match strategy {
        Strategy::React => calls(gold, &world),
        Strategy::OnePlan => {
            let plan = written(&gold.plan, Form::OnePlan, &toolbox);
            let plan = plan.ok_or_else(|| failed("OnePlan cannot express it".to_owned()))?;
            vec![Answer::text(&plan.text)]
        }
    };
    answers.push(Answer::text(ANSWER));
    let answers = answers.into_iter().map(|answer| answer.after(model_time));
    let model = Arc::new(ScriptedModel::new(answers));
    let agent = Agent::new(Arc::clone(&model) as _, executor(toolbox));
    let agent = agent.with_system_prompt(SYSTEM_PROMPT);
    let way: &dyn foldback_agent::Strategy = match strategy {
        Strategy::React => &React::default(),
        Strategy::OnePlan => &OnePlan::default(),
    };
    let full = baseline("full").ok_or_else(|| failed("there is no policy `full`".to_owned()))?;
    let mut context = full.start(TodoId::from_foreign(&gold.id), Arc::new(Estimate));
    let task = Task::new(&gold.id, &gold.task);
    let (report, elapsed) = paused()?.block_on(async {
        let start = Instant::now();
        let report = agent.run(way, &mut *context, &task).await;
        (report, start.elapsed())
    });
    let report = report.map_err(|error| failed(error.to_string()))?;
    let requests = model.requests();
    if report.answer() != Some(ANSWER) || model.left() > 0 {
        return Err(failed(format!("unexpected outcome: {:?}", report.trajectory.outcome)));
    }
    let mut begun: Vec<_> = world.begun().into_iter().map(|call| call.step).collect();
    begun.sort_unstable();
    if !begun.into_iter().eq((0..gold.plan.steps.len()).map(Some)) {
        let last = requests.last().map(|request| format!("{:?}", request.messages));
        return Err(failed(format!("not every call was made once: {}", last.unwrap_or_default())));
    }
    Ok((elapsed, requests))
}

/// Returns a call with each answer, in the order of the plan.
fn calls(gold: &GoldPlan, world: &World) -> Vec<Answer> {
    let steps = gold.plan.steps.iter().filter_map(call_of).zip(world.expected());
    let call = |(at, ((function, _), arguments)): (usize, ((&str, _), &serde_json::Value))| {
        ToolCall::new(&format!("call_{}", at + 1), function, &arguments.to_string()).into()
    };
    steps.enumerate().map(call).collect()
}
