//! Records of runs: their keys, their lines, and replays from them.

use crate::script::{
    agent, answering, fails, full, lines, model, plan_and_run, plan_and_run_by, says, task, texts,
};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::rewards::{judge, own_judges};
use foldback_agent::trajectory::{
    TRAJECTORY_VERSION, TurnClass, TurnRecord, read_trajectories, write_trajectory,
};
use foldback_agent::{
    Agent, CallForm, Executor, OnePlan, OnePlanSettings, Purpose, React, ReactSettings, Replay,
    Report, Settings, Stop, Trajectory,
};
use foldback_core::ToolCall;
use foldback_llm::{Answer, ModelError, ModelErrorKind};
use foldback_planner::StepResult;
use foldback_tool::{Effect, FailureKind, FunctionTool, Tool, ToolError, ToolOutput, Toolbox};
use std::sync::Arc;

const KEYS: [&str; 9] =
    ["situation", "strategy", "plan", "calls", "results", "timing", "tokens", "rewards", "outcome"];

fn line(record: &Trajectory) -> String {
    let mut out = Vec::new();
    write_trajectory(record, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read_back(text: &str) -> Trajectory {
    let mut records = read_trajectories(text.as_bytes());
    let record = records.next().unwrap().unwrap();
    assert!(records.next().is_none());
    record
}

/// A run with an anchor, a step that continues beside the replan, a failure, a timeout, `status=fail`, a
/// skipped step and replans, in which each call takes its own time.
async fn eventful() -> Report {
    let first = r#"{"action_plan": {
        "step1": {"function": "look", "args": {"城市": "杭州"}},
        "step2": {"function": "anchor_function", "args": {"task": "若下雨"}, "dependence": [1]},
        "step3": {"function": "slow", "args": {}},
        "step4": {"function": "down", "args": {}},
        "step5": {"function": "slow", "args": {"after": "$$step4.result$$"}, "dependence": [4]},
        "step6": {"function": "late", "args": {}},
        "step7": {"function": "refuse", "args": {}}}}"#;
    let second =
        r#"{"action_plan": {"step8": {"function": "look", "args": {"城市": "$$step1.result$$"}}}}"#;
    let model = model([
        Answer::text(first).after(ms(120)),
        Answer::text(second).after(ms(200)),
        Answer::text(r#"{"action_plan": {}}"#).after(ms(30)),
        Answer::text("结束了\n(完)").after(ms(40)),
    ]);
    let late = FunctionTool::new(spec("late", Effect::ReadOnly), |_, _| std::future::pending());
    let tools: Vec<Arc<dyn Tool>> = vec![
        says("look", 35, "小雨\n\"引号\""),
        says("slow", 400, "s"),
        fails("down", 15),
        Arc::new(late.with_timeout(ms(700))),
        says("refuse", 25, r#"{"status":"fail","why":"断网"}"#),
    ];
    plan_and_run(&agent(&model, tools)).await
}

/// ET16: a record is one line with exactly these keys; nothing is lost when it is read back.
#[tokio::test(start_paused = true)]
async fn et16_a_record_has_fixed_keys_and_is_one_line() {
    let mut record = eventful().await.trajectory;
    judge(&mut record, own_judges());
    let text = line(&record);
    assert_eq!(text.lines().count(), 1);
    let json: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let mut keys: Vec<&str> = json.keys().map(String::as_str).collect();
    let mut expected = KEYS;
    keys.sort_unstable();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(json["situation"]["version"], TRAJECTORY_VERSION);
    assert_eq!(line(&read_back(&text)), text);
    assert_eq!(read_back(&text).results, record.results);
}

/// ET10, ET16: the times, tokens and calls of the model in a record agree with the run.
#[tokio::test(start_paused = true)]
async fn et10_a_record_tells_times_tokens_and_calls() {
    let report = eventful().await;
    let record = &report.trajectory;
    let calls = |purpose| record.tokens[&purpose].calls;
    assert_eq!([Purpose::PLANNER, Purpose::REPLAN, Purpose::ANSWER].map(calls), [1, 2, 1]);
    assert_eq!((record.model_calls().count(), record.tool_calls().count()), (4, 6));
    assert_eq!(record.timing.calls.len(), record.calls.len());
    let starts: Vec<u64> = record.timing.calls.iter().map(|time| time.start_us).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    assert_eq!(record.timing.total_us, 120_000 + 700_000 + 30_000 + 40_000);
    assert_eq!(record.results.len(), 8);
    assert_eq!(record.plan.len(), 3);
}

/// ET10, ET16: a run can be replayed from its record alone, with the same results and the same trace, including
/// times.
#[tokio::test(start_paused = true)]
async fn et10_a_planned_run_is_replayed_from_its_record() {
    let report = eventful().await;
    let record = read_back(&line(&report.trajectory));
    let replay = Replay::of(&record).unwrap();
    let agent = Agent::new(Arc::new(replay.model), Executor::new(replay.toolbox));
    let again = plan_and_run(&agent).await;
    assert_eq!(again.trajectory.results, report.trajectory.results);
    assert_eq!(lines(&again.traces[0]), lines(&report.traces[0]));
    assert_eq!(line(&again.trajectory), line(&report.trajectory));
}

/// ET10: the same for a run that goes step by step, with blocks, errors of the model and of tools.
#[tokio::test(start_paused = true)]
async fn et10_a_walk_is_replayed_from_its_record() {
    let served = |name| spec(name, Effect::ReadOnly).with_server("s").with_primary("q");
    let block = "<execute_tools><sequential><s><look>杭州</look></s><s><look>{results[0].data}</look></s></sequential></execute_tools>";
    let model = model([
        Answer::text(block).after(ms(70)),
        Answer::from(ModelError::new(ModelErrorKind::Response, "no JSON")),
        Answer::from(vec![
            ToolCall::new("c", "look", r#"{"q": "a"}"#),
            ToolCall::new("c", "nothing", "{"),
        ])
        .after(ms(20)),
        Answer::text("done").after(ms(10)),
    ]);
    let settings = ReactSettings::default().with_calls(CallForm::ExecuteTools);
    let react = React::new(settings);
    let agent_ = agent(&model, vec![answering(served("look"), 30, "小雨")]);
    let report = agent_.run(&react, full().as_mut(), &task("go")).await.unwrap();
    let record = read_back(&line(&report.trajectory));
    let replay = Replay::of(&record).unwrap();
    let agent = Agent::new(Arc::new(replay.model), Executor::new(replay.toolbox));
    let again = agent.run(&react, full().as_mut(), &task("go")).await.unwrap();
    assert_eq!(line(&again.trajectory), line(&report.trajectory));
    assert_eq!(again.traces, report.traces);
    assert_eq!(report.traces.len(), 2);
}

/// ET10: all plans of a planned run are one turn, planned at once, whatever the number of its calls.
#[tokio::test(start_paused = true)]
async fn et10_a_planned_run_is_one_turn() {
    let eventful = eventful().await.trajectory;
    let planned = |calls| vec![TurnRecord { turn: 0, class: TurnClass::PlanOnce, calls }];
    assert_eq!(eventful.strategy.turns, planned(7));
    let single = r#"{"action_plan": {"step1": {"function": "look", "args": {}}}}"#;
    let agent = agent(&texts(&[single, "done"]), vec![says("look", 1, "晴")]);
    assert_eq!(plan_and_run(&agent).await.trajectory.strategy.turns, planned(1));
}

/// ET10: a replayed failure is of the recorded kind: whether a plan is remade depends on it.
#[tokio::test(start_paused = true)]
async fn et10_kinds_of_failures_are_replayed() {
    let first = r#"{"action_plan": {
        "step1": {"function": "panics", "args": {}}, "step2": {"function": "talks", "args": {}},
        "step3": {"function": "refuses", "args": {}}, "step4": {"function": "down", "args": {}}}}"#;
    let panics: Arc<dyn Tool> = tool(spec("panics", Effect::ReadOnly), |arguments, _| async move {
        assert!(arguments.is_empty(), "爆");
        Ok(ToolOutput::text(""))
    });
    let refuses: Arc<dyn Tool> = tool(spec("refuses", Effect::ReadOnly), |_, _| async {
        Err(ToolError::arguments("城市 is missing"))
    });
    let mut settings = Settings::default();
    settings.quota.output_bytes = 200;
    let model = texts(&[first, r#"{"action_plan": {}}"#, "done"]);
    let talks = says("talks", 1, &"长".repeat(100));
    let tools = Toolbox::new([panics, talks, refuses, fails("down", 1)]).unwrap();
    let executor = Executor::new(tools).with_settings(settings.clone());
    let report = plan_and_run(&Agent::new(model, executor)).await;
    let kinds = |report: &Report| -> Vec<FailureKind> {
        let results = report.trajectory.results.iter();
        let kind = |result: &StepResult| match result {
            StepResult::Error { failure } => Some(failure.kind),
            _ => None,
        };
        results.filter_map(|record| kind(&record.result)).collect()
    };
    assert!(kinds(&report).contains(&FailureKind::Quota), "{:?}", kinds(&report));
    assert!(kinds(&report).contains(&FailureKind::Arguments));
    let replay = Replay::of(&read_back(&line(&report.trajectory))).unwrap();
    let executor = Executor::new(replay.toolbox).with_settings(settings);
    let again = plan_and_run(&Agent::new(Arc::new(replay.model), executor)).await;
    assert_eq!(again.trajectory.results, report.trajectory.results);
    assert_eq!(again.trajectory.asked_otherwise(&report.trajectory), Vec::<usize>::new());
}

/// ET10: a run that is cancelled while decisions are open records the calls that were made, and no others.
#[tokio::test(start_paused = true)]
async fn et10_a_cancelled_run_records_no_call_that_was_not_made() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "anchor_function", "args": {"task": "定"}},
        "step2": {"function": "anchor_function", "args": {"task": "再定"}}}}"#;
    let model = model([Answer::text(plan), Answer::text("{}").after(ms(50_000)), "x".into()]);
    let task = task("go");
    let cancelled = task.cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(500)).await;
        cancelled.cancel();
    });
    let report =
        agent(&model, vec![]).run(&OnePlan::default(), full().as_mut(), &task).await.unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled);
    assert_eq!((report.trajectory.model_calls().count(), model.calls()), (2, 2));
}

/// ET10: a record shows whether another run sent the model the same requests.
#[tokio::test(start_paused = true)]
async fn et10_a_run_that_asks_otherwise_is_seen() {
    let run = async |system_prompt: &str, result: &str| {
        let call = Answer::from(ToolCall::new("c", "look", "{}"));
        let agent = agent(&model([call, "done".into()]), vec![says("look", 1, result)]);
        let agent = agent.with_system_prompt(system_prompt);
        agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap().trajectory
    };
    let recorded = read_back(&line(&run("你看。", "晴").await));
    assert_eq!(run("你看。", "晴").await.asked_otherwise(&recorded), Vec::<usize>::new());
    assert_eq!(run("你看。", "雨").await.asked_otherwise(&recorded), [1]);
    assert_eq!(run("你看看。", "晴").await.asked_otherwise(&recorded), [0, 1]);
    let mut shorter = recorded.clone();
    shorter.calls.truncate(2);
    assert_eq!(shorter.asked_otherwise(&recorded), [1]);
}

/// ET16: errors name a line that is not a record, and one of a newer version.
#[test]
fn et16_bad_lines_are_named() {
    let newer = r#"{"situation":{"version":99}}"#;
    let text = format!("\n{{}}\nnot json\n{newer}\n");
    let errors: Vec<String> =
        read_trajectories(text.as_bytes()).map(|read| read.unwrap_err().to_string()).collect();
    assert_eq!(errors.len(), 3);
    assert!(errors[0].starts_with("line 2 is not a trajectory"), "{}", errors[0]);
    assert!(errors[1].starts_with("line 3 is not a trajectory"), "{}", errors[1]);
    assert!(errors[2].contains("version 99") && errors[2].contains("up to 1"), "{}", errors[2]);
}

/// ET16: a streamed plan has the same record as one that arrived at once, except for times.
#[tokio::test(start_paused = true)]
async fn et16_a_streamed_run_has_a_record_as_well() {
    let plan = r#"{"action_plan": {"step1": {"function": "look", "args": {}}, "step2": {"function": "act", "args": {}, "dependence": [1]}}}"#;
    let act = || tool(spec("act", Effect::Effectful), |_, _| async { Ok(ToolOutput::text("ok")) });
    let mut records = Vec::new();
    for stream in [false, true] {
        let agent = agent(&texts(&[plan, "done"]), vec![says("look", 5, "晴"), act()]);
        let settings = OnePlanSettings::default().with_stream(stream);
        records.push(plan_and_run_by(&agent, settings).await.trajectory);
    }
    assert_eq!(records[0].results, records[1].results);
    assert_eq!(records[0].plan, records[1].plan);
    assert_eq!(records[0].tokens, records[1].tokens);
}
