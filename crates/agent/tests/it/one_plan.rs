//! One plan for a whole request: when the model is asked, with what, and what runs meanwhile.

use crate::script::{
    agent, answering, asked, conversation, fails, full, lines, model, plan_and_run, result, says,
    task, text, texts, times,
};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::{
    Agent, DegradeReason, Executor, MemoryJournal, OnePlanSettings, Purpose, Report, Stop,
    ToolOutput, Toolbox,
};
use foldback_core::Role;
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel, ToolChoice};
use foldback_planner::{Effect, FailureKind, StepId, StepResult, ToolSpec};
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

const SEED_WEATHER: &str = r#"{
  "action_plan": {
    "step1": {
      "function": "search_weather",
      "args": {"city": "杭州", "time": "18:00"},
      "dependence": []
    },
    "step2": {
      "function": "anchor_function",
      "args": {
        "task": "根据step1结果：若晴朗则调用restaurant_booking，若下雨则调用food_delivery"
      },
      "dependence": [1] // 明确依赖第一步的天气数据
    }
  }
}"#;

/// A plan with one step a line: its number, its tool, and the numbers of those it waits for.
fn plan(steps: &[(u32, &str, &[u32])]) -> String {
    let steps = steps.iter().map(|(id, tool, after)| {
        format!(r#""step{id}": {{"function": "{tool}", "args": {{}}, "dependence": {after:?}}}"#)
    });
    format!(r#"{{"action_plan": {{{}}}}}"#, steps.collect::<Vec<_>>().join(", "))
}

const NOTHING_MORE: &str = r#"{"action_plan": {}}"#;

fn calls(report: &Report, purpose: Purpose) -> u64 {
    report.trajectory.tokens.get(&purpose).map_or(0, |spent| spent.calls)
}

fn with(agent: Agent, change: impl FnOnce(&mut OnePlanSettings)) -> Agent {
    let mut settings = OnePlanSettings::default();
    change(&mut settings);
    agent.with_one_plan(settings)
}

/// OP1, OP11: the sample of the design, and what a clean plan costs: two calls of the model.
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
    assert_eq!(calls(&report, Purpose::Planner), 1);
    assert_eq!(calls(&report, Purpose::Answer), 1);
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
                // The fact, as the planner is told it.
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
        assert_eq!(calls(&report, Purpose::Replan), 1);
        assert_eq!(model.calls(), 3);
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
    assert_eq!((calls(&report, Purpose::Replan), text(&report, 5)), (2, "ok"));
    let requests = model.requests();
    assert!(asked(&requests[1]).contains("Now decide step2"));
    assert!(asked(&requests[2]).contains("Now decide step3"));
}

/// OP10: what does not depend on the decision goes on while the planner thinks, dependents included.
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

/// OP11: a tool's error, a timeout and `status=fail` ask for one new plan; nothing else does.
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
        assert_eq!(calls(&report, Purpose::Replan), replans, "{function}");
        assert_eq!(report.answer(), Some("done"), "{function}");
        assert_eq!(model.left(), 0, "{function}");
    }
}

/// OP20: dependents of a failed step are skipped, its siblings finish, and then there is one new plan,
/// also where two steps failed.
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
    assert_eq!(calls(&report, Purpose::Replan), 1);
    let asked = asked(&model.requests()[1]);
    assert!(asked.contains("step1, step5 failed"), "{asked}");
    assert!(
        asked.contains(r#"{"step":3,"function":"slow","status":"skipped","because":1}"#),
        "{asked}"
    );
}

/// OP12: the planner is shown the request, what ran with its results and why it is asked; what is done
/// does not run again although it is written again; new steps may refer to old results.
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
    let report = agent.one_plan(full().as_mut(), &task("去哪里？")).await.unwrap();
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
    let agent = with(agent(&model, vec![fails("down", 1)]), |s| s.max_replans = 2);
    let report = plan_and_run(&agent).await;
    assert_eq!((report.answer(), calls(&report, Purpose::Replan)), (Some("sorry"), 2));
    let requests = model.requests();
    let is_last = |n: usize| asked(&requests[n]).contains("for the last time");
    assert_eq!((is_last(1), is_last(2)), (false, true));
    assert_eq!(report.trajectory.strategy.degraded, None);
}

/// OP14: a plan that is not sound, nor its repair, ends in ReAct, which is recorded with its reason. The
/// repair is told everything at once.
#[tokio::test(start_paused = true)]
async fn op14_an_invalid_plan_degrades_after_one_repair() {
    let bad = r#"{"action_plan": {
        "step1": {"function": "serch", "args": {}},
        "step2": {"function": "search", "args": {}, "dependence": [3]},
        "step3": {"function": "search", "args": {}, "dependence": [2, 9]}}}"#;
    let model = texts(&[bad, "I would rather not.", "the answer"]);
    let report = plan_and_run(&agent(&model, vec![says("search", 1, "found")])).await;
    let degraded = report.trajectory.strategy.degraded.as_ref().unwrap();
    assert_eq!(degraded.because, DegradeReason::InvalidPlan);
    assert!(degraded.detail.contains("no plan"), "{}", degraded.detail);
    assert_eq!(report.answer(), Some("the answer"));
    assert_eq!(
        report.trajectory.tokens.keys().copied().collect::<Vec<_>>(),
        [Purpose::Planner, Purpose::Repair, Purpose::React]
    );
    let repair = asked(&model.requests()[1]);
    for part in ["`serch`", "step9", "step2 -> step3"] {
        assert!(repair.contains(part), "{part}\nin\n{repair}");
    }
    let messages = &model.requests()[2].messages;
    let told: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!((told[1].as_str(), told[3].as_str()), (bad, "I would rather not."), "both stay");
    assert!(told[2].contains("`serch`"), "with what was wrong: {}", told[2]);
    assert!(told.last().unwrap().contains("Plans are over"), "{told:?}");
    assert_eq!(report.trajectory.plan.iter().filter(|plan| !plan.findings.is_empty()).count(), 2);
}

/// OP14: nothing to do is a plan; something that is no step is none.
#[tokio::test(start_paused = true)]
async fn op14_an_empty_plan_is_a_plan_and_a_hollow_one_is_not() {
    let report = plan_and_run(&agent(&texts(&[NOTHING_MORE, "done"]), vec![])).await;
    assert_eq!((report.answer(), calls(&report, Purpose::Repair)), (Some("done"), 0));
    for hollow in [
        r#"{"action_plan": []}"#,
        r#"{"action_plan": null}"#,
        r#"{"action_plan": {"first": {"function": "a", "args": {}}}}"#,
        r#"{"action_plan": {"step1": {}}}"#,
        r#"{"action_plan": {"step1": {"args": {}}}}"#,
    ] {
        let model = texts(&[hollow, NOTHING_MORE, "done"]);
        let report = plan_and_run(&agent(&model, vec![says("a", 1, "ok")])).await;
        assert_eq!(
            (report.answer(), calls(&report, Purpose::Repair)),
            (Some("done"), 1),
            "{hollow}"
        );
    }
}

/// OP14: a repaired plan runs.
#[tokio::test(start_paused = true)]
async fn op14_a_repaired_plan_runs() {
    let model = texts(&[r#"{"action_plan": {"step1": {"func"#, &plan(&[(1, "a", &[])]), "done"]);
    let report = plan_and_run(&agent(&model, vec![says("a", 1, "ok")])).await;
    assert_eq!((text(&report, 1), report.answer()), ("ok", Some("done")));
    assert_eq!(calls(&report, Purpose::Repair), 1);
    assert!(asked(&model.requests()[1]).contains("ends"), "{}", asked(&model.requests()[1]));
}

/// OP14: a decision that no replan is left for is made step by step, with all that was done in view.
#[tokio::test(start_paused = true)]
async fn op14_an_open_decision_after_the_last_replan_degrades() {
    let model = texts(&[SEED_WEATHER, "我看着办。"]);
    let tools = vec![says("search_weather", 10, "小雨")];
    let agent = with(agent(&model, tools), |settings| settings.max_replans = 0);
    let mut context = full();
    let report = agent.one_plan(context.as_mut(), &task("go")).await.unwrap();
    let degraded = report.trajectory.strategy.degraded.as_ref().unwrap();
    assert_eq!(degraded.because, DegradeReason::ReplansSpent);
    assert!(degraded.detail.contains("step2"), "{}", degraded.detail);
    let messages = model.requests()[1].messages.clone();
    let told: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(
        (told[0].as_str(), told[1].as_str(), told[2].as_str()),
        ("go", SEED_WEATHER, "小雨")
    );
    assert!(told[3].contains("step2 asks for a decision, and 0 replans were made"), "{}", told[3]);
    assert!(told[3].contains("Still to be decided:\n- step2: 根据step1结果"), "{}", told[3]);
    assert_eq!(conversation(context.as_ref()).len(), 5);
}

/// OP19: the planner may say that a task is open-ended.
#[tokio::test(start_paused = true)]
async fn op19_an_open_ended_task_goes_step_by_step() {
    let model = texts(&[r#"{"mode": "react", "reason": "未知领域的科研"}"#, "found it"]);
    let report = plan_and_run(&agent(&model, vec![says("a", 1, "ok")])).await;
    let degraded = report.trajectory.strategy.degraded.as_ref().unwrap();
    assert_eq!(degraded.because, DegradeReason::Declared);
    assert_eq!(degraded.detail, "未知领域的科研");
    assert_eq!(report.answer(), Some("found it"));
    assert_eq!(calls(&report, Purpose::React), 1);
    let told = asked(&model.requests()[1]);
    assert!(told.contains("未知领域的科研") && told.contains("step by step"), "{told}");
}

/// OP17: whoever writes the answer sees success, failure and what was skipped; the answer is taken whole.
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
    let weather = ToolSpec {
        output: Some(r#"{"type":"object","properties":{"天气":{"type":"string"}}}"#.to_owned()),
        ..spec("weather", Effect::ReadOnly)
    };
    let model = texts(&[NOTHING_MORE, "你好"]);
    let agent =
        agent(&model, vec![answering(weather, 1, "{}")]).with_head("You work for the harbour.");
    let mut context = full();
    for message in ["An old secret.", "An old answer."] {
        context.record(foldback_core::Message::user(message)).unwrap();
    }
    let report = agent.one_plan(context.as_mut(), &task("hello")).await.unwrap();
    let request = &model.requests()[0];
    let roles: Vec<&Role> = request.messages.iter().map(|message| message.role()).collect();
    assert_eq!(roles, [&Role::System, &Role::User]);
    let system = request.messages[0].text();
    assert!(system.starts_with("You work for the harbour.\n\n"));
    let line = r#"{"name":"weather","description":"Does weather.","parameters":{"type":"object"},"output":{"properties":{"天气":{"type":"string"}},"type":"object"}}"#;
    assert!(system.contains(line), "{system}");
    assert_eq!(asked(request), "hello");
    assert_eq!((request.tools.len(), &request.tool_choice), (0, &ToolChoice::ReplyOnly));
    assert!(!format!("{:?}", model.requests()).contains("An old"));
    assert_eq!(report.answer(), Some("你好"), "a plan without steps is answered at once");
}

/// OP8: while the plan is being written, read-only steps start as soon as their object has closed;
/// what has effects waits for the end.
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
    let report = plan_and_run(&with(agent(&model_, tools()), |s| s.stream = true)).await;
    assert_eq!(times(&report, 1), (100, 150));
    assert_eq!(times(&report, 3), (300, 350), "when it was written; step 1 had ended before");
    assert_eq!(times(&report, 2), (400, 450), "it has an effect, so it waits for the end");
    assert_eq!(report.trajectory.plan[0].steps.len(), 3);

    let model_ = model(answers());
    let report = plan_and_run(&agent(&model_, tools())).await;
    assert_eq!(times(&report, 1), (400, 450), "streaming is off unless it is asked for");
}

/// OP8: a streamed plan that turns out not to be sound: what has begun is a fact, what has effects never
/// ran, and the repair goes on from there.
#[tokio::test(start_paused = true)]
async fn op8_a_bad_end_of_a_streamed_plan_is_repaired_beside_what_ran() {
    let acts = Counter::default();
    let count = acts.clone();
    let act = tool(spec("act", Effect::Effectful), move |_, _| {
        count.add();
        async { Ok(ToolOutput::text("done")) }
    });
    let written = [
        r#"{"action_plan": {"step1": {"function": "look", "args": {}}, "#,
        r#""step2": {"function": "act", "args": {}}, "#,
        r#""step3": {"function": "lok", "args": {}}}}"#,
    ];
    let repaired = r#"{"action_plan": {"step2": {"function": "look", "args": {"x": "$$step1.result$$"}, "dependence": [1]}}}"#;
    let model = model([
        Answer::pieces(written.map(|piece| (ms(100), piece))),
        repaired.into(),
        "done".into(),
    ]);
    let agent = agent(&model, vec![says("look", 10, "ok"), act]);
    let report = plan_and_run(&with(agent, |settings| settings.stream = true)).await;
    assert_eq!((times(&report, 1), acts.get()), ((100, 110), 0));
    assert_eq!((times(&report, 2), report.answer()), ((300, 310), Some("done")));
    let repair = asked(&model.requests()[1]);
    assert!(
        repair.contains("`lok`") && repair.contains(r#"{"step":1,"function":"look""#),
        "{repair}"
    );
}

/// OP15: a tool that sees the whole context is given it, with all that was found by then, and its failure
/// asks for no new plan.
#[tokio::test(start_paused = true)]
async fn op15_a_tool_with_the_global_context_settles_its_matters_itself() {
    let write = ToolSpec { global_context: true, ..spec("write_article", Effect::ReadOnly) };
    let seen = Arc::new(std::sync::Mutex::new(None));
    let see = seen.clone();
    let write = tool(write, move |_, context| {
        *see.lock().unwrap() = context.global_context;
        async { Ok(ToolOutput::text(r#"{"status":"fail"}"#)) }
    });
    let long = "西湖的雨。".repeat(3000);
    let plan = plan(&[(1, "find", &[]), (2, "write_article", &[1])]);
    let model = texts(&[&plan, "done"]);
    let agent = agent(&model, vec![write, says("find", 5, &long)]).with_head("You write.");
    let report = agent.one_plan(full().as_mut(), &task("写一篇文章")).await.unwrap();
    let context = seen.lock().unwrap().take().unwrap();
    for part in ["You write.", "写一篇文章", long.as_str()] {
        assert!(context.contains(part), "{part:.20} in {context:.200}");
    }
    assert_eq!((calls(&report, Purpose::Replan), report.answer()), (0, Some("done")));
}

/// OP12, OP17: a long result is cut in what the model is told, with a mark of how much and of where it
/// is, and is whole for the steps that use it.
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
    let agent = with(agent(&model, vec![says("read", 1, &long), length]), |settings| {
        settings.results_tokens = 500;
    });
    let report = plan_and_run(&agent).await;
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

/// OP14: what the provider says no to is not mended by asking again; what cannot be read is.
#[tokio::test(start_paused = true)]
async fn op14_a_failing_model_ends_the_run_and_an_unreadable_answer_is_repaired() {
    let error = |kind| Answer::from(ModelError::new(kind, "no"));
    let refused = model([error(ModelErrorKind::Authentication)]);
    let report = plan_and_run(&agent(&refused, vec![])).await;
    let stop = Stop::ModelFailed { message: "no".to_owned() };
    assert_eq!((&report.trajectory.outcome.stop, report.answer()), (&stop, None));

    let unreadable = model([
        error(ModelErrorKind::Response),
        plan(&[(1, "a", &[])]).into(),
        error(ModelErrorKind::Response),
        "done".into(),
    ]);
    let report = plan_and_run(&agent(&unreadable, vec![says("a", 1, "ok")])).await;
    assert_eq!(report.answer(), Some("done"));
}

/// OP12: a run that is resumed asks the model nothing that it was answered, and calls nothing that has
/// a result; it comes to the same end.
#[tokio::test(start_paused = true)]
async fn r12_a_resumed_run_asks_and_calls_nothing_twice() {
    let journal = Arc::new(MemoryJournal::default());
    let counter = Counter::default();
    let tools = |counter: Counter| {
        let weather = tool(spec("search_weather", Effect::Effectful), move |_, _| {
            counter.add();
            async { Ok(ToolOutput::text("小雨")) }
        });
        Toolbox::new([weather, says("food_delivery", 1, "送到")]).unwrap()
    };
    let decision = plan(&[(3, "food_delivery", &[1])]);
    let answers = [SEED_WEATHER, decision.as_str(), "好了。"];
    // Killed while the model was asked for its n-th answer.
    for killed_at in 0..answers.len() {
        let run = format!("run-{killed_at}");
        let before = counter.get();
        let hang = Answer::text("never").after(ms(1_000_000_000));
        let first = model(answers[..killed_at].iter().map(|text| Answer::text(text)).chain([hang]));
        let executor = Executor::new(tools(counter.clone())).with_journal(journal.clone());
        let killed = Agent::new(first.clone(), executor);
        let task = foldback_agent::Task::new(&run, "go");
        let mut context = full();
        let going = killed.one_plan(context.as_mut(), &task);
        assert!(tokio::time::timeout(ms(1_000), going).await.is_err(), "it hangs");
        assert_eq!(first.calls(), killed_at + 1);

        let second = texts(&answers[killed_at..]);
        let executor = Executor::new(tools(counter.clone())).with_journal(journal.clone());
        let resumed = Agent::new(second.clone(), executor);
        let mut context = full();
        let report = resumed.one_plan(context.as_mut(), &task).await.unwrap();
        assert_eq!(report.answer(), Some("好了。"));
        assert_eq!((second.left(), counter.get() - before), (0, 1), "killed at {killed_at}");
        assert_eq!(text(&report, 3), "送到");
        assert_eq!(conversation(context.as_ref()).len(), 6);
    }
}

/// OP13: a cancelled run ends at once, keeps what it has, and says so.
#[tokio::test(start_paused = true)]
async fn op13_a_cancelled_run_ends_with_what_it_has() {
    for cancel_at in [50, 150, 250] {
        let model = model([
            Answer::from(plan(&[(1, "a", &[]), (2, "a", &[1])])).after(ms(100)),
            Answer::text("done").after(ms(100)),
        ]);
        let agent = agent(&model, vec![says("a", 60, "ok")]);
        let task = task("go");
        let cancelled = task.cancelled.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ms(cancel_at)).await;
            cancelled.cancel();
        });
        let report = agent.one_plan(full().as_mut(), &task).await.unwrap();
        assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled, "at {cancel_at}");
        let cancelled = report.trajectory.results.iter().filter(|result| {
            matches!(&result.result, StepResult::Error { failure } if failure.kind == FailureKind::Cancelled)
        });
        assert_eq!(cancelled.count(), [0, 1, 0][(cancel_at / 100) as usize], "at {cancel_at}");
    }
}

/// OP18: the run stands in the conversation as messages that chat APIs take, plan, calls and results.
#[tokio::test(start_paused = true)]
async fn op18_the_conversation_is_told_what_was_done() {
    let model = texts(&[SEED_WEATHER, &plan(&[(3, "down", &[1])]), NOTHING_MORE, "好了。"]);
    let agent = agent(&model, vec![says("search_weather", 1, "小雨"), fails("down", 1)])
        .with_head("You help.");
    let mut context = full();
    let report = agent.one_plan(context.as_mut(), &task("go")).await.unwrap();
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
