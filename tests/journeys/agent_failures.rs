//! What failed stays in the model's view, whatever the kind of failure and whichever policy folds.

use crate::story::{exchange, in_memory_showing, todo, views};
use foldback::{Memory, Session, ViewConfig};
use foldback_agent::{
    Agent, ApprovalRequest, Approver, Decision, Executor, MemoryJournal, OnePlan, Quota, React,
    Settings, Strategy, Task,
};
use foldback_core::{Budget, CallOutcome, ToolCall, ToolDefinition};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{
    CancellationToken, Data, Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, Toolbox,
};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// A call and what the view must say about it once it has left.
struct Case {
    tool: &'static str,
    arguments: &'static str,
    told: &'static str,
}

const fn case(tool: &'static str, arguments: &'static str, told: &'static str) -> Case {
    Case { tool, arguments, told }
}

/// Each way in which a call of one turn fails.
const CASES: [Case; 10] = [
    case("work", r#"{"path": "表.md"}"#, "work on 表.md failed: Error (tool): there is no 表.md"),
    case(
        "work",
        r#"{"path": "panic"}"#,
        "work on panic failed: Error (tool): the tool work panicked",
    ),
    case(
        "work",
        r#"{"path": "status"}"#,
        "work on status failed: Error (status): status=fail 断网",
    ),
    case(
        "work",
        r#"{"path": "slow"}"#,
        "work on slow failed: Error (timeout): work did not answer",
    ),
    case("work", r#"{"path": "denied"}"#, "work on denied failed: Error (denied): "),
    case("work", r#"{"path": "large"}"#, "work on large failed: Error (quota): "),
    case("work", r#"{"path": "cancelled"}"#, "work on cancelled failed: Error (cancelled): "),
    case("work", r#"{"path": "天"#, r#"work on {"path": "天 failed: Error (arguments): "#),
    case("wrok", r#"{"path": "a"}"#, "wrok on a failed: Error (unknown tool): "),
    case("work", r#"{"path": "exit"}"#, "work on exit failed: exit code 3"),
];

fn work(effect: Effect, token: &CancellationToken) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: "work".to_owned(),
        description: "Works.".to_owned(),
        parameters: r#"{"type": "object", "required": ["path"]}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(effect);
    let token = token.clone();
    Arc::new(FunctionTool::new(spec, move |arguments, context| {
        let token = token.clone();
        async move {
            let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
            match arguments["path"].as_str().unwrap() {
                "panic" => panic!("没有地方"),
                "status" => Ok(ToolOutput::text("status=fail 断网")),
                "slow" => std::future::pending().await,
                "large" => Ok(ToolOutput::text("长".repeat(1_000))),
                "cancelled" => {
                    token.cancel();
                    context.cancelled.cancelled().await;
                    Err(ToolError::permanent("stopped"))
                }
                "exit" => Ok(ToolOutput {
                    data: Data {
                        text: "nothing was found\n[exit code 3]".to_owned(),
                        structured: Some(r#"{"exit_code":3,"output":""}"#.to_owned()),
                    },
                }),
                "log" => Ok(ToolOutput::text("Error: the first line of a log that is fine")),
                path => Err(ToolError::permanent(format!("there is no {path}"))),
            }
        }
    }))
}

/// Refuses calls that work on `denied`.
struct Refuses;

impl Approver for Refuses {
    fn needs(&self, _: &ToolSpec, arguments: &str) -> bool {
        arguments.contains("denied")
    }

    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        let denied = Decision::Denied { reason: "不行".to_owned() };
        Box::pin(async move { vec![denied; calls.len()] })
    }
}

fn agent(answers: Vec<Answer>, effect: Effect, token: &CancellationToken) -> Agent {
    let settings = Settings::default()
        .with_timeout(Duration::from_millis(20))
        .with_grace(Duration::from_millis(20))
        .with_quota(Quota::default().with_output_bytes(500));
    let executor = Executor::new(Toolbox::new([work(effect, token)]).unwrap())
        .with_settings(settings)
        .with_approver(Arc::new(Refuses));
    Agent::new(Arc::new(ScriptedModel::new(answers)), executor)
}

async fn run(agent: &Agent, strategy: &dyn Strategy, session: &mut Session, task: Task) {
    drop(agent.run(strategy, session, &task).await);
}

/// Says enough about other things that what was said before has left.
fn go_on(session: &mut Session) {
    for n in 0..14 {
        for message in exchange(n, "scheduler", "fn tick() {}") {
            drop(session.prompt(&Budget::default()));
            session.record(message).unwrap();
        }
    }
}

/// What the model is shown, except for tools.
fn shown(session: &Session) -> String {
    let prompt = session.prompt(&Budget::default());
    prompt.messages.iter().map(|message| message.text().into_owned() + "\n").collect()
}

#[track_caller]
fn check_told(session: &mut Session, view: &ViewConfig, told: &str) {
    go_on(session);
    let tool_text = |id: &str| {
        let prompt = session.prompt(&Budget::default());
        prompt.messages.iter().any(|m| m.tool_call_id().is_some_and(|of| of.as_str() == id))
    };
    assert!(!tool_text("c1"), "the failure is still in view: {view:?}");
    let shown = shown(session);
    let title = ["Not yet resolved (quoted", "Not resolved by then (quoted"];
    assert!(title.iter().any(|title| shown.contains(title)), "{told}\nunder {view:?}\nin {shown}");
    assert!(shown.contains(told), "{told}\nunder {view:?}\nin {shown}");
}

fn session(memory: &Memory) -> Session {
    memory.session(&todo("failures")).unwrap()
}

/// LV10: a failed call of any kind stays in sight under both fold policies after it has left, with its tool,
/// what it worked on and why.
#[tokio::test(flavor = "current_thread")]
async fn lv10_each_kind_of_failure_stays_in_sight() {
    for view in views() {
        for Case { tool, arguments, told } in CASES {
            let memory = in_memory_showing(&view);
            let mut session = session(&memory);
            let token = CancellationToken::new();
            let call = ToolCall::new("c1", tool, arguments);
            let agent = agent(vec![call.into(), "好。".into()], Effect::ReadOnly, &token);
            let task = Task::new("run", "Work on it.").with_cancelled(token);
            run(&agent, &React::default(), &mut session, task).await;
            check_told(&mut session, &view, told);
        }
    }
}

/// LV10: so does a call with an unknown outcome, and a plan's call that names a missing part; what
/// waited for a failed call is not reported as a separate failure.
#[tokio::test(flavor = "current_thread")]
async fn lv10_failures_of_plans_and_of_killed_runs_stay_in_sight() {
    for view in views() {
        let memory = in_memory_showing(&view);
        let mut session = session(&memory);
        let token = CancellationToken::new();
        let plan = r#"{"action_plan": {
            "step1": {"function": "work", "args": {"path": "exit"}},
            "step2": {"function": "work", "args": {"path": "$$step1.result.nothing$$"}, "dependence": [1]},
            "step3": {"function": "work", "args": {"path": "third"}, "dependence": [2]}}}"#;
        let answers = vec![plan.into(), r#"{"action_plan": {}}"#.into(), "好。".into()];
        let planner = agent(answers, Effect::ReadOnly, &token);
        run(&planner, &OnePlan::default(), &mut session, Task::new("run", "Work.")).await;
        check_told(&mut session, &view, "failed: Error (missing part): ");
        assert!(!shown(&session).contains("third failed"), "{}", shown(&session));

        let memory = in_memory_showing(&view);
        let journal = Arc::new(MemoryJournal::default());
        let answers = || vec![ToolCall::new("c1", "work", r#"{"path": "slow"}"#).into()];
        for life in 0..2 {
            let mut session = self::session(&memory);
            let answers = if life == 0 { answers() } else { vec!["好。".into()] };
            let agent = agent(answers, Effect::Effectful, &token);
            let executor = agent.executor().clone();
            let agent = agent.with_executor(
                executor.with_settings(Settings::default()).with_journal(journal.clone()),
            );
            let react = React::default();
            let run = run(&agent, &react, &mut session, Task::new("run", "Work."));
            let ended = tokio::time::timeout(Duration::from_millis(200), run).await.is_ok();
            assert_eq!(ended, life == 1, "the first is killed");
        }
        let mut session = self::session(&memory);
        check_told(&mut session, &view, "work on slow failed: Error (unknown outcome): ");
    }
}

/// LV10: the outcome of a call is not inferred from its words: a log may begin with an error.
#[tokio::test(flavor = "current_thread")]
async fn lv10_what_succeeded_is_no_failure_whatever_it_says() {
    for view in views() {
        let memory = in_memory_showing(&view);
        let mut session = session(&memory);
        let token = CancellationToken::new();
        let call = ToolCall::new("c1", "work", r#"{"path": "log"}"#);
        let agent = agent(vec![call.into(), "好。".into()], Effect::ReadOnly, &token);
        run(&agent, &React::default(), &mut session, Task::new("run", "Work.")).await;
        go_on(&mut session);
        assert!(!shown(&session).contains("log failed"), "{}", shown(&session));
        let kept = memory.conversations().export(&todo("failures")).unwrap().messages;
        let result = kept.iter().find(|message| message.tool_call_id().is_some()).unwrap();
        assert_eq!(result.outcome(), Some(CallOutcome::Succeeded));
        assert!(!result.api_json().contains("is_error"), "no chat API is sent it");
    }
}
