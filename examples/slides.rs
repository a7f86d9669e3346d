//! A deck of slides that one tool makes and the next ones take, and that never enters the context.
//!
//! ```text
//! cargo run -p foldback-reference-agent --example slides
//! ```
//!
//! `deck_make` answers with the whole deck. The memory keeps it, the model sees its beginning and a name
//! (`store://1-...`), and hands the name on: to a tool of the program, which is given the bytes, and to
//! `file_write`. A script stands in the model's place; the tools and the memory are real.

use foldback_reference_agent::ReferenceAgent;
use foldback_reference_agent::agent::{AgentEvent, Observer, Task};
use foldback_reference_agent::foldback::core::{TodoId, ToolCall, ToolDefinition};
use foldback_reference_agent::foldback::{Memory, Options};
use foldback_reference_agent::llm::{Answer, ChatRequest, ScriptedModel};
use foldback_reference_agent::tool::{
    Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, handed_bytes,
};
use foldback_reference_agent::tools::Permissions;
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let model = Arc::new(ScriptedModel::answering(answer));
    let agent = ReferenceAgent::new(model.clone())
        .in_workspace(Permissions::in_workspace(folder.path()))
        .with_tools([deck_make(), deck_check()])
        .with_strategy_named("react")
        .build()?;
    let memory = Memory::in_memory(Options::default())?;
    let mut context = memory.session(&TodoId::new("slides")?)?;
    let request = "Make slides about the tides at 杭州湾, check them, and keep them in deck.html.";
    println!("{request}");
    let task = Task::new("slides", request).with_observer(Arc::new(Lines));
    let report = agent.run(&mut context, &task).await?;
    println!("=> {}", report.answer().unwrap_or("(no answer)"));

    let deck = std::fs::read(folder.path().join("deck.html"))?;
    let shown = |request: &ChatRequest| {
        let said: usize = request.messages.iter().map(|message| message.api_json().len()).sum();
        said
    };
    let largest = model.requests().iter().map(shown).max().unwrap_or_default();
    println!("deck.html has {} bytes, the largest request had {}", deck.len(), largest);
    println!("the deck was whole in none of them: {}", largest < deck.len() / 4);
    Ok(())
}

/// Answers with a whole deck of slides.
fn deck_make() -> Arc<dyn Tool> {
    let spec = spec("deck_make", "Makes slides about a subject, as HTML.", "subject");
    Arc::new(FunctionTool::new(spec, |arguments, _| async move {
        let subject = argument(&arguments, "subject")?;
        let slide =
            |n| format!("<section><h1>{n}. {subject}</h1>{}</section>\n", "<p>潮</p>".repeat(40));
        Ok(ToolOutput::text((1..=60).map(slide).collect::<String>()))
    }))
}

/// Is given the deck itself where the model gives its name.
fn deck_check() -> Arc<dyn Tool> {
    let spec = spec("deck_check", "Checks slides. Takes them by reference (store://...).", "deck");
    Arc::new(FunctionTool::new(spec, |arguments, context| async move {
        let name = argument(&arguments, "deck")?;
        let deck = handed_bytes(&*context.hand_over().await?, &name, 1 << 20)?;
        let slides = String::from_utf8_lossy(&deck).matches("</section>").count();
        Ok(ToolOutput::text(format!("{slides} slides, all closed")))
    }))
}

fn spec(name: &str, description: &str, argument: &str) -> ToolSpec {
    let parameters = json!({"type": "object", "required": [argument], "properties": {argument: {"type": "string"}}});
    let (name, description) = (name.to_owned(), description.to_owned());
    ToolSpec::new(ToolDefinition { name, description, parameters: parameters.to_string() })
        .with_effect(Effect::ReadOnly)
}

fn argument(arguments: &str, name: &str) -> Result<String, ToolError> {
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| ToolError::arguments(error.to_string()))?;
    let text = arguments[name].as_str().map(str::to_owned);
    text.ok_or_else(|| ToolError::arguments(format!("`{name}` is missing; a text was expected")))
}

/// Prints the calls as the model makes them, and what they bring.
struct Lines;

impl Observer for Lines {
    fn observe(&self, _todo: &TodoId, event: &AgentEvent) {
        match event {
            AgentEvent::CallBegan { tool, arguments, .. } => println!("  {tool} {arguments}"),
            AgentEvent::CallEnded { excerpt, .. } => {
                println!("    {}", excerpt.chars().take(60).collect::<String>());
            }
            _ => {}
        }
    }
}

/// What a model says that saw a name, and hands it on.
fn answer(request: &ChatRequest) -> Answer {
    let results =
        request.messages.iter().filter(|message| message.tool_call_id().is_some()).count();
    let call =
        |id, tool, arguments: Value| Answer::from(ToolCall::new(id, tool, &arguments.to_string()));
    let shown: String =
        request.messages.iter().map(|message| message.text().into_owned()).collect();
    let name = shown.find("store://1-").map(|at| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || ":/-".contains(c);
        let end = shown[at..].find(|c| !is_part(c)).map_or(shown.len(), |end| at + end);
        &shown[at..end]
    });
    match (results, name) {
        (0, _) => call("c1", "deck_make", json!({"subject": "The tides at 杭州湾"})),
        (1, Some(deck)) => call("c2", "deck_check", json!({ "deck": deck })),
        (2, Some(deck)) => call("c3", "file_write", json!({"path": "deck.html", "content": deck})),
        (3, _) => Answer::text("60 slides are in deck.html, and they are sound."),
        _ => Answer::text("I see no deck."),
    }
}
