//! Agents that work for an agent.

mod approvals;
mod budgets;
mod calculator;
mod failures;
mod items;
mod orders;
mod results;
mod resumed;
mod shares;
mod trajectories;

use crate::keeping::{Keeping, calling, last_result};
use crate::script::task;
use foldback_agent::{Agent, Executor, React, Report, SubAgents, todo_write};
use foldback_core::ContextManager;
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{Tool, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// An agent that can delegate to agents that go step by step with these tools.
fn delegating(
    model: &Arc<ScriptedModel>,
    tools: Vec<Arc<dyn Tool>>,
    change: impl FnOnce(SubAgents) -> SubAgents,
) -> Agent {
    journaled(model, tools, Executor::new(Toolbox::default()), change)
}

fn journaled(
    model: &Arc<ScriptedModel>,
    tools: Vec<Arc<dyn Tool>>,
    executor: Executor,
    change: impl FnOnce(SubAgents) -> SubAgents,
) -> Agent {
    let theirs = executor.clone().with_toolbox(Toolbox::new(tools.clone()).unwrap());
    let template = Agent::new(model.clone(), theirs).with_system_prompt("You are careful.");
    let sub_agents = change(SubAgents::new(template).with_strategy(Arc::new(React::default())));
    let own = tools.into_iter().chain([sub_agents.delegate(), todo_write()]);
    Agent::new(model.clone(), executor.with_toolbox(Toolbox::new(own).unwrap()))
}

fn delegate(items: Value) -> Answer {
    calling("delegate", json!({ "items": items }))
}

async fn walk(agent: &Agent, context: &mut dyn ContextManager) -> Report {
    agent.run(&React::default(), context, &task("写报告")).await.unwrap()
}

/// Returns the result of the last call, as the model read it.
fn told(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let own = requests.iter().rfind(|request| request.session.as_deref() == Some("task"));
    last_result(own.unwrap())
}

fn told_json(model: &ScriptedModel) -> Value {
    serde_json::from_str(&told(model)).unwrap()
}

/// Answers after a number of seconds.
fn says(text: &str, seconds: u64) -> Answer {
    Answer::text(text).after(Duration::from_secs(seconds))
}

fn states(context: &Keeping) -> Vec<String> {
    let line = |item: &foldback_core::TodoItem| format!("{}={}", item.id, item.state);
    context.list().items().iter().map(line).collect()
}

fn foldback_id(name: &str) -> String {
    format!("task.{}", foldback_core::TodoId::from_foreign(name))
}
