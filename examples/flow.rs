//! A flow: a plan whose steps are worked on one after the other, each by an agent of its own.
//!
//! ```text
//! cargo run -p foldback-flow --example flow
//! ```
//!
//! Three changes are to be released. One agent reads, another checks; each step begins with an empty
//! conversation and sees the plan and what came of the steps before it. The check cannot be passed, so the
//! rest of the plan is made anew. A script stands in the model's place, and acts on what it is shown; the
//! tools look into small tables.

use foldback_agent::{Agent, AgentEvent, Executor, Observer, Task};
use foldback_baselines::Full;
use foldback_core::{Estimate, ItemState, TodoId, TodoList, ToolCall, ToolDefinition};
use foldback_flow::{Flow, FlowSettings, StepExecutor};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_planner::StepId;
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, Toolbox};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

const REQUEST: &str = "Write the release notes of version 1.4.";

/// What changed, and which test covers it.
const CHANGES: [(&str, Option<&str>); 3] = [
    ("Search finds 中文 words", Some("tests/search_cjk.rs")),
    ("Import of old files", None),
    ("Faster start", Some("benches/start.rs")),
];

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    println!("(a script stands in the model's place; the tools look into small tables)\n");
    let model = Arc::new(ScriptedModel::answering(script));
    let agent = |tool| -> Result<Agent, Box<dyn Error>> {
        Ok(Agent::new(model.clone(), Executor::new(Toolbox::new([tool])?)))
    };
    let flow = FlowSettings::default()
        .with_executors(vec![
            StepExecutor::new("reader", "reads what changed, and writes", agent(changes())?),
            StepExecutor::new("tester", "finds the test of a change", agent(find_test())?),
        ])
        .with_max_retries(1);
    let agent = Agent::new(model.clone(), Executor::new(Toolbox::default()));

    let mut context = Full.start(TodoId::new("release")?, Arc::new(Estimate));
    let mut task = Task::new("release", REQUEST);
    task.observer = Some(Arc::new(Lines::default()));
    let report = agent.run(&Flow::new(flow), context.as_mut(), &task).await?;

    println!("\nanswer:\n{}", report.answer().unwrap_or("none"));
    let calls = report.trajectory.tool_calls().count();
    println!("\nthe model was asked {} times, and {calls} tools were called", model.calls());
    Ok(())
}

/// Prints the plan, and then what changes: a step that is begun or changed, its calls, how it ended.
#[derive(Default)]
struct Lines {
    list: Mutex<TodoList>,
    /// What each call is about, by its turn and its step.
    calls: Mutex<BTreeMap<(u32, StepId), String>>,
}

impl Observer for Lines {
    fn observe(&self, todo: &TodoId, event: &AgentEvent) {
        match event {
            AgentEvent::Todos { list } if todo.as_str() == "release" => self.plan(list),
            AgentEvent::CallBegan { turn, step, arguments, .. } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                let about = arguments["change"].as_str().unwrap_or_default().to_owned();
                self.calls.lock().insert((*turn, *step), about);
            }
            AgentEvent::CallEnded { turn, step, tool, excerpt, .. } => {
                let about = self.calls.lock().remove(&(*turn, *step)).unwrap_or_default();
                println!("  {} -> {}", format!("{tool} {about}").trim(), line(excerpt));
            }
            AgentEvent::HandedBack { state, result, .. } => {
                println!("  {state}: {}", line(result));
            }
            _ => {}
        }
    }
}

impl Lines {
    fn plan(&self, list: &TodoList) {
        let before = std::mem::replace(&mut *self.list.lock(), list.clone());
        let (old, new) = (before.items(), list.items());
        let is_new = |at: usize| old.get(at).is_none_or(|known| known.title != new[at].title);
        let added: Vec<usize> = (0..new.len()).filter(|at| is_new(*at)).collect();
        if !added.is_empty() {
            println!(
                "{}",
                if old.is_empty() { "plan:" } else { "\nthe rest of the plan, made anew:" }
            );
            added.iter().for_each(|at| println!("  {at} {}", new[*at].title));
        }
        for (at, (known, item)) in old.iter().zip(new).enumerate() {
            if item.state == ItemState::InProgress && known.state != item.state {
                let again = if known.state == ItemState::Failed { ", once more" } else { "" };
                println!("\nstep {at}{again}: {}", item.title);
            }
        }
    }
}

/// A text on one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a model would say. It knows nothing but the request.
fn script(request: &ChatRequest) -> Answer {
    let shown: Vec<String> =
        request.messages.iter().map(|message| message.text().into_owned()).collect();
    let last = shown.last().map_or("", String::as_str);
    let says = |words: &str| shown.iter().any(|text| text.contains(words));
    if request.tools.iter().any(|tool| tool.name == "planning") {
        let steps = match says("cannot be done") {
            true => json!(["[READER] Write the notes of the changes that have a test"]),
            false => json!([
                "[READER] List the changes",
                "[TESTER] Check that each change has a test",
                "[READER] Write the notes"
            ]),
        };
        let plan = json!({"command": "create", "title": "Release notes of 1.4", "steps": steps});
        return ToolCall::new("plan", "planning", &plan.to_string()).into();
    }
    // What the steps before it found is all that a step knows.
    let changes: Vec<&str> =
        shown[0].lines().filter_map(|line| line.split_once("* ").map(|(_, name)| name)).collect();
    let has_looked = request.messages.iter().any(|message| message.tool_call_id().is_some());
    match (says("working on step 0"), says("working on step 1"), says("working on step 2")) {
        (true, ..) if !has_looked => ToolCall::new("c", "changes", "{}").into(),
        (true, ..) => Answer::text(&format!("The changes:\n{last}")),
        (_, true, _) if !has_looked => {
            let call = |(n, name): (usize, &&str)| {
                let arguments = json!({"change": name}).to_string();
                ToolCall::new(&format!("c{n}"), "find_test", &arguments)
            };
            changes.iter().enumerate().map(call).collect::<Vec<_>>().into()
        }
        (_, true, _) => {
            let untested = changes.iter().zip(&shown[2..]).filter(|(_, test)| *test == "no test");
            let names: Vec<&str> = untested.map(|(name, _)| *name).collect();
            Answer::text(&format!("BLOCKED: no test for: {}", names.join(", ")))
        }
        (_, _, true) => {
            let is_tested = |name: &&&str| !says(&format!("no test for: {name}"));
            let notes: Vec<&str> = changes.iter().filter(is_tested).copied().collect();
            Answer::text(&format!("Version 1.4: {}.", notes.join("; ")))
        }
        _ => {
            let notes = last.lines().find_map(|line| line.split_once("Version 1.4: "));
            let notes = notes.map_or("nothing", |(_, notes)| notes);
            Answer::text(&format!("Version 1.4: {notes} What has no test yet was left out."))
        }
    }
}

fn changes() -> Arc<dyn Tool> {
    tool("changes", "What changed since the last version.", |_| {
        CHANGES.map(|(name, _)| format!("* {name}")).join("\n")
    })
}

fn find_test() -> Arc<dyn Tool> {
    tool("find_test", "Finds the test of a change.", |arguments| {
        let change = arguments.get("change").and_then(Value::as_str);
        let found = CHANGES.iter().find(|(name, _)| Some(*name) == change);
        found.and_then(|(_, test)| *test).unwrap_or("no test").to_owned()
    })
}

/// A tool that looks something up.
fn tool(
    name: &str,
    description: &str,
    answer: impl Fn(Value) -> String + Clone + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: r#"{"type": "object"}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::ReadOnly);
    Arc::new(FunctionTool::new(spec, move |arguments, _context| {
        let answer = answer.clone();
        async move {
            let arguments = serde_json::from_str(&arguments)
                .map_err(|error| ToolError::arguments(error.to_string()))?;
            Ok(ToolOutput::text(answer(arguments)))
        }
    }))
}
