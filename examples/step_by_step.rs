//! Step by step (react): the model is asked, its calls run beside each other, and it is asked again with
//! what they brought. A failed call stays in the conversation, and the model goes about it otherwise.
//!
//! ```text
//! cargo run -p foldback-tools --example step_by_step
//! ```
//!
//! A script stands in the model's place; the tools are the real ones, in a temporary folder, and the
//! conversation is kept by a memory that folds.

use foldback::{Memory, Options};
use foldback_agent::{Agent, Executor, React, Task};
use foldback_core::{Budget, ContextManager as _, Role, TodoId, ToolCall};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::Toolbox;
use foldback_tools::{Permissions, toolset};
use std::error::Error;
use std::fs;
use std::sync::Arc;

fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, tool, arguments)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("retry.toml"), "limit = 3\nwait_ms = 200\n")?;
    fs::write(folder.path().join("说明.md"), "# 重试\n\n重试上限应当是 5 次。\n")?;

    let model = ScriptedModel::new([
        // Two calls in one turn run beside each other; one of them fails.
        Answer::from(vec![
            call("c1", "file_read", r#"{"path": "retry.toml"}"#),
            call("c2", "file_read", r#"{"path": "README.md"}"#),
        ]),
        Answer::from(call("c3", "file_grep", r#"{"pattern": "重试上限"}"#)),
        Answer::from(call(
            "c4",
            "file_edit",
            r#"{"path": "retry.toml", "old": "limit = 3", "new": "limit = 5"}"#,
        )),
        Answer::text("The limit was 3; 说明.md asks for 5, so retry.toml says 5 now."),
    ]);
    let tools = Toolbox::new(toolset(&Permissions::in_workspace(folder.path()))?)?;
    let agent =
        Agent::new(Arc::new(model), Executor::new(tools)).with_system_prompt("You mend settings.");

    let memory = Memory::in_memory(Options::default())?;
    let mut session = memory.session(&TodoId::new("retry-limit")?)?;
    let task = Task::new("retry-limit", "Does the retry limit fit what the docs ask for? Mend it.");
    let report = agent.run(&React::default(), &mut session, &task).await?;

    for message in session.prompt(&Budget::default()).messages {
        let text = message.text();
        let calls = message.tool_calls().iter().map(|c| format!("{} {}", c.name, c.arguments));
        match message.role() {
            Role::Assistant if !message.tool_calls().is_empty() => {
                println!("model: {}", calls.collect::<Vec<_>>().join("\n       "));
            }
            Role::Tool => println!("tool:  {}", text.trim_end().replace('\n', "\n       ")),
            _ => {}
        }
    }
    println!("\n=> {}", report.answer().unwrap_or("(no answer)"));
    println!("{} messages are kept in the todo {}", session.recorded(), session.todo());
    Ok(())
}
