//! An agent in a program of your own: the one of `foldback run`, with a tool that the program adds.
//!
//! ```text
//! cargo run -p foldback-reference-agent --example own_agent
//! ```
//!
//! It learns something, much happens, and then it needs what it learnt, which is no longer in view: it
//! searches its memory. A script stands in the model's place; the tools and the memory are real.

use foldback_reference_agent::ReferenceAgent;
use foldback_reference_agent::agent::{AgentEvent, Observer, Task};
use foldback_reference_agent::foldback::core::{Message, TodoId, ToolCall, ToolDefinition};
use foldback_reference_agent::foldback::{Memory, Options};
use foldback_reference_agent::llm::{Answer, ScriptedModel};
use foldback_reference_agent::tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec};
use foldback_reference_agent::tools::Permissions;
use std::error::Error;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let agent = ReferenceAgent::new(Arc::new(script()))
        .in_workspace(Permissions::in_workspace(folder.path()))
        .with_tools([tide()])
        .with_strategy_named("react")
        .build()?;
    let memory = Memory::in_memory(Options::default())?;
    let todo = TodoId::new("tides")?;
    let mut context = memory.session(&todo)?;

    let task = Task::new("told", "Keep the tables of high water.");
    agent.run(&mut context, &task).await?;
    // What the program itself has to say is recorded like anything else.
    let correction = "The gauge at Holm reads low since April: add 37 mm to its levels.";
    context.record(Message::user(correction))?;
    context.record(Message::assistant("Noted."))?;
    for hour in 0..48 {
        let level = 900 + 25 * hour;
        context.record(Message::user(&format!("Ness, hour {hour}: {level} mm.")))?;
        context.record(Message::assistant("Noted."))?;
    }

    let request = "Write the corrected high water of Holm to holm.md.";
    let task = Task::new("asked", request).with_observer(Arc::new(Lines));
    println!("{request}");
    let from = memory.len(&todo)?;
    let report = agent.run(&mut context, &task).await?;
    println!("=> {}", report.answer().unwrap_or("(no answer)"));
    for message in memory.messages(&todo, from..memory.len(&todo)?)? {
        let text = message.text();
        if text.starts_with("[search_block") {
            let lines = text.lines().filter(|line| line.contains("Holm reads"));
            lines.for_each(|line| println!("recalled: {line}"));
        }
    }
    println!("holm.md: {}", std::fs::read_to_string(folder.path().join("holm.md"))?.trim_end());
    println!("{} messages are kept in the todo {todo}", memory.len(&todo)?);
    Ok(())
}

/// A tool of the program.
fn tide() -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: "tide".to_owned(),
        description: "The high water of today at a station, in millimetres.".to_owned(),
        parameters: r#"{"type": "object", "required": ["station"], "properties": {"station": {"type": "string"}}}"#
            .to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::ReadOnly);
    Arc::new(FunctionTool::new(spec, |_, _| async { Ok(ToolOutput::text("2174 mm")) }))
}

/// Prints the calls: of tools, and of the memory's own.
struct Lines;

impl Observer for Lines {
    fn observe(&self, _todo: &TodoId, event: &AgentEvent) {
        match event {
            AgentEvent::CallBegan { tool, arguments, .. } => println!("  {tool} {arguments}"),
            AgentEvent::Recalled { tool, arguments, .. } => println!("  {tool} {arguments}"),
            _ => {}
        }
    }
}

/// What the model says.
fn script() -> ScriptedModel {
    let call = |id, tool, arguments| Answer::from(ToolCall::new(id, tool, arguments));
    ScriptedModel::new([
        Answer::text("I will keep them."),
        call("c1", "tide", r#"{"station": "Holm"}"#),
        call("c2", "search_block", r#"{"query": "correction of the gauge at Holm"}"#),
        call("c3", "file_write", r#"{"path": "holm.md", "content": "Holm: 2211 mm\n"}"#),
        Answer::text("Holm reads 2174 mm and 37 mm too low: holm.md says 2211 mm."),
    ])
}
