//! Flows: plans whose steps are worked on one after the other, each in a context of its own.

mod failures;
mod limits;
mod order;
mod plans;
mod results;

use crate::keeping::{Watching, calling};
use crate::script::{full, running, task};
use foldback_agent::{Agent, AgentEvent, Executor, Purpose, React, ReactSettings, Report};
use foldback_flow::{Flow, FlowSettings};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::{Tool, Toolbox};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model that answers each question by its name, without the name of the run: `flow/plan`,
/// `step-1.1/react/2`, `summary/summary`. A question that is not in the script is answered with its name.
pub(crate) fn by_name<const N: usize>(answers: [(&str, Answer); N]) -> Arc<ScriptedModel> {
    let answers = BTreeMap::from(answers.map(|(name, answer)| (name.to_owned(), answer)));
    let answers = Mutex::new(answers);
    Arc::new(ScriptedModel::answering(move |request| {
        let name = name(request);
        let answer = answers.lock().remove(&name);
        answer.unwrap_or_else(|| Answer::text(&format!("said {name}")))
    }))
}

/// Returns a question's name without that of the run.
pub(crate) fn name(request: &ChatRequest) -> String {
    let id = request.id.as_deref().unwrap_or_default();
    id.strip_prefix("run/").unwrap_or(id).to_owned()
}

/// Returns the names of the questions, in order.
pub(crate) fn names(model: &ScriptedModel) -> Vec<String> {
    model.requests().iter().map(name).collect()
}

/// Returns the request with a name; the last, if there are several.
#[track_caller]
fn request(model: &ScriptedModel, of: &str) -> ChatRequest {
    let found = model.requests().into_iter().rev().find(|request| name(request) == of);
    found.unwrap_or_else(|| panic!("nobody asked {of}: {:?}", names(model)))
}

/// Returns the text of a request, one message after the other.
fn page(request: &ChatRequest) -> String {
    request.messages.iter().map(|message| message.text().into_owned() + "\n").collect()
}

/// An answer that plans these steps.
pub(crate) fn planning(steps: &[&str]) -> Answer {
    calling(
        "planning",
        json!({"command": "create", "plan_id": "other", "title": "杭州", "steps": steps}),
    )
}

/// An answer that replans the rest.
fn update(steps: &[&str]) -> Answer {
    calling("planning", json!({"command": "update", "plan_id": "other", "steps": steps}))
}

/// How steps are worked on.
fn react() -> Arc<React> {
    let settings = ReactSettings::default().with_terminate(true).with_max_steps(4);
    Arc::new(React::new(settings))
}

/// Usual settings, and few turns a step.
fn few_turns() -> FlowSettings {
    FlowSettings::default().with_strategy(react())
}

fn agent(model: &Arc<ScriptedModel>, tools: Vec<Arc<dyn Tool>>) -> Agent {
    running(model, Executor::new(Toolbox::new(tools).unwrap()))
}

async fn run(agent: &Agent, flow: FlowSettings) -> Report {
    agent.run(&Flow::new(flow), full().as_mut(), &task("杭州两日游")).await.unwrap()
}

fn calls(report: &Report, purpose: Purpose) -> u64 {
    report.trajectory.tokens.get(&purpose).map_or(0, |spent| spent.calls)
}

/// Returns the notes.
fn notes(watching: &Watching) -> Vec<String> {
    let events = watching.0.lock();
    let notes = events.iter().filter_map(|(_, event)| match event {
        AgentEvent::Noted { text } => Some(text.clone()),
        _ => None,
    });
    notes.collect()
}
