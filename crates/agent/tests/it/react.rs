//! Step by step: what the loop records, what it survives, and when it ends.

use crate::contexts::Altered;
use crate::script::{
    Remembering, agent, asked, conversation, fails, full, model, says, task, walk, walk_by,
};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::trajectory::TurnClass;
use foldback_agent::{
    Agent, AgentError, Executor, OnePlan, Purpose, React, ReactSettings, Resource, Settings,
    SpendLimits, SpendTracker, Stop,
};
use foldback_core::{
    Budget, ContextError, ContextManager, Estimate, Message, Role, TokenCounter, ToolAnswer,
    ToolCall,
};
use foldback_llm::{Answer, Capabilities, ModelError, ModelErrorKind, ScriptedModel, StopReason};
use foldback_planner::{Limits, StepId, StepResult};
use foldback_tool::{Effect, FailureKind, ToolOutput, Toolbox};
use std::sync::Arc;

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, name, arguments)
}

fn results(messages: &[Arc<Message>]) -> Vec<String> {
    let results = messages.iter().filter(|message| *message.role() == Role::Tool);
    results.map(|message| message.text().into_owned()).collect()
}

/// ET10: the calls of one message run together; their results are in the order of the calls, not in that
/// in which they ended.
#[tokio::test(start_paused = true)]
async fn et10_calls_of_one_message_run_together() {
    let model = model([
        vec![call("c1", "slow", "{}"), call("c2", "quick", "")].into(),
        call("c3", "quick", "{}").into(),
        "杭州下雨。".into(),
    ]);
    let tools = vec![says("slow", 300, "慢"), says("quick", 100, "快")];
    let (report, messages) = walk(&agent(&model, tools)).await;
    assert_eq!(results(&messages), ["慢", "快", "快"]);
    assert_eq!(report.answer(), Some("杭州下雨。"));
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
    assert_eq!(report.trajectory.timing.total_us, 400_000);
    let classes: Vec<TurnClass> =
        report.trajectory.strategy.turns.iter().map(|turn| turn.class).collect();
    assert_eq!(classes, [TurnClass::PlanOnce, TurnClass::StepObserve]);
    assert_eq!(report.trajectory.tokens[&Purpose::REACT].calls, 3);
    assert_eq!(report.trajectory.spent().usage, model.usage());
    let names: Vec<String> =
        model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["quick", "slow"]);
}

/// MC15: a failed call and its error stay in every later prompt, byte for byte, whatever the model
/// tries next.
#[tokio::test(start_paused = true)]
async fn mc15_errors_stay() {
    let model = model([
        call("c1", "down", r#"{"q": 1}"#).into(),
        call("c2", "down", r#"{"q": 2}"#).into(),
        call("c3", "up", "{}").into(),
        "done".into(),
    ]);
    let (_, messages) = walk(&agent(&model, vec![fails("down", 1), says("up", 1, "ok")])).await;
    let error = "Error (tool): 断网: the network is down";
    assert_eq!(results(&messages), [error, error, "ok"]);
    let requests = model.requests();
    for pair in requests.windows(2) {
        let kept = &pair[1].messages[..pair[0].messages.len()];
        assert_eq!(kept, pair[0].messages, "nothing is taken back");
    }
}

/// MC15: whatever the model writes, the loop continues: the mistake is an observation, its neighbours run,
/// and the conversation stays a request that chat APIs accept.
#[tokio::test(start_paused = true)]
async fn mc15_malformed_output_ends_in_an_observation() {
    let mut typed = spec("typed", Effect::ReadOnly);
    typed.definition.parameters =
        r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#.to_owned();
    let huge = format!(r#"{{"n": 1, "text": "{}"}}"#, "长".repeat(1 << 19));
    let cases: [(&str, Vec<ToolCall>, &[&str]); 12] = [
        ("truncated JSON", vec![call("a", "typed", r#"{"n": "#)], &["arguments"]),
        ("no JSON", vec![call("a", "typed", "n=1")], &["arguments"]),
        ("no object", vec![call("a", "typed", "[1]")], &["expected an object"]),
        ("a wrong type", vec![call("a", "typed", r#"{"n": "one"}"#)], &["integer"]),
        ("a missing argument", vec![call("a", "typed", "{}")], &["required"]),
        ("a key twice", vec![call("a", "typed", r#"{"n": 1, "n": 2}"#)], &["arguments"]),
        ("an unknown tool", vec![call("a", "tpyed", r#"{"n": 1}"#)], &["did you mean"]),
        ("no name", vec![call("a", "", r#"{"n": 1}"#)], &["unknown tool"]),
        ("huge arguments", vec![call("a", "typed", &huge)], &["bytes"]),
        (
            "two calls with one id",
            vec![call("a", "typed", r#"{"n": 1}"#), call("a", "typed", r#"{"n": 2}"#)],
            &[r#"{"n":1}"#, r#"{"n":2}"#],
        ),
        (
            "calls without ids",
            vec![call("", "typed", r#"{"n": 1}"#), call("", "typed", r#"{"n": 2}"#)],
            &[r#"{"n":1}"#, r#"{"n":2}"#],
        ),
        (
            "a bad call among good ones",
            vec![
                call("a", "typed", r#"{"n": 1}"#),
                call("b", "typed", "{"),
                call("c", "天气", "{}"),
                call("d", "typed", r#"{"n": 4}"#),
            ],
            &[r#"{"n":1}"#, "arguments", "unknown tool", r#"{"n":4}"#],
        ),
    ];
    for (what, calls, expected) in cases {
        // The same mistake twice, then an answer.
        let model = model([calls.clone().into(), Answer::calls("again", calls), "done".into()]);
        let echo =
            tool(typed.clone(), |arguments, _| async move { Ok(ToolOutput::text(arguments)) });
        let (report, messages) = walk(&agent(&model, vec![echo])).await;
        assert_eq!(report.answer(), Some("done"), "{what}");
        let results = results(&messages);
        assert_eq!(results.len(), 2 * expected.len(), "{what}: {results:?}");
        for (result, expected) in results.iter().zip(expected.iter().cycle()) {
            assert!(result.contains(expected), "{what}: {expected:?} in {result:.300}");
        }
    }
}

/// S10: more calls than a plan may have are an observation as well.
#[tokio::test(start_paused = true)]
async fn s10_too_many_calls_in_one_message_are_an_observation() {
    let calls: Vec<ToolCall> = (0..5).map(|n| call(&format!("c{n}"), "a", "{}")).collect();
    let model = model([calls.into(), "done".into()]);
    let mut settings = Settings::default();
    settings.quota.plan = Limits::default().with_steps(4);
    let executor = Executor::new(Toolbox::new([says("a", 1, "ok")]).unwrap());
    let agent = Agent::new(model, executor.with_settings(settings));
    let (report, messages) = walk(&agent).await;
    assert_eq!(report.answer(), Some("done"));
    assert!(results(&messages).iter().all(|r| r.contains("quota") && r.contains("at most 4")));
    let result = report.trajectory.result(0, StepId(3)).unwrap();
    assert!(matches!(result, StepResult::Error { failure } if failure.kind == FailureKind::Quota));
}

/// MC15: answers that are empty, cut off, or unreadable are requested again, a few times.
#[tokio::test(start_paused = true)]
async fn mc15_unusable_answers_are_asked_for_again() {
    let unreadable = || Answer::from(ModelError::new(ModelErrorKind::Response, "no JSON"));
    let cut = || Answer::text("The answer is").stopped(StopReason::Length);
    let rescued = model(["".into(), cut(), unreadable(), "42".into()]);
    let settings = ReactSettings::default().with_max_unusable(4);
    let (report, messages) = walk_by(&agent(&rescued, vec![]), settings).await;
    assert_eq!(report.answer(), Some("42"));
    assert!(messages.iter().any(|message| message.text() == "The answer is"));

    let withheld = || Answer::text("前三步是 1.").stopped(StopReason::Filtered);
    for answers in [
        ["".into(), "".into(), " ".into()],
        [cut(), cut(), cut()],
        [withheld(), withheld(), withheld()],
    ] {
        let hopeless = model(answers);
        let (report, _) = walk(&agent(&hopeless, vec![])).await;
        assert!(matches!(report.trajectory.outcome.stop, Stop::ModelFailed { .. }));
        assert_eq!((report.answer(), hopeless.calls()), (None, 3));
    }
    // A reason that is not known says nothing against an answer.
    let known = model([Answer::text("42").stopped(StopReason::Other("eos".to_owned()))]);
    let (report, _) = walk(&agent(&known, vec![])).await;
    assert_eq!(report.answer(), Some("42"));
    let refused = model([ModelError::new(ModelErrorKind::ContextLength, "too long").into()]);
    let (report, _) = walk(&agent(&refused, vec![])).await;
    let stop = Stop::ModelFailed { message: "too long".to_owned() };
    assert_eq!(report.trajectory.outcome.stop, stop);
    assert_eq!(report.trajectory.calls.len(), 1);
}

/// ET10: the run ends at its maximum number of steps and at its budget, with every call answered.
#[tokio::test(start_paused = true)]
async fn et10_runs_end_at_their_bounds() {
    let looping = || {
        foldback_llm::ScriptedModel::answering(|request| {
            call(&format!("c{}", request.messages.len()), "a", "{}").into()
        })
    };
    let of_tokens = SpendLimits::default().with_tokens(200);
    for (max_steps, limits, stop) in [
        (Some(4), SpendLimits::default(), Stop::MaxSteps),
        (None, of_tokens, Stop::Exhausted { resource: Resource::Tokens }),
    ] {
        let model = Arc::new(looping());
        let settings = ReactSettings::default().with_max_steps(max_steps);
        let agent = agent(&model, vec![says("a", 1, "ok")]);
        let task = task("go").with_spend(SpendTracker::new(limits, None).unwrap());
        let mut context = full();
        let report = agent.run(&React::new(settings), context.as_mut(), &task).await.unwrap();
        assert_eq!((&report.trajectory.outcome.stop, report.answer()), (&stop, None));
        assert_eq!(results(&conversation(context.as_ref())).len(), model.calls());
        assert!((2..30).contains(&model.calls()), "{}", model.calls());
    }
    let model = Arc::new(looping());
    let task = task("go");
    let cancelled = task.cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(95)).await;
        cancelled.cancel();
    });
    let mut context = full();
    let report = agent(&model, vec![says("a", 10, "ok")])
        .run(&React::default(), context.as_mut(), &task)
        .await
        .unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled);
    assert_eq!(results(&conversation(context.as_ref())).len(), 10);
}

/// ET10: calls of the policy's own tools go to the policy, beside the agent's.
#[tokio::test(start_paused = true)]
async fn et10_memory_tools_are_the_policy_s() {
    let mut context = Remembering::new("昨天说过：蓝鹭");
    let model = model([
        vec![call("c1", "a", "{}"), call("c2", "load", r#"{"id": 1}"#), call("c3", "a", "{}")]
            .into(),
        "done".into(),
    ]);
    let agent_ = agent(&model, vec![says("a", 1, "ok")]);
    let report = agent_.run(&React::default(), &mut context, &task("go")).await.unwrap();
    assert_eq!(results(&conversation(&context)), ["ok", "昨天说过：蓝鹭", "ok"]);
    let record = &report.trajectory;
    let called: Vec<(&str, StepId)> =
        record.tool_calls().map(|call| (call.function.as_str(), call.step)).collect();
    assert_eq!(called, [("load", StepId(2)), ("a", StepId(1)), ("a", StepId(3))]);
    let recalled = record.result(0, StepId(2)).unwrap();
    assert!(matches!(recalled, StepResult::Success { data } if data.text == "昨天说过：蓝鹭"));
    assert_eq!((record.strategy.turns.len(), record.strategy.turns[0].calls), (1, 3));
    let names: Vec<String> =
        model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["a", "load"]);

    let same = agent(&crate::script::texts(&["x"]), vec![says("load", 1, "ok")]);
    let error = same.run(&React::default(), &mut context, &task("go")).await.unwrap_err();
    assert!(matches!(&error, AgentError::SameName { name } if name == "load"), "{error}");
}

/// MC15: when the memory fails the run ends with its error, and no call stays without a result.
#[tokio::test(start_paused = true)]
async fn mc15_a_failing_memory_leaves_no_call_unanswered() {
    let model = model([vec![
        call("c1", "a", "{}"),
        call("c2", "load", "{}"),
        call("c3", "load", r#"{"id": "bad"}"#),
        call("c4", "load", "{}"),
    ]
    .into()]);
    let mut context = Altered::loading(|call| match call.arguments.as_str() {
        "{}" => Ok(ToolAnswer { text: "recalled".to_owned(), is_error: false }),
        _ => Err(ContextError { message: "磁盘 is full".to_owned(), source: None }),
    });
    let agent = agent(&model, vec![says("a", 1, "ok")]);
    let error = agent.run(&React::default(), &mut context, &task("go")).await.unwrap_err();
    assert!(matches!(&error, AgentError::Context(_)), "{error}");
    let results = results(&conversation(&context));
    assert_eq!((results.len(), results[1].as_str()), (4, "recalled"));
    for unknown in [&results[0], &results[2], &results[3]] {
        assert!(unknown.starts_with("Not known: ") && unknown.contains("磁盘"), "{unknown}");
    }
}

/// MC15: the model learns of an unreadable answer: it is not sent the same request again.
#[tokio::test(start_paused = true)]
async fn mc15_an_unreadable_answer_is_told() {
    let unreadable = ModelError::new(ModelErrorKind::Response, "its arguments are no JSON");
    let model = model([unreadable.into(), "done".into()]);
    walk(&agent(&model, vec![])).await;
    let requests = model.requests();
    assert_eq!(requests[1].messages.len(), requests[0].messages.len() + 1);
    assert!(asked(&requests[1]).contains("its arguments are no JSON"), "{:?}", requests[1]);
}

/// MC15: the ids of a run are its own, even if the context no longer shows what was said before.
#[tokio::test(start_paused = true)]
async fn mc15_ids_of_folded_messages_are_not_used_again() {
    // The latest request and what follows it are shown.
    let mut context = Altered::showing(|prompt| {
        let last = prompt.messages.iter().rposition(|message| *message.role() == Role::User);
        prompt.messages.drain(..last.unwrap_or(0));
    });
    let plan = r#"{"action_plan": {"step1": {"function": "a", "args": {}}}}"#;
    for run in 0..3 {
        let task = foldback_agent::Task::new(&format!("run-{run}"), "go");
        let walker = model([call("step1", "a", "{}").into(), "done".into()]);
        let walker = agent(&walker, vec![says("a", 1, "ok")]);
        walker.run(&React::default(), &mut context, &task).await.unwrap();
        let planner = agent(&crate::script::texts(&[plan, "done"]), vec![says("a", 1, "ok")]);
        planner.run(&OnePlan::default(), &mut context, &task).await.unwrap();
    }
    // This also checks for duplicate ids.
    assert_eq!(results(&conversation(context.inner.as_ref())).len(), 6);
}

/// ET10: the agent's tools, and its instructions if the conversation did not begin with them, take their
/// part of the budget of a prompt.
#[tokio::test(start_paused = true)]
async fn et10_tools_count_in_the_budget() {
    let tokens = |text: &str| Estimate.count(text);
    let head = "你帮助旅行者。".repeat(20);
    for (goes_on, head) in [(false, ""), (true, head.as_str())] {
        let mut context = Altered::bounded();
        if goes_on {
            context.record(Message::user("Hello.")).unwrap();
            context.record(Message::assistant("Hi.")).unwrap();
        }
        let mut long = spec("long", Effect::ReadOnly);
        long.definition.description = "查天气 ".repeat(50);
        let definition = long.definition.clone();
        let tool = tool(long, |_, _| async { Ok(ToolOutput::text("ok")) });
        let prompt = Budget { tokens: Some(5_000) };
        let agent = agent(&model(["done".into()]), vec![tool]).with_system_prompt(head);
        let react = React::new(ReactSettings::default().with_prompt(prompt));
        agent.run(&react, &mut context, &task("go")).await.unwrap();
        let taken = tokens(&definition.name)
            + tokens(&definition.description)
            + tokens(&definition.parameters)
            + tokens(head);
        let left = context.bounds.lock().unwrap().iter().copied().flatten().min().unwrap();
        assert!((5_000 - taken - 10..=5_000 - taken).contains(&left), "{left}, {taken} taken");
    }
}

/// MC3: requests have cache marks, those of the policy first, as many as providers accept; a mark in the
/// agent's instructions counts, and its text is not sent.
#[tokio::test(start_paused = true)]
async fn mc3_requests_are_marked() {
    let head = "You help.\n<!-- CACHE_BREAKPOINT -->\n你会说中文。";
    let marks = Capabilities::default().with_cache_marks(true);
    let plan = r#"{"action_plan": {"step1": {"function": "a", "args": {}}}}"#;
    for (calls, answers) in [
        (true, vec![call("c", "a", "{}").into(), "done".into()]),
        (false, vec![Answer::text(plan), "done".into()]),
    ] {
        let model = Arc::new(ScriptedModel::new(answers).with_capabilities(marks));
        let agent = agent(&model, vec![says("a", 1, "ok")]).with_system_prompt(head);
        let task = task("go");
        if calls {
            agent.run(&React::default(), full().as_mut(), &task).await.unwrap();
        } else {
            agent.run(&OnePlan::default(), full().as_mut(), &task).await.unwrap();
        }
        for request in model.requests() {
            assert_eq!(request.messages[0].text(), "You help.");
            assert!(request.messages[1].text().starts_with("你会说中文。"));
            let last = request.messages.len() - 1;
            assert!(request.cache_marks.starts_with(&[0, 1]), "{:?}", request.cache_marks);
            assert!(request.cache_marks.len() <= 4 && request.cache_marks.is_sorted());
            assert_eq!(request.cache_marks.last(), Some(&last));
        }
    }
    // If the provider accepts no marks, the text is not sent either.
    let plain = model(["done".into()]);
    agent(&plain, vec![])
        .with_system_prompt(head)
        .run(&React::default(), full().as_mut(), &task("go"))
        .await
        .unwrap();
    assert_eq!(plain.requests()[0].messages[0].text(), "You help.");
}

/// MC1: a clock in the agent's instructions or tools is an error that names it; on request it is made
/// coarser.
#[tokio::test(start_paused = true)]
async fn mc1_a_clock_in_the_head_is_refused_or_made_coarse() {
    let head = "当前时间:2025年11月22日 3时5分54秒。You help.";
    let model = model(["done".into()]);
    let clocked = agent(&model, vec![]).with_system_prompt(head);
    for error in [
        clocked.run(&React::default(), full().as_mut(), &task("go")).await.unwrap_err(),
        clocked.run(&OnePlan::default(), full().as_mut(), &task("go")).await.unwrap_err(),
    ] {
        assert!(matches!(error, AgentError::Clock(_)));
        assert!(error.to_string().contains("3时5分54秒"), "{error}");
    }
    assert_eq!(model.calls(), 0);
    let coarse = agent(&model, vec![]).with_coarse_system_prompt(head);
    coarse.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    let told = model.requests()[0].messages[0].text().into_owned();
    assert!(told.contains("2025年11月22日") && !told.contains("54秒"), "{told}");
}

/// OP15: step by step, a tool that sees the whole context is given the conversation.
#[tokio::test(start_paused = true)]
async fn op15_the_conversation_reaches_tools_that_see_everything() {
    let write = spec("write_article", Effect::ReadOnly).with_global_context(true);
    let write = tool(write, |_, context| async move {
        Ok(ToolOutput::text(context.global_context.as_deref().unwrap_or("nothing")))
    });
    let model = model([
        call("c1", "find", "{}").into(),
        call("c2", "write_article", "{}").into(),
        "done".into(),
    ]);
    let agent =
        agent(&model, vec![write, says("find", 1, "西湖的雨")]).with_system_prompt("You write.");
    let (_, messages) = walk(&agent).await;
    assert_eq!(results(&messages)[1], "system: You write.\n\nuser: go\n\ntool: 西湖的雨");
}

/// MC15: ids that an earlier run in the same conversation has used are not used again.
#[tokio::test(start_paused = true)]
async fn mc15_ids_are_unique_over_runs_of_one_conversation() {
    let mut context = full();
    for run in ["first", "second"] {
        let model = model([call("c", "a", "{}").into(), "done".into()]);
        let agent = agent(&model, vec![says("a", 1, "ok")]);
        let task = foldback_agent::Task::new(run, "go");
        agent.run(&React::default(), context.as_mut(), &task).await.unwrap();
        assert_eq!(asked(&model.requests()[1]), "ok");
    }
    assert_eq!(conversation(context.as_ref()).len(), 8);
}
