//! A flow over a store: each step in a separate todo, its work readable by the steps after it; and a
//! process that dies at any record resumes.

use crate::story::{open, todo};
use foldback::Memory;
use foldback_agent::{
    Agent, Executor, FileJournal, Journal, JournalError, Record, Report, Stop, Task,
};
use foldback_core::{ItemState, Message, ToolCall, ToolDefinition};
use foldback_flow::Flow;
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_testkit::stride;
use foldback_tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use futures::future::BoxFuture;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::tempdir;

/// What only the first step sees, in the middle of a long table.
const SECRET: &str = "412: 潮位 3.2 米，站点 7 号";

/// A journal whose process dies when it is about to exceed its number of records.
struct Dying {
    inner: FileJournal,
    left: Mutex<usize>,
}

impl Journal for Dying {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        let mut left = self.left.lock().unwrap();
        let Some(fewer) = left.checked_sub(1) else {
            return Err(JournalError::Broken { path: "gone".into() });
        };
        *left = fewer;
        self.inner.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.inner.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.inner.records(run)
    }
}

/// Answers a table that is too large for a conversation.
fn tides(calls: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let calls = Arc::clone(calls);
    let definition = ToolDefinition {
        name: "tides".to_owned(),
        description: "The tides.".to_owned(),
        parameters: r#"{"type": "object"}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(Effect::ReadOnly);
    Arc::new(FunctionTool::new(spec, move |_, _| {
        calls.fetch_add(1, Ordering::SeqCst);
        let line = |n: usize| match n {
            412 => format!("{SECRET}\n"),
            _ => format!("{n}: 潮位 {} 米\n", n % 9),
        };
        async move { Ok(ToolOutput::text((0..600).map(line).collect::<String>())) }
    }))
}

/// What a model would say: the second step reads the work of the first by the name that it is shown.
fn script(request: &ChatRequest) -> Answer {
    let text = |message: &Arc<Message>| message.text().into_owned();
    let shown: String = request.messages.iter().map(text).collect();
    let results = request.messages.iter().filter(|message| message.tool_call_id().is_some());
    let results: Vec<String> = results.map(text).collect();
    let name = |prefix: &str| {
        let at = shown.rfind(prefix).unwrap_or_else(|| panic!("no {prefix} in {shown}"));
        let is_part = |c: char| c.is_ascii_alphanumeric() || "./_:-".contains(c);
        let rest = &shown[at..];
        rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].to_owned()
    };
    let load = |reference: String, more: serde_json::Value| {
        let mut arguments = json!({"ref": reference});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Answer::from(ToolCall::new(&format!("l{}", results.len()), "load", &arguments.to_string()))
    };
    match request.id.as_deref().unwrap() {
        "trip/flow/plan" => {
            let plan =
                json!({"command": "create", "title": "潮汐", "steps": ["读取潮汐", "查站点 7 号"]});
            ToolCall::new("p", "planning", &plan.to_string()).into()
        }
        "trip/step-1.1/react/1" => ToolCall::new("t", "tides", "{}").into(),
        "trip/step-1.1/react/2" => "The table of 600 hours is read.".into(),
        "trip/step-2.1/react/1" => load(name("b_trip.step-1_"), json!({})),
        "trip/step-2.1/react/2" => load(name("store://trip.step-1/"), json!({"match": "站点"})),
        "trip/step-2.1/react/3" => {
            let line = results[1].lines().find(|line| line.contains("站点"));
            Answer::text(line.unwrap_or_else(|| panic!("not found: {}", results[1])))
        }
        other => Answer::text(&format!("{other}: {}", shown.contains("站点 7 号"))),
    }
}

/// One life of a flow, with this many records to write.
async fn live(folder: &Path, records: usize, calls: &Arc<AtomicUsize>) -> Option<Report> {
    let memory = open(&folder.join("store"));
    let inner = FileJournal::open(folder.join("journal.jsonl")).unwrap();
    let journal = Dying { inner, left: Mutex::new(records) };
    let toolbox = Toolbox::new([tides(calls)]).unwrap();
    let executor = Executor::new(toolbox).with_journal(Arc::new(journal));
    let agent = Agent::new(Arc::new(ScriptedModel::answering(script)), executor);
    let mut session = memory.session(&todo("trip")).unwrap();
    let task = Task::new("trip", "站点 7 号的潮位是多少？");
    agent.run(&Flow::default(), &mut session, &task).await.ok()
}

/// What is said in a todo, byte for byte.
fn said(memory: &Memory, id: &str) -> Vec<String> {
    let messages = memory.conversations().export(&todo(id)).unwrap().messages;
    messages.iter().map(|message| message.json().to_owned()).collect()
}

/// What a flow leaves in its store: the conversations of the flow and its steps, and the todo list.
fn left(folder: &Path) -> (Vec<Vec<String>>, String) {
    let memory = open(&folder.join("store"));
    let todos = ["trip", "trip.step-1", "trip.step-2"];
    let list = memory.session(&todo("trip")).unwrap().todo_list().clone();
    assert!(memory.maintenance().doctor().unwrap().findings.is_empty());
    (todos.map(|id| said(&memory, id)).into(), serde_json::to_string(&list).unwrap())
}

/// OM10, OM17, TD2: a step finds nothing of another's work in its conversation, and can read it by its
/// name; the flow's conversation grows by conclusions.
#[tokio::test]
async fn om17_a_step_can_read_what_the_step_before_it_did() {
    let (folder, calls) = (tempdir().unwrap(), Arc::default());
    let report = live(folder.path(), usize::MAX, &calls).await.unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
    assert_eq!(report.answer(), Some("trip/summary/summary: true"));
    let (conversations, _) = left(folder.path());
    assert!(conversations[2].last().unwrap().contains(SECRET), "{:?}", conversations[2]);
    assert_eq!(conversations[0].len(), 5, "request, plan, two conclusions, answer");
    let memory = open(&folder.path().join("store"));
    let list = memory.session(&todo("trip")).unwrap().todo_list().clone();
    assert!(list.items().iter().all(|item| item.state == ItemState::Completed), "{list:?}");
    // Another todo finds nothing of it.
    let other = memory.recall(&todo("other"), "load", r#"{"ref":"b_trip.step-1_001"}"#);
    assert!(other.is_err() || other.unwrap().is_error);
}

/// OM9, R12: a process that dies before any of its records is followed by one that leaves the same store,
/// byte for byte; a tool with a recorded result does not run again.
#[tokio::test]
async fn om9_a_flow_over_a_store_goes_on_after_any_record() {
    let whole = tempdir().unwrap();
    live(whole.path(), usize::MAX, &Arc::default()).await.unwrap();
    let expected = left(whole.path());
    for records in (0..).step_by(stride()) {
        let (folder, calls) = (tempdir().unwrap(), Arc::default());
        let is_over = live(folder.path(), records, &calls).await.is_some();
        live(folder.path(), usize::MAX, &calls).await.unwrap();
        assert_eq!(left(folder.path()), expected, "dead after {records} records");
        assert!(calls.load(Ordering::SeqCst) <= 2, "dead after {records} records");
        if is_over {
            assert!(records > 25, "{records}");
            break;
        }
    }
}
