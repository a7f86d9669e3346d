//! Plans that are remade: for an anchor, for a failure, and for nothing else.

use super::{NOTHING_MORE, SEED_WEATHER, calls, changed, plan};
use crate::script::{
    agent, answering, asked, fails, full, model, plan_and_run, plan_and_run_by, result, says, task,
    text, texts, times,
};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{OnePlan, Purpose};
use foldback_llm::{Answer, ScriptedModel};
use foldback_planner::{StepId, StepResult};
use foldback_tool::{Effect, ToolOutput};
use std::sync::Arc;

/// OP9: on rain the delivery, on sunshine the restaurant; the anchor itself runs nothing.
#[tokio::test(start_paused = true)]
async fn op9_the_weather_decides() {
    for (forecast, chosen, other) in [
        ("小雨", "food_delivery", "restaurant_booking"),
        ("晴", "restaurant_booking", "food_delivery"),
    ] {
        let model = Arc::new(ScriptedModel::answering(|request| {
            let asked = asked(request);
            let decide = |tool: &str| Answer::from(plan(&[(3, tool, &[1])]));
            match request.messages[0].text() {
                system if !system.contains("action_plan") => "好了。".into(),
                _ if !asked.contains("Now decide step2") => SEED_WEATHER.into(),
                // The fact, as the planner reads it.
                _ if asked.contains(r#""result":"小雨""#) => decide("food_delivery"),
                _ => decide("restaurant_booking"),
            }
        }));
        let tools = vec![
            says("search_weather", 10, forecast),
            answering(spec("food_delivery", Effect::Effectful), 10, "送到"),
            answering(spec("restaurant_booking", Effect::Effectful), 10, "订好"),
        ];
        let report = plan_and_run(&agent(&model, tools)).await;
        let called: Vec<&str> =
            report.trajectory.tool_calls().map(|call| call.function.as_str()).collect();
        assert_eq!(called, ["search_weather", chosen], "not {other}");
        assert_eq!(calls(&report, Purpose::REPLAN), 1);
        assert_eq!(model.calls(), 3);
    }
}

/// OP13: a plan in place of the answer is carried out as a replan, in whatever numbers it is written.
#[tokio::test(start_paused = true)]
async fn op13_a_plan_in_place_of_the_answer_is_a_replan() {
    let more = r#"{"action_plan": {"step1": {"function": "b", "args": {"q": "潮位"}}}}"#;
    for more in [more.to_owned(), format!("```json\n{more}\n```")] {
        let model = texts(&[&plan(&[(1, "a", &[])]), &more, "好了。"]);
        let report =
            plan_and_run(&agent(&model, vec![says("a", 10, "一"), says("b", 10, "二")])).await;
        assert_eq!((report.answer(), text(&report, 2)), (Some("好了。"), "二"), "{more}");
        assert!(
            asked(&model.requests()[2]).contains("二"),
            "the answer is written from all results"
        );
    }
}

/// OP13: when no replan is left, or the plan has nothing new, the answer is requested once more, in words; a model
/// that writes another plan has not answered.
#[tokio::test(start_paused = true)]
async fn op13_a_plan_is_never_the_answer() {
    let (first, more) = (plan(&[(1, "a", &[])]), plan(&[(2, "b", &[])]));
    for (again, replans) in [(&more, 0), (&first, 1)] {
        for (last, answer) in [("没有做完。", Some("没有做完。")), (again.as_str(), None)]
        {
            let model = texts(&[&first, again, last]);
            let settings = changed(|settings| settings.max_replans = replans);
            let agent = agent(&model, vec![says("a", 10, "一"), says("b", 10, "二")]);
            let report = plan_and_run_by(&agent, settings).await;
            assert_eq!((report.answer(), model.calls()), (answer, 3), "{again}");
            assert!(asked(&model.requests()[2]).contains("in words"));
            assert_eq!(report.trajectory.tool_calls().count(), 1);
        }
    }
}

/// OP13: words that quote a plan, and a plan for somebody else's tools, are answers.
#[tokio::test(start_paused = true)]
async fn op13_an_answer_may_hold_a_plan() {
    let foreign = r#"{"action_plan": {"step1": {"function": "灌溉", "args": {}}}}"#;
    let plan_of_a = plan(&[(2, "a", &[])]);
    let quoted = [
        format!("计划是 {plan_of_a}"),
        format!("```json\n{plan_of_a}\n```\nThis is how it works."),
        format!("{plan_of_a}\n就是这样。"),
    ];
    for answer in [foreign.to_owned()].into_iter().chain(quoted) {
        let model = texts(&[&plan(&[(1, "a", &[])]), &answer]);
        let report = plan_and_run(&agent(&model, vec![says("a", 10, "一")])).await;
        assert_eq!(report.answer(), Some(answer.as_str()));
    }
}

/// OP9, OP10: two anchors are two replans, one after the other.
#[tokio::test(start_paused = true)]
async fn op9_each_anchor_is_replanned_once() {
    let first = r#"{"action_plan": {
        "step1": {"function": "a", "args": {}},
        "step2": {"function": "anchor_function", "args": {"task": "x"}, "dependence": [1]},
        "step3": {"function": "anchor_function", "args": {"task": "y"}, "dependence": [1]}}}"#;
    let model = texts(&[first, &plan(&[(4, "a", &[])]), &plan(&[(5, "a", &[4])]), "done"]);
    let report = plan_and_run(&agent(&model, vec![says("a", 10, "ok")])).await;
    assert_eq!((calls(&report, Purpose::REPLAN), text(&report, 5)), (2, "ok"));
    let requests = model.requests();
    assert!(asked(&requests[1]).contains("Now decide step2"));
    assert!(asked(&requests[2]).contains("Now decide step3"));
}

/// OP10: steps that do not depend on the decision proceed while the planner thinks, including their dependents.
#[tokio::test(start_paused = true)]
async fn op10_independent_steps_go_on_meanwhile() {
    let first = r#"{"action_plan": {
        "step1": {"function": "quick", "args": {}},
        "step2": {"function": "anchor_function", "args": {"task": "decide"}, "dependence": [1]},
        "step3": {"function": "slow", "args": {}},
        "step4": {"function": "quick", "args": {}, "dependence": [3]},
        "step5": {"function": "quick", "args": {}, "dependence": [2]}}}"#;
    let model = model([
        first.into(),
        Answer::from(plan(&[(6, "quick", &[1])])).after(ms(500)),
        "done".into(),
    ]);
    let tools = vec![says("quick", 100, "q"), says("slow", 300, "s")];
    let report = plan_and_run(&agent(&model, tools)).await;
    assert_eq!(times(&report, 1), (0, 100));
    assert_eq!(times(&report, 4), (300, 400), "it began and ended inside the planner's 500 ms");
    assert_eq!(times(&report, 6), (600, 700), "100 ms and the planner's 500");
    assert_eq!(result(&report, 5), &StepResult::Skipped { because: StepId(2) });
    assert_eq!(report.trajectory.timing.total_us, 700_000);
}

/// OP9, OP16: a decision that arrives after `fail_fast` has ended its anchor is not carried out; there is one new
/// plan for the failure.
#[tokio::test(start_paused = true)]
async fn op16_a_decision_that_was_overtaken_is_not_carried_out() {
    let first = r#"{"action_plan": {
        "step1": {"function": "down", "args": {}, "on_failure": "fail_fast"},
        "step2": {"function": "anchor_function", "args": {"task": "定"}}}}"#;
    let model = model([
        first.into(),
        Answer::from(plan(&[(3, "pay", &[])])).after(ms(500)),
        NOTHING_MORE.into(),
        "算了".into(),
    ]);
    let pay = answering(spec("pay", Effect::Effectful), 1, "付了");
    let report = plan_and_run(&agent(&model, vec![fails("down", 100), pay])).await;
    assert_eq!((report.answer(), calls(&report, Purpose::REPLAN)), (Some("算了"), 2));
    assert_eq!(report.trajectory.tool_calls().count(), 1, "nothing was paid");
    let requests = model.requests();
    assert!(asked(&requests[1]).contains("Now decide step2"));
    assert!(asked(&requests[2]).contains("step1 failed"), "{}", asked(&requests[2]));
    assert!(asked(&requests[2]).contains("Number new steps from 3."));
}

/// OP11: a tool's error, a timeout and `status=fail` each cause one new plan; nothing else does.
#[tokio::test(start_paused = true)]
async fn op11_triggers_are_exactly_these() {
    let late = tool(spec("late", Effect::ReadOnly), |_, _| std::future::pending());
    let cases =
        [("ok", 0), ("down", 1), ("late", 1), ("refuses", 1), ("says_failed", 0), ("odd", 0)];
    for (function, replans) in cases {
        let tools = vec![
            says("ok", 1, "ok"),
            fails("down", 1),
            late.clone(),
            says("refuses", 1, r#"{"status": "fail", "原因": "断网"}"#),
            says("says_failed", 1, r#"{"status": "failed over"}"#),
            says("odd", 1, "error: the page about errors"),
        ];
        let mut answers = vec![plan(&[(1, function, &[])])];
        answers.extend((0..replans).map(|_| NOTHING_MORE.to_owned()));
        answers.push("done".to_owned());
        let model = model(answers.into_iter().map(Answer::from));
        let report = plan_and_run(&agent(&model, tools)).await;
        assert_eq!(calls(&report, Purpose::REPLAN), replans, "{function}");
        assert_eq!(report.answer(), Some("done"), "{function}");
        assert_eq!(model.left(), 0, "{function}");
    }
}

/// OP20: dependents of a failed step are skipped, its siblings finish, and then there is one new plan, even
/// if two steps failed.
#[tokio::test(start_paused = true)]
async fn op20_siblings_finish_before_the_one_new_plan() {
    let first = plan(&[
        (1, "down", &[]),
        (2, "slow", &[]),
        (3, "slow", &[1]),
        (4, "quick", &[2]),
        (5, "down", &[]),
    ]);
    let model = texts(&[&first, &plan(&[(6, "quick", &[])]), "done"]);
    let tools = vec![fails("down", 10), says("slow", 300, "s"), says("quick", 100, "q")];
    let report = plan_and_run(&agent(&model, tools)).await;
    assert_eq!(result(&report, 3), &StepResult::Skipped { because: StepId(1) });
    assert_eq!(times(&report, 4), (300, 400));
    assert_eq!(times(&report, 6), (400, 500), "the plan is made anew when the siblings have ended");
    assert_eq!(calls(&report, Purpose::REPLAN), 1);
    let asked = asked(&model.requests()[1]);
    assert!(asked.contains("step1, step5 failed"), "{asked}");
    assert!(
        asked.contains(r#"{"step":3,"function":"slow","status":"skipped","because":1}"#),
        "{asked}"
    );
}

/// OP12: the planner is shown the request, the steps that ran with their results, and why it is asked; steps
/// that are done do not run again even if they are written again; new steps may refer to old results.
#[tokio::test(start_paused = true)]
async fn op12_done_steps_are_facts() {
    let counter = Counter::default();
    let count = counter.clone();
    let find = tool(spec("find", Effect::Effectful), move |_, _| {
        count.add();
        async { Ok(ToolOutput::json(r#"{"城市": "沈阳", "n": 1.50}"#)) }
    });
    let echo = tool(spec("echo", Effect::ReadOnly), |arguments, _| async move {
        Ok(ToolOutput::text(arguments))
    });
    let first = r#"{"action_plan": {"step1": {"function": "find", "args": {"q": "春晚"}},
        "step2": {"function": "down", "args": {}}}}"#;
    let second = r#"{"action_plan": {"step1": {"function": "find", "args": {"q": "春晚"}},
        "step3": {"function": "echo", "args": {"to": "$$step1.result[\"城市\"]$$", "n": "$$step1.result.n$$"},
                  "dependence": [1]}}}"#;
    let model = texts(&[first, second, "done"]);
    let agent = agent(&model, vec![find, echo, fails("down", 1)]);
    let report = agent.run(&OnePlan::default(), full().as_mut(), &task("去哪里？")).await.unwrap();
    assert_eq!(counter.get(), 1);
    assert_eq!(text(&report, 3), r#"{"to":"沈阳","n":1.50}"#);
    let asked = asked(&model.requests()[1]);
    for part in [
        "去哪里？",
        r#"{"step":1,"function":"find","args":{"q":"春晚"},"status":"success","result":{"城市":"沈阳","n":1.50}}"#,
        r#"{"step":2,"function":"down","args":{},"status":"error","kind":"tool","message":"断网: the network is down"}"#,
        "step2 failed",
        "Number new steps from 3.",
    ] {
        assert!(asked.contains(part), "{part}\nin\n{asked}");
    }
}

/// OP13: after the last new plan there is an answer, whatever failed.
#[tokio::test(start_paused = true)]
async fn op13_the_last_round_forces_an_answer() {
    let again = |id| plan(&[(id, "down", &[])]);
    let model = texts(&[&again(1), &again(2), &again(3), "sorry"]);
    let agent = agent(&model, vec![fails("down", 1)]);
    let report = plan_and_run_by(&agent, changed(|s| s.max_replans = 2)).await;
    assert_eq!((report.answer(), calls(&report, Purpose::REPLAN)), (Some("sorry"), 2));
    let requests = model.requests();
    let is_last = |n: usize| asked(&requests[n]).contains("This is the last time");
    assert_eq!((is_last(1), is_last(2)), (false, true));
    assert_eq!(report.trajectory.strategy.degraded, None);
}
