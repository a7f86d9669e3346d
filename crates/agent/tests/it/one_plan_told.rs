//! The texts for models in a planned run: instructions, steps, failures, and the conversation after it.

use crate::script::{
    agent, answering, asked, conversation, fails, full, model, plan_and_run, plan_and_run_by,
    result, running, says, task, text, texts,
};
use crate::toolkit::{spec, tool};
use foldback_agent::{
    ApprovalRequest, Approver, CallForm, Decision, Executor, OnePlan, OnePlanSettings, Purpose,
    React, ReactSettings, Report, Stop,
};
use foldback_core::{ContextManager, Estimate, TokenCounter};
use foldback_llm::{Answer, StopReason};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, Language, ToolError, ToolOutput, Toolbox};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

const NOTHING_MORE: &str = r#"{"action_plan": {}}"#;

/// Refuses every effectful call.
struct Refuses;

impl Approver for Refuses {
    fn decide<'a>(
        &'a self,
        calls: &'a [ApprovalRequest],
    ) -> Pin<Box<dyn Future<Output = Vec<Decision>> + Send + 'a>> {
        let refused = || Decision::Denied { reason: "今天不行".to_owned() };
        Box::pin(async move { calls.iter().map(|_| refused()).collect() })
    }
}

fn changed(change: impl FnOnce(&mut OnePlanSettings)) -> OnePlanSettings {
    let mut settings = OnePlanSettings::default();
    change(&mut settings);
    settings
}

fn calls(report: &Report, purpose: Purpose) -> u64 {
    report.trajectory.tokens.get(&purpose).map_or(0, |spent| spent.calls)
}

/// The observation of each call that a conversation shows, by the id of the call.
fn observations(context: &dyn ContextManager) -> BTreeMap<String, (String, String)> {
    let messages = conversation(context);
    let calls = messages.iter().flat_map(|message| message.tool_calls());
    let told = |id: &foldback_core::ToolCallId| {
        let of = messages.iter().find(|message| message.tool_call_id() == Some(id)).unwrap();
        of.text().into_owned()
    };
    calls.map(|call| (call.id.to_string(), (call.arguments.clone(), told(&call.id)))).collect()
}

/// MC15: steps that failed before they were called, were refused or skipped stay in the conversation as calls
/// with their observations.
#[tokio::test(start_paused = true)]
async fn mc15_failures_refusals_and_skips_stay_as_calls() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "look", "args": {}},
        "step2": {"function": "look", "args": {"城市": "$$step1.result.没有$$"}, "dependence": [1]},
        "step3": {"function": "look", "args": {}, "dependence": [2]},
        "step4": {"function": "pay", "args": {"元": 7}}}}"#;
    let model = texts(&[plan, r#"{"mode": "react", "reason": "try alone"}"#, "done"]);
    let tools =
        vec![says("look", 1, r#"{"y":1}"#), answering(spec("pay", Effect::Effectful), 1, "")];
    let executor = Executor::new(Toolbox::new(tools).unwrap()).with_approver(Arc::new(Refuses));
    let mut context = full();
    running(&model, executor)
        .run(&OnePlan::default(), context.as_mut(), &task("go"))
        .await
        .unwrap();
    let told = observations(context.as_ref());
    assert_eq!(told["step1"].1, r#"{"y":1}"#);
    assert_eq!(told["step2"].0, r#"{"城市":"$$step1.result.没有$$"}"#, "it was never bound");
    assert!(told["step2"].1.starts_with("Error (missing part)"), "{}", told["step2"].1);
    assert_eq!(told["step3"].1, "Not run: it waited for step2, which did not succeed.");
    assert_eq!(told["step4"].0, r#"{"元":7}"#);
    assert!(told["step4"].1.contains("今天不行"), "{}", told["step4"].1);
    let handover = asked(&model.requests()[2]);
    for part in ["try alone", "Failed: step2.", "Refused: step4; do not work around it."] {
        assert!(handover.contains(part), "{part}\nin\n{handover}");
    }
}

/// OP11, OP17: a person's refusal is not a failure to circumvent, and the planner learns of it.
#[tokio::test(start_paused = true)]
async fn op11_a_refused_call_is_not_planned_round() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "pay", "args": {}},
        "step2": {"function": "look", "args": {}},
        "step3": {"function": "anchor_function", "args": {"task": "t"}, "dependence": [2]}}}"#;
    let model = texts(&[plan, NOTHING_MORE, "done"]);
    let tools = vec![says("look", 1, "ok"), answering(spec("pay", Effect::Effectful), 1, "")];
    let executor = Executor::new(Toolbox::new(tools).unwrap()).with_approver(Arc::new(Refuses));
    let report = plan_and_run(&running(&model, executor)).await;
    let asked = asked(&model.requests()[1]);
    assert!(asked.contains("step1 was refused; do not work around it."), "{asked}");
    assert!(!asked.contains("failed: plan"), "{asked}");
    assert_eq!(calls(&report, Purpose::REPLAN), 1);
}

/// OP12: the planner learns that running and planned steps continue without it.
#[tokio::test(start_paused = true)]
async fn op12_running_and_planned_steps_are_not_asked_for_again() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "anchor_function", "args": {"task": "一"}},
        "step2": {"function": "anchor_function", "args": {"task": "二"}},
        "step3": {"function": "slow", "args": {}},
        "step4": {"function": "slow", "args": {}, "dependence": [3]}}}"#;
    let model = texts(&[plan, NOTHING_MORE, NOTHING_MORE, "done"]);
    plan_and_run(&agent(&model, vec![says("slow", 1_000, "s")])).await;
    let request = &model.requests()[1];
    assert!(request.messages[0].text().contains("Running and planned steps continue without you."));
    let asked = asked(request);
    for part in [
        r#"{"step":1,"anchor":"一","status":"to be decided now"}"#,
        r#"{"step":2,"anchor":"二","status":"to be decided"}"#,
        r#"{"step":3,"function":"slow","args":{},"status":"running"}"#,
        r#"{"step":4,"function":"slow","status":"planned"}"#,
        "Now decide step1,",
    ] {
        assert!(asked.contains(part), "{part}\nin\n{asked}");
    }
}

/// OP1, OP13: the planner is given its limits, the languages of code and which tools see everything; references
/// in code work as it expects.
#[tokio::test(start_paused = true)]
async fn op1_the_planner_is_told_what_holds() {
    let python = spec("python", Effect::ReadOnly)
        .with_language("code", Language::Python)
        .with_language("note", Language::Raw);
    let python = tool(python, |arguments, _| async move { Ok(ToolOutput::text(arguments)) });
    let write = spec("write", Effect::ReadOnly).with_global_context(true);
    let plan = r#"{"action_plan": {"step1": {"function": "look", "args": {}},
        "step2": {"function": "python", "args": {"code": "x = $$step1.result$$"}, "dependence": [1]}}}"#;
    let model = texts(&[plan, "done"]);
    let agent = agent(&model, vec![python, says("look", 1, "170"), answering(write, 1, "")]);
    let report = plan_and_run_by(&agent, changed(|settings| settings.max_replans = 7)).await;
    let system = model.requests()[0].messages[0].text().into_owned();
    for part in [
        "at most 7 times",
        "up to 1000 in all",
        r#""name":"python","description":"Does python.","parameters":{"type":"object"},"code":{"code":"python"}}"#,
        r#""name":"write","description":"Does write.","parameters":{"type":"object"},"sees_everything":true}"#,
    ] {
        assert!(system.contains(part), "{part}\nin\n{system}");
    }
    let arguments: serde_json::Value = serde_json::from_str(text(&report, 2)).unwrap();
    let (before, _) = system.split_once(" if the result of step 1 is").unwrap();
    let (_, example) = before.rsplit_once("becomes ").unwrap();
    assert_eq!(arguments["code"], example, "the example of the instructions is true");
}

/// ET1, ET7: the instructions of blocks on tools without a server, and on escaping, are true.
#[tokio::test(start_paused = true)]
async fn et7_the_instructions_of_blocks_are_true() {
    let echo = spec("tool_c", Effect::ReadOnly).with_primary("q");
    let echo = tool(echo, |arguments, _| async move { Ok(ToolOutput::text(arguments)) });
    let block = "<execute_tools>\n  <tools><tool_c>a < b && 晴</tool_c></tools>\n</execute_tools>";
    let model = texts(&[block, "done"]);
    let react = ReactSettings::default().with_calls(CallForm::ExecuteTools);
    let agent = agent(&model, vec![echo]);
    agent.run(&React::new(react), full().as_mut(), &task("go")).await.unwrap();
    let requests = model.requests();
    assert!(requests[0].messages[0].text().contains("<tools><tool_c>text</tool_c></tools>"));
    let told = asked(&requests[1]);
    assert!(told.contains(r#"<data>{"q":"a &lt; b &amp;&amp; 晴"}</data>"#), "{told}");
}

/// OP12, OP17, S10: the text on the steps has one limit, whatever is long in them and however many there are;
/// omissions are counted.
#[tokio::test(start_paused = true)]
async fn op12_three_hundred_steps_fit_into_the_budget() {
    let long = "西湖的雨，word ".repeat(300);
    let steps: Vec<String> = (1..=300)
        .map(|n| match n {
            100 => format!(r#""step{n}": {{"function": "down", "args": {{}}}}"#),
            _ => format!(r#""step{n}": {{"function": "a", "args": {{"t": "{n} {long}"}}}}"#),
        })
        .collect();
    let anchor = format!(
        r#""step301": {{"function": "anchor_function", "args": {{"task": "{long}"}}, "dependence": [1]}}"#
    );
    let plan = format!(r#"{{"action_plan": {{{}, {anchor}}}}}"#, steps.join(", "));
    for budget in [500, 4_000, 12_000] {
        let model = texts(&[&plan, NOTHING_MORE, NOTHING_MORE, "done"]);
        let tools = vec![says("a", 1, &long), fails("down", 1)];
        let settings = changed(|settings| settings.results_tokens = budget);
        plan_and_run_by(&agent(&model, tools), settings).await;
        for request in &model.requests()[1..] {
            let told = asked(request);
            let tokens = Estimate.count(&told);
            assert!(tokens < budget + 300, "{tokens} of {budget}");
            assert!(tokens > budget / 2, "{tokens} of {budget}: it is made use of");
            assert!(told.contains(r#""steps":"step1 to step"#), "{told}");
            // Each step is mentioned, by itself or with others.
            let lines = told.lines().filter_map(|line| line.strip_prefix('{'));
            let lines: Vec<serde_json::Value> =
                lines.map(|line| serde_json::from_str(&format!("{{{line}")).unwrap()).collect();
            let alone = lines.iter().filter(|line| line["step"].is_u64()).count() as u64;
            let together: u64 =
                lines.iter().filter_map(|line| line["left_out"]["steps"].as_u64()).sum();
            assert_eq!(alone + together, 301);
        }
        let last = asked(&model.requests()[3]);
        assert!(
            last.contains(r#"{"step":100,"function":"down""#),
            "a failure is told first: {last}"
        );
    }
}

/// OP12: there is no complete result of an error to refer to, so its mark names none.
#[tokio::test(start_paused = true)]
async fn op12_a_long_error_is_cut_without_a_reference() {
    let broken = tool(spec("f", Effect::ReadOnly), |_, _| async {
        Err(ToolError::permanent("错误 trace ".repeat(3_000)))
    });
    let plan = r#"{"action_plan": {"step1": {"function": "f", "args": {}}}}"#;
    let model = texts(&[plan, NOTHING_MORE, "done"]);
    let settings = changed(|settings| settings.results_tokens = 400);
    plan_and_run_by(&agent(&model, vec![broken]), settings).await;
    let asked = asked(&model.requests()[1]);
    let line = asked.lines().find(|line| line.starts_with('{')).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert!(line["left_out"]["characters"].as_u64().unwrap() > 1_000, "{line}");
    assert_eq!(line["left_out"].get("whole"), None);
    assert!(!asked.contains("$$step1.result$$"), "{asked}");
}

/// A plan of steps with a long argument each; one of them, in the middle, calls an unknown tool.
fn long_plan(steps: usize) -> String {
    let steps = (1..=steps).map(|n| {
        let tool = if n == steps / 2 { "aa" } else { "a" };
        format!(
            r#""step{n}": {{"function": "{tool}", "args": {{"t": "{n}号 {}"}}}}"#,
            "雨".repeat(100)
        )
    });
    format!(r#"{{"action_plan": {{{}}}}}"#, steps.collect::<Vec<_>>().join(",\n"))
}

/// OP14: the request for a repair shows the plan whole; of a very long one, the faulty steps.
#[tokio::test(start_paused = true)]
async fn op14_a_repair_sees_what_it_repairs() {
    for (steps, is_whole) in [(100, true), (400, false)] {
        let written = long_plan(steps);
        let model = texts(&[&written, NOTHING_MORE, "done"]);
        plan_and_run(&agent(&model, vec![says("a", 1, "ok")])).await;
        let messages = &model.requests()[1].messages;
        let shown = messages[messages.len() - 2].text();
        assert_eq!(shown == written, is_whole, "{} of {} bytes", shown.len(), written.len());
        let faulty = format!(r#""step{0}": {{"function": "aa", "args": {{"t": "{0}号 "#, steps / 2);
        let place = if is_whole { shown.into_owned() } else { asked(&model.requests()[1]) };
        assert!(place.contains(&faulty) && place.contains(&"雨".repeat(100)), "{place:.2000}");
        assert!(messages.iter().map(|m| m.text().len()).sum::<usize>() < 100_000);
    }
}

/// OP14, S10: hundreds of findings are not listed one by one.
#[tokio::test(start_paused = true)]
async fn op14_findings_have_a_bound() {
    let steps: Vec<String> = (1..=900)
        .map(|n| format!(r#""step{n}": {{"function": "没有这个工具{n}", "args": {{}}}}"#))
        .collect();
    let plan = format!(r#"{{"action_plan": {{{}}}}}"#, steps.join(", "));
    let model = texts(&[&plan, NOTHING_MORE, "done"]);
    plan_and_run(&agent(&model, vec![says("a", 1, "ok")])).await;
    let asked = asked(&model.requests()[1]);
    assert!(Estimate.count(&asked) < 4_000, "{}", Estimate.count(&asked));
    assert!(asked.contains("step1:") && asked.contains("more\n"), "{asked}");
}

/// OP17: an answer that was cut off is requested once more, with more room; if it is cut again, it says so.
#[tokio::test(start_paused = true)]
async fn op17_a_cut_answer_is_asked_for_once_more() {
    let cut = |text: &str| Answer::text(text).stopped(StopReason::Length);
    let plan = || Answer::text(r#"{"action_plan": {"step1": {"function": "a", "args": {}}}}"#);
    for (answers, stop, expected) in [
        (vec![plan(), cut("一共"), "一共 12".into()], Stop::Answered, "一共 12"),
        (vec![plan(), cut("The total"), cut("The total is 1")], Stop::CutOff, "The total is 1"),
        (vec![plan(), cut("The total"), cut("")], Stop::CutOff, "The total"),
    ] {
        let model = model(answers);
        let agent = agent(&model, vec![says("a", 1, "ok")]);
        let one_plan = OnePlan::new(changed(|settings| settings.sampling.max_tokens = Some(50)));
        let mut context = full();
        let report = agent.run(&one_plan, context.as_mut(), &task("go")).await.unwrap();
        let outcome = &report.trajectory.outcome;
        assert_eq!((&outcome.stop, report.answer()), (&stop, Some(expected)));
        let bounds: Vec<_> = model.requests().iter().map(|r| r.sampling.max_tokens).collect();
        assert_eq!(bounds, [Some(50), Some(50), Some(100)]);
        assert_eq!(conversation(context.as_ref()).last().unwrap().text(), expected);
    }
}

/// OP17: an answer of which the provider withheld something is requested once more, with no more room.
#[tokio::test(start_paused = true)]
async fn op17_a_withheld_answer_is_asked_for_once_more() {
    let withheld = |text: &str| Answer::text(text).stopped(StopReason::Filtered);
    let plan = || Answer::text(r#"{"action_plan": {"step1": {"function": "a", "args": {}}}}"#);
    for (answers, stop, expected) in [
        (vec![plan(), withheld("一共"), "一共 12".into()], Stop::Answered, "一共 12"),
        (vec![plan(), withheld("一共"), withheld("")], Stop::CutOff, "一共"),
    ] {
        let model = model(answers);
        let agent = agent(&model, vec![says("a", 1, "ok")]);
        let one_plan = OnePlan::new(changed(|settings| settings.sampling.max_tokens = Some(50)));
        let report = agent.run(&one_plan, full().as_mut(), &task("go")).await.unwrap();
        let outcome = &report.trajectory.outcome;
        assert_eq!((&outcome.stop, report.answer()), (&stop, Some(expected)));
        assert!(model.requests().iter().all(|r| r.sampling.max_tokens == Some(50)));
    }
}

/// OP14: a plan that was cut off is repaired with more room, and told why.
#[tokio::test(start_paused = true)]
async fn op14_a_cut_plan_is_repaired_with_more_room() {
    let model = model([
        Answer::text(r#"{"action_plan": {"step1": {"func"#).stopped(StopReason::Length),
        NOTHING_MORE.into(),
        "done".into(),
    ]);
    let settings = changed(|settings| settings.sampling.max_tokens = Some(50));
    plan_and_run_by(&agent(&model, vec![]), settings).await;
    let repair = &model.requests()[1];
    assert_eq!(repair.sampling.max_tokens, Some(100));
    assert!(asked(repair).contains("was cut off there"), "{}", asked(repair));
}

/// OP15, OP18: a tool that sees everything is given the instructions, the conversation so far and the results;
/// the planner sees nothing of the conversation.
#[tokio::test(start_paused = true)]
async fn op15_a_planned_tool_sees_the_conversation() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = Arc::clone(&seen);
    let write = spec("write", Effect::ReadOnly).with_global_context(true);
    let write = tool(write, move |_, context| {
        see.lock().unwrap().push(context.global_context.unwrap().to_string());
        async { Ok(ToolOutput::text("写好了")) }
    });
    let plan = r#"{"action_plan": {"step1": {"function": "find", "args": {}},
        "step2": {"function": "write", "args": {}, "dependence": [1]}}}"#;
    let model = texts(&[plan, "done", plan, "done"]);
    let agent =
        agent(&model, vec![write, says("find", 1, "1887")]).with_system_prompt("You write.");
    let mut context = full();
    for (run, request) in [("one", "写灯塔的文章"), ("two", "再写一篇")] {
        let task = foldback_agent::Task::new(run, request);
        agent.run(&OnePlan::default(), context.as_mut(), &task).await.unwrap();
    }
    let seen = seen.lock().unwrap().clone();
    assert!(seen[0].starts_with("You write.\n\n"), "{}", seen[0]);
    assert!(seen[0].contains("写灯塔的文章") && seen[0].contains("1887"), "{}", seen[0]);
    assert_eq!(seen[1].matches("You write.").count(), 1, "{}", seen[1]);
    for part in ["user: 写灯塔的文章", "assistant: done", "再写一篇", r#""result":"1887""#]
    {
        assert!(seen[1].contains(part), "{part}\nin\n{}", seen[1]);
    }
    let planner = &model.requests()[2].messages;
    assert!(planner.iter().all(|message| !message.text().contains("灯塔")), "{planner:?}");
}

/// OP14, MC15: an open decision is mentioned when the work continues step by step.
#[tokio::test(start_paused = true)]
async fn op14_a_decision_that_was_not_made_stays_open() {
    let plan = r#"{"action_plan": {
        "step1": {"function": "a", "args": {}},
        "step2": {"function": "anchor_function", "args": {"task": "晴或雨？"}, "dependence": [1]},
        "step3": {"function": "a", "args": {}, "dependence": [2]}}}"#;
    let model = texts(&[plan, r#"{"mode": "react"}"#, "done"]);
    let mut context = full();
    let report = agent(&model, vec![says("a", 1, "雨")])
        .run(&OnePlan::default(), context.as_mut(), &task("go"))
        .await
        .unwrap();
    assert_eq!(result(&report, 3), &StepResult::Skipped { because: StepId(2) });
    let told = asked(&model.requests()[2]);
    assert!(told.contains("Still to be decided:\n- step2: 晴或雨？"), "{told}");
    let step3 = &observations(context.as_ref())["step3"].1;
    assert!(step3.contains("waited for step2") && !step3.contains("succeed"), "{step3}");
}
