//! The requests to the model, and the steps that run while it writes.

use super::{NOTHING_MORE, SEED_WEATHER, calls, changed, plan};
use crate::script::{
    agent, answering, asked, conversation, fails, full, lines, model, plan_and_run,
    plan_and_run_by, says, task, text, texts, times,
};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::trajectory::DegradeReason;
use foldback_agent::{OnePlan, Purpose};
use foldback_core::Role;
use foldback_llm::{Answer, ToolChoice};
use foldback_tool::{Effect, ToolOutput};
use std::sync::Arc;

const SEED_FLIGHT: &str = r#"{
  "action_plan": {
    "step1": { "function": "search_city", "args": {"query": "春晚分会场"} },
    "step2": {
      "function": "book_flight",
      "args": {"to": "$$step1.result$$"},
      "dependence": [1] // 明确依赖第一步结果
    }
  }
}"#;

/// OP1, OP11: the sample of the design, and the cost of a clean plan: two calls of the model.
#[tokio::test(start_paused = true)]
async fn op11_a_clean_plan_takes_one_planner_call_and_one_answer() {
    let model = texts(&[SEED_FLIGHT, "机票订好了。"]);
    let flight = tool(spec("book_flight", Effect::Effectful), |arguments, _| async move {
        Ok(ToolOutput::text(format!("booked {arguments}")))
    });
    let report = plan_and_run(&agent(&model, vec![says("search_city", 5, "沈阳"), flight])).await;
    assert_eq!(text(&report, 2), r#"booked {"to":"沈阳"}"#);
    assert_eq!(report.answer(), Some("机票订好了。"));
    assert_eq!(model.calls(), 2);
    assert_eq!(calls(&report, Purpose::PLANNER), 1);
    assert_eq!(calls(&report, Purpose::ANSWER), 1);
    assert_eq!(report.trajectory.spent().calls, 2);
    assert_eq!(report.trajectory.spent().usage, model.usage());
}

/// B7: a planner that is asked after every step would be asked ten times here.
#[tokio::test(start_paused = true)]
async fn op11_b7_a_chain_of_ten_steps_is_planned_once() {
    let chain: Vec<(u32, &str, Vec<u32>)> =
        (1..=10).map(|id| (id, "a", (1..id).last().into_iter().collect())).collect();
    let steps: Vec<(u32, &str, &[u32])> =
        chain.iter().map(|(id, tool, after)| (*id, *tool, after.as_slice())).collect();
    let model = texts(&[&plan(&steps), "done"]);
    let report = plan_and_run(&agent(&model, vec![says("a", 10, "ok")])).await;
    assert_eq!((model.calls(), times(&report, 10)), (2, (90, 100)));
}

/// OP17: the request for the answer shows successes, failures and skipped steps; the answer is taken whole.
#[tokio::test(start_paused = true)]
async fn op17_the_answer_sees_everything_and_may_contain_a_parenthesis() {
    let first = plan(&[(1, "a", &[]), (2, "down", &[]), (3, "a", &[2])]);
    let answer = "Two of three (the network was down :) ) worked.\n\nFinish(没有更多了)";
    let model = texts(&[&first, NOTHING_MORE, answer]);
    let report = plan_and_run(&agent(&model, vec![says("a", 1, "晴"), fails("down", 1)])).await;
    assert_eq!(report.answer(), Some(answer));
    let asked = asked(&model.requests()[2]);
    for part in [
        r#"{"step":1,"function":"a","args":{},"status":"success","result":"晴"}"#,
        r#""status":"error","kind":"tool","message":"断网: the network is down"}"#,
        r#"{"step":3,"function":"a","status":"skipped","because":2}"#,
    ] {
        assert!(asked.contains(part), "{part}\nin\n{asked}");
    }
}

/// OP18, ET12: the planner sees the head, the request and the tools with their output schemas, and
/// nothing of the history.
#[tokio::test(start_paused = true)]
async fn op18_the_planner_sees_no_history() {
    let weather = spec("weather", Effect::ReadOnly)
        .with_output(r#"{"type":"object","properties":{"天气":{"type":"string"}}}"#);
    let model = texts(&[NOTHING_MORE, "你好"]);
    let agent = agent(&model, vec![answering(weather, 1, "{}")])
        .with_system_prompt("You work for the harbour.");
    let mut context = full();
    for message in ["An old secret.", "An old answer."] {
        context.record(foldback_core::Message::user(message)).unwrap();
    }
    let report = agent.run(&OnePlan::default(), context.as_mut(), &task("hello")).await.unwrap();
    let request = &model.requests()[0];
    let roles: Vec<&Role> = request.messages.iter().map(|message| message.role()).collect();
    assert_eq!(roles, [&Role::System, &Role::User]);
    let system = request.messages[0].text();
    assert!(system.starts_with("You work for the harbour.\n\n"));
    let line = r#"{"name":"weather","description":"Does weather.","parameters":{"type":"object"},"output":{"properties":{"天气":{"type":"string"}},"type":"object"}}"#;
    assert!(system.contains(line), "{system}");
    assert_eq!(asked(request), "hello");
    assert_eq!((request.tools.len(), &request.tool_choice), (0, &ToolChoice::ReplyOnly));
    assert!(!format!("{request:?}").contains("An old"));
    // A plan without steps: the answer needs the conversation.
    let degraded = report.trajectory.strategy.degraded.as_ref().unwrap();
    assert_eq!(degraded.because, DegradeReason::NoSteps);
    let next = &model.requests()[1];
    let told: Vec<_> = next.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(told.last().unwrap(), "hello", "nothing is said of plans: {told:?}");
    assert!(told.contains(&"An old answer.".to_owned()), "{told:?}");
    assert_eq!((next.tools.len(), report.answer()), (1, Some("你好")));
}

/// OP8: while the plan is being written, read-only steps start as soon as their object is closed; steps with
/// effects wait for the end.
#[tokio::test(start_paused = true)]
async fn op8_steps_start_while_the_plan_is_being_written() {
    let written = [
        r#"{"action_plan": {"step1": {"function": "look", "args": {}}, "#,
        r#""step2": {"function": "act", "args": {}}, "#,
        r#""step3": {"function": "look", "args": {"城市": "$$step1.result$$"}, "dependence": [1]}"#,
        "}}",
    ];
    let tools =
        || vec![says("look", 50, "ok"), answering(spec("act", Effect::Effectful), 50, "done")];
    let answers = || [Answer::pieces(written.map(|piece| (ms(100), piece))), "done".into()];
    let model_ = model(answers());
    let report = plan_and_run(&agent(&model_, tools())).await;
    assert_eq!(times(&report, 1), (100, 150));
    assert_eq!(times(&report, 3), (300, 350), "when it was written; step 1 had ended before");
    assert_eq!(times(&report, 2), (400, 450), "it has an effect, so it waits for the end");
    assert_eq!(report.trajectory.plan[0].steps.len(), 3);

    let model_ = model(answers());
    let report = plan_and_run_by(&agent(&model_, tools()), changed(|s| s.stream = false)).await;
    assert_eq!(times(&report, 1), (400, 450), "all wait for the end where that is asked for");
}

/// OP15: a tool that sees the whole context is given it, with all results by then, and its failure causes no
/// new plan.
#[tokio::test(start_paused = true)]
async fn op15_a_tool_with_the_global_context_settles_its_matters_itself() {
    let write = spec("write_article", Effect::ReadOnly).with_global_context(true);
    let seen = Arc::new(std::sync::Mutex::new(None));
    let see = seen.clone();
    let write = tool(write, move |_, context| {
        *see.lock().unwrap() = context.global_context;
        async { Ok(ToolOutput::text(r#"{"status":"fail"}"#)) }
    });
    let long = "西湖的雨。".repeat(3000);
    let plan = plan(&[(1, "find", &[]), (2, "write_article", &[1])]);
    let model = texts(&[&plan, "done"]);
    let agent = agent(&model, vec![write, says("find", 5, &long)]).with_system_prompt("You write.");
    let report =
        agent.run(&OnePlan::default(), full().as_mut(), &task("写一篇文章")).await.unwrap();
    let context = seen.lock().unwrap().take().unwrap();
    for part in ["You write.", "写一篇文章", long.as_str()] {
        assert!(context.contains(part), "{part:.20} in {context:.200}");
    }
    assert_eq!((calls(&report, Purpose::REPLAN), report.answer()), (0, Some("done")));
}

/// OP12, OP17: a long result is cut for the model, with a mark of how much is left out and of where it is,
/// and is whole for the steps that use it.
#[tokio::test(start_paused = true)]
async fn op12_long_results_are_cut_with_a_mark_and_stay_whole() {
    let long: String = (0..4000).map(|n| format!("第{n}行，西湖。")).collect();
    let length = tool(spec("length", Effect::ReadOnly), |arguments, _| async move {
        let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        Ok(ToolOutput::text(arguments["of"].as_str().unwrap().chars().count().to_string()))
    });
    let first = r#"{"action_plan": {"step1": {"function": "read", "args": {}},
        "step2": {"function": "length", "args": {"of": "$$step1.result$$"}, "dependence": [1]}}}"#;
    let model = texts(&[first, "done"]);
    let agent = agent(&model, vec![says("read", 1, &long), length]);
    let report = plan_and_run_by(&agent, changed(|settings| settings.results_tokens = 500)).await;
    let of = long.chars().count();
    assert_eq!(text(&report, 2), of.to_string());
    let asked = asked(&model.requests()[1]);
    assert!(asked.len() < 6_000, "{} bytes", asked.len());
    let line: serde_json::Value = serde_json::from_str(asked.lines().nth(3).unwrap()).unwrap();
    assert_eq!(line["left_out"]["of"], of);
    assert_eq!(line["left_out"]["whole"], "$$step1.result$$");
    let shown = line["result"].as_str().unwrap();
    assert!(shown.starts_with("第0行，西湖。") && shown.ends_with("第3999行，西湖。"), "{shown}");
    let mark = format!("[… {} of {of} characters left out …]", line["left_out"]["characters"]);
    assert!(shown.contains(&mark), "{shown}");
}

/// OP18: the run is in the conversation as messages that chat APIs accept: plan, calls and results.
#[tokio::test(start_paused = true)]
async fn op18_the_conversation_is_told_what_was_done() {
    let model = texts(&[SEED_WEATHER, &plan(&[(3, "down", &[1])]), NOTHING_MORE, "好了。"]);
    let agent = agent(&model, vec![says("search_weather", 1, "小雨"), fails("down", 1)])
        .with_system_prompt("You help.");
    let mut context = full();
    let report = agent.run(&OnePlan::default(), context.as_mut(), &task("go")).await.unwrap();
    let told: Vec<String> = conversation(context.as_ref())
        .iter()
        .map(|message| format!("{}: {}", message.role().as_str(), message.text()))
        .collect();
    assert_eq!(
        told[..4],
        [
            "system: You help.".to_owned(),
            "user: go".to_owned(),
            format!("assistant: {SEED_WEATHER}"),
            "tool: 小雨".to_owned(),
        ]
    );
    assert!(told[5].starts_with("tool: Error (tool): 断网"), "{told:?}");
    assert_eq!(told.last().unwrap(), "assistant: 好了。");
    assert!(lines(&report.traces[0]).iter().any(|line| line.contains("step3 failed")));
}
