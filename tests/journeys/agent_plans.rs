//! Plans with real tools on real files, over a store: what fails, what is skipped, and what is reported
//! about it.

use crate::story::{open, todo};
use foldback_agent::trajectory::DegradeReason;
use foldback_agent::{Adaptive, Agent, Executor, OnePlan, Report, Strategy, Task};
use foldback_core::{ContextManager, Message, ToolDefinition, check_request};
use foldback_llm::{Answer, ScriptedModel};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{FailureKind, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use foldback_tools::{Permissions, toolset};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::{TempDir, tempdir};

/// A folder with a store and a workspace, and a model with a script.
struct Desk {
    dir: TempDir,
    model: Arc<ScriptedModel>,
}

impl Desk {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let dir = tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::write(dir.path().join("work/笔记.txt"), "潮位 3.5 m at noon\n").unwrap();
        Self { dir, model: Arc::new(ScriptedModel::new(answers)) }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// Works on a request with the file tools, and a tool that sees the whole context.
    async fn run(&self, strategy: &dyn Strategy, request: &str) -> Report {
        let permissions = Permissions::in_workspace(self.dir.path().join("work"));
        let mut tools = toolset(&permissions).unwrap();
        tools.push(write_article(self.dir.path()));
        let executor = Executor::new(Toolbox::new(tools).unwrap());
        let agent = Agent::new(self.model.clone(), executor).with_system_prompt("You keep notes.");
        let memory = open(&self.dir.path().join("store"));
        let mut session = memory.session(&todo("notes")).unwrap();
        agent.run(strategy, &mut session, &Task::new("run", request)).await.unwrap()
    }

    /// Records earlier messages.
    fn say(&self, text: &str) {
        let memory = open(&self.dir.path().join("store"));
        let mut session = memory.session(&todo("notes")).unwrap();
        ContextManager::record(&mut session, Message::user(text)).unwrap();
        ContextManager::record(&mut session, Message::assistant("Noted.")).unwrap();
    }

    /// The contents of the store; chat APIs would accept them.
    fn kept(&self) -> Vec<Message> {
        let memory = open(&self.dir.path().join("store"));
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
        let kept = memory.conversations().export(&todo("notes")).unwrap().messages;
        assert_eq!(check_request(&kept), []);
        kept
    }

    /// The last message of each request to the model.
    fn asked(&self) -> Vec<String> {
        let requests = self.model.requests();
        requests.iter().map(|r| r.messages.last().unwrap().text().into_owned()).collect()
    }
}

/// Writes everything that it is shown into a file.
fn write_article(dir: &Path) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: "write_article".to_owned(),
        description: "Writes an article.".to_owned(),
        parameters: r#"{"type": "object"}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_global_context(true);
    let file = dir.join("work/article.txt");
    Arc::new(FunctionTool::new(spec, move |_, context| {
        let file = file.clone();
        async move {
            fs::write(&file, context.global_context.as_deref().unwrap_or_default()).unwrap();
            Ok(ToolOutput::text("written"))
        }
    }))
}

fn failure(report: &Report, step: u32) -> FailureKind {
    match report.trajectory.result(0, StepId(step)) {
        Some(StepResult::Error { failure }) => failure.kind,
        other => panic!("step{step}: {other:?}"),
    }
}

/// OP16, OP17, OP20: a missing file fails its step, what waits for it is skipped, the others end, and
/// one new plan follows; the writer of the answer learns about all three, and the answer stays whole.
#[tokio::test]
async fn op20_a_missing_file_fails_one_branch() {
    let desk = Desk::new([
        r#"{"action_plan": {
            "step1": {"function": "file_read", "args": {"path": "没有.txt"}},
            "step2": {"function": "file_write", "args": {"path": "a.txt", "content": "$$step1.result$$"}, "dependence": [1]},
            "step3": {"function": "file_read", "args": {"path": "笔记.txt"}},
            "step4": {"function": "file_write", "args": {"path": "b.txt", "content": "$$step3.result$$"}, "dependence": [3]}}}"#
            .into(),
        r#"{"action_plan": {
            "step5": {"function": "file_write", "args": {"path": "a.txt", "content": "由 $$step3.result$$"}, "dependence": [3]}}}"#
            .into(),
        "Copied (b.txt), and a.txt is made of the notes :) 好了。".into(),
    ]);
    let report = desk.run(&OnePlan::default(), "Copy both files.").await;
    assert_eq!(report.answer(), Some("Copied (b.txt), and a.txt is made of the notes :) 好了。"));
    assert_eq!(failure(&report, 1), FailureKind::Tool);
    let skipped = Some(&StepResult::Skipped { because: StepId(1) });
    assert_eq!(report.trajectory.result(0, StepId(2)), skipped);
    assert!(fs::read_to_string(desk.path("b.txt")).unwrap().contains("潮位 3.5 m"));
    assert!(fs::read_to_string(desk.path("a.txt")).unwrap().starts_with('由'));
    let asked = desk.asked();
    assert_eq!(asked.len(), 3, "one plan, one new plan, the answer");
    assert!(asked[1].contains("step1 failed"), "{}", asked[1]);
    for told in
        [r#""status":"success""#, r#""status":"error""#, r#""status":"skipped","because":1"#]
    {
        assert!(asked[2].contains(told), "{told}\nin\n{}", asked[2]);
    }
    let results = desk.kept().iter().filter(|message| message.tool_call_id().is_some()).count();
    assert_eq!(results, 5, "each call stands with what became of it");
}

/// OP16: after `continue_with_error` the waiting steps run and see the error; after `fail_fast` nothing
/// more is started.
#[tokio::test]
async fn op16_failure_policies_on_real_files() {
    let plan = |policy: &str| {
        let plan = r#"{"action_plan": {
            "step1": {"function": "file_read", "args": {"path": "没有.txt"}, "on_failure": "POLICY"},
            "step2": {"function": "file_write", "args": {"path": "a.txt", "content": "得到：$$step1.result$$"}, "dependence": [1]}}}"#;
        Answer::text(&plan.replace("POLICY", policy))
    };
    let nothing = || Answer::text(r#"{"action_plan": {}}"#);
    for (policy, is_written) in [("continue_with_error", true), ("fail_fast", false)] {
        // An error that a step takes into account requires no new plan.
        let again = (!is_written).then(nothing);
        let desk = Desk::new([plan(policy)].into_iter().chain(again).chain(["done".into()]));
        let report = desk.run(&OnePlan::default(), "Copy it.").await;
        assert_eq!(report.answer(), Some("done"), "{policy}");
        assert_eq!(desk.path("a.txt").exists(), is_written, "{policy}");
        if is_written {
            let text = fs::read_to_string(desk.path("a.txt")).unwrap();
            assert!(text.starts_with("得到：") && text.contains("没有.txt"), "{text}");
        }
    }
}

/// OP15, OP18: the planner sees nothing of the conversation; a tool that is flagged for it sees all of
/// it, and requires no new plan.
#[tokio::test]
async fn op15_op18_who_sees_the_conversation() {
    let desk = Desk::new([
        r#"{"action_plan": {"step1": {"function": "write_article", "args": {}}}}"#.into(),
        "The article is written.".into(),
    ]);
    desk.say("暗号是 marmalade.");
    let report = desk.run(&OnePlan::default(), "Write the article.").await;
    assert_eq!((report.answer(), desk.model.calls()), (Some("The article is written."), 2));
    let planner = &desk.model.requests()[0];
    let shown: Vec<_> = planner.messages.iter().map(|message| message.api_json()).collect();
    assert!(!shown.join("\n").contains("marmalade"));
    let article = fs::read_to_string(desk.path("article.txt")).unwrap();
    for part in ["You keep notes.", "暗号是 marmalade.", "Write the article."] {
        assert!(article.contains(part), "{part}\nin\n{article}");
    }
}

/// OP14, OP19: what the planner calls open-ended is done step by step with the same tools, and the record says
/// why; the store holds the handover.
#[tokio::test]
async fn op14_op19_an_open_task_is_done_step_by_step() {
    use foldback_core::ToolCall;
    let desk = Desk::new([
        r#"{"mode": "react", "reason": "不知道有哪些文件"}"#.into(),
        ToolCall::new("c", "file_list", "{}").into(),
        ToolCall::new("c", "file_read", r#"{"path": "笔记.txt"}"#).into(),
        "3.5 m at noon.".into(),
    ]);
    let report = desk.run(&Adaptive::default(), "Find the tide in some file.").await;
    assert_eq!(report.answer(), Some("3.5 m at noon."));
    let record = &report.trajectory.strategy;
    assert_eq!(record.chosen, OnePlan::NAME);
    let degraded = record.degraded.as_ref().unwrap();
    assert_eq!(
        (degraded.because, degraded.detail.as_str()),
        (DegradeReason::Declared, "不知道有哪些文件")
    );
    let requests = desk.model.requests();
    let listed = requests[2].messages.iter().any(|message| message.text().contains("笔记.txt"));
    assert!(listed, "the model sees what it listed");
    let kept = desk.kept();
    assert!(
        kept.iter()
            .any(|message| message.text().contains("不知道有哪些文件. There are no more plans"))
    );
    assert_eq!(kept.last().unwrap().text(), "3.5 m at noon.");
}
