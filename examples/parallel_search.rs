//! Several calls in one message: side by side, and one after the other.
//!
//! ```text
//! cargo run -p foldback-agent --example parallel_search
//! ```
//!
//! The model writes blocks of calls into its messages. Calls in `<parallel>` start together; in
//! `<sequential>`, a later call uses what an earlier one found. Each block takes one message of the
//! model and comes back as one list of results. A script stands in the model's place; the searches
//! look into a small table, and the Python really runs.

use foldback_agent::{Agent, CallForm, Executor, React, ReactSettings, Task};
use foldback_baselines::Full;
use foldback_core::{Budget, Estimate, Role, TodoId, ToolDefinition};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{
    Effect, FunctionTool, Language, Tool, ToolError, ToolOutput, ToolSpec, Toolbox,
};
use serde_json::Value;
use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const SIDE_BY_SIDE: &str = r#"<execute_tools>
    <parallel>
        <deepsearch_server>
            <search>Apple Inc. stock price</search>
        </deepsearch_server>
        <microsandbox_server>
            <execute_python>import math; print(math.sqrt(16))</execute_python>
        </microsandbox_server>
    </parallel>
</execute_tools>"#;

const ONE_AFTER_THE_OTHER: &str = r#"<execute_tools>
    <sequential>
        <deepsearch_server><search>How old is Elon Musk</search></deepsearch_server>
        <microsandbox_server><execute_python>age = {results[0].data}; print(f"In 10 years, he will be {int(age) + 10}")</execute_python></microsandbox_server>
    </sequential>
</execute_tools>"#;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "(a script stands in the model's place; the searches look into a small table, and the Python really runs)\n"
    );
    let model = Arc::new(ScriptedModel::new([
        Answer::text(SIDE_BY_SIDE),
        Answer::text(ONE_AFTER_THE_OTHER),
        Answer::text("Apple stands at $170, the root of 16 is 4, and he will be 64."),
    ]));
    let settings = ReactSettings::default().with_calls(CallForm::ExecuteTools);
    let agent = Agent::new(model.clone(), Executor::new(tools()?));
    let mut context = Full.start(TodoId::new("parallel-search")?, Arc::new(Estimate));
    let request =
        "What is Apple's price, the root of 16, and how old will Elon Musk be in 10 years?";
    let task = Task::new("parallel-search", request);
    let report = agent.run(&React::new(settings), context.as_mut(), &task).await?;

    for message in context.prompt(&Budget::default()).messages {
        if *message.role() != Role::System {
            println!("{}:\n{}\n", message.role().as_str(), message.text());
        }
    }
    for (turn, trace) in report.trajectory.strategy.turns.iter().zip(&report.traces) {
        println!("turn {}, {}:\n{trace}", turn.turn, turn.class.name());
    }
    println!("the model was asked {} times", model.calls());
    Ok(())
}

fn tools() -> Result<Toolbox, Box<dyn Error>> {
    let search = spec("search", "Searches the web.", "query")
        .with_server("deepsearch_server")
        .with_primary("query")
        .with_effect(Effect::ReadOnly);
    let search = FunctionTool::new(search, |arguments, _context| async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let query = argument(&arguments, "query")?;
        let found = [("Apple", "$170"), ("Musk", "54")];
        let found = found.iter().find(|(word, _)| query.contains(word));
        let (_, text) = found.ok_or_else(|| ToolError::permanent("nothing found"))?;
        Ok(ToolOutput::text(*text))
    });
    let python = spec("execute_python", "Runs Python and answers what it prints.", "code")
        .with_server("microsandbox_server")
        .with_primary("code")
        .with_language("code", Language::Python);
    let python = FunctionTool::new(python, |arguments, _context| async move {
        let code = argument(&arguments, "code")?;
        let run = move || Command::new("python3").args(["-I", "-c", &code]).output();
        let output = tokio::task::spawn_blocking(run).await;
        let output = output.map_err(|error| ToolError::permanent(error.to_string()))?;
        let output =
            output.map_err(|error| ToolError::permanent(format!("no python3: {error}")))?;
        if !output.status.success() {
            return Err(ToolError::permanent(String::from_utf8_lossy(&output.stderr)));
        }
        Ok(ToolOutput::text(String::from_utf8_lossy(&output.stdout).trim()))
    });
    Ok(Toolbox::new([Arc::new(search) as Arc<dyn Tool>, Arc::new(python)])?)
}

/// A tool with one argument, a text.
fn spec(name: &str, description: &str, argument: &str) -> ToolSpec {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
    });
    ToolSpec::new(ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: schema.to_string(),
    })
}

fn argument(arguments: &str, name: &str) -> Result<String, ToolError> {
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| ToolError::arguments(error.to_string()))?;
    let found = arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| ToolError::arguments(format!("the argument {name:?} is missing")))
}
