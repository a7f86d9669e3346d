//! What an agent with a memory sees of the answers of tools.

use crate::tools::Folder;
use foldback::{Memory, Options};
use foldback_agent::{Agent, Executor, React, Report, Task};
use foldback_core::{Role, TodoId, ToolCall};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use serde_json::json;
use std::sync::Arc;

/// A run over a session that keeps the conversation.
async fn run(
    folder: Folder,
    answer: impl Fn(&ChatRequest) -> Answer + Send + Sync + 'static,
) -> Report {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut session = memory.session(&TodoId::new("files").unwrap()).unwrap();
    let model = Arc::new(ScriptedModel::answering(answer));
    let agent = Agent::new(model, Executor::new(folder.toolbox));
    let task = Task::new("read", "What does data.txt conclude?");
    agent.run(&React::default(), &mut session, &task).await.unwrap()
}

/// A file that is longer than an answer may be is read to its end by a model that does what the answers say:
/// none of them is folded away before the model has seen how to read on.
#[tokio::test]
async fn a_long_file_is_read_to_its_end_through_a_memory() {
    for (row, conclusion) in [
        ("the north sold 417 units in the third quarter", "conclusion: 41,207 units"),
        ("北方地区第三季度共售出若干台设备；", "结论：四万一千二百零七台"),
    ] {
        let rows: String = (0..1_500).map(|at| format!("{at} {row}\n")).collect();
        let folder = Folder::with(&[("data.txt", &format!("{rows}{conclusion}\n"))]);
        let report = run(folder, move |request| {
            let shown = &request.messages[..request.messages.len() - request.volatile];
            let last = shown.last().unwrap();
            let read = |arguments: serde_json::Value| {
                ToolCall::new("r", "file_read", &arguments.to_string()).into()
            };
            if *last.role() != Role::Tool {
                return read(json!({ "path": "data.txt" }));
            }
            let text = last.text();
            if let Some(at) = text.find(conclusion) {
                return text[at..].trim().into();
            }
            let on = text.rsplit_once("read on with lines \"");
            let (_, on) = on.unwrap_or_else(|| panic!("the answer is not whole: {text}"));
            read(json!({ "path": "data.txt", "lines": on.split('"').next().unwrap() }))
        })
        .await;
        assert_eq!(report.answer(), Some(conclusion));
        let calls = report.trajectory.tool_calls().count();
        assert!((3..=8).contains(&calls), "{calls} calls");
    }
}

/// The content of a file says nothing about the call that read it.
#[tokio::test]
async fn a_file_that_tells_of_a_failure_is_read() {
    for content in [r#"{"status": "fail", "原因": "断网"}"#, "status=fail: 断网\n"] {
        let report = run(Folder::with(&[("data.txt", content)]), |request| {
            let shown = &request.messages[..request.messages.len() - request.volatile];
            match shown.last().unwrap() {
                last if *last.role() == Role::Tool => last.text().as_ref().into(),
                _ => ToolCall::new("r", "file_read", r#"{"path": "data.txt"}"#).into(),
            }
        })
        .await;
        assert_eq!(report.answer().map(str::trim), Some(content.trim()));
    }
}
