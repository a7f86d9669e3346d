//! Steps that fail: another attempt, another plan, the end.

use super::{agent, by_name, few_turns, name, names, page, planning, request, run, update};
use crate::keeping::calling;
use crate::script::{conversation, full, says, task};
use foldback_agent::{OnePlan, Stop};
use foldback_flow::{Flow, FlowSettings};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel, StopReason, ToolChoice};
use serde_json::json;
use std::sync::Arc;

fn terminate(status: &str) -> Answer {
    calling("terminate", json!({"status": status}))
}

fn given_up(step: usize, why: &str) -> Stop {
    Stop::StepFailed { step, why: why.to_owned() }
}

/// OM11: a step that fails is blocked with the reason and retried twice with it, then the rest is replanned,
/// three times; then the run stops and reports its progress.
#[tokio::test]
async fn om11_retries_and_replans_are_bounded() {
    let blocked = || Answer::text("BLOCKED: 断网");
    let model = Arc::new(ScriptedModel::answering(move |request| {
        let name = name(request);
        match name.as_str() {
            "flow/plan" => planning(&["查", "订", "报"]),
            "step-1.1/react/1" => Answer::text("sunny"),
            _ if name.starts_with("flow/replan-") => {
                update(&[&format!("another way {name}"), "报"])
            }
            _ if name.starts_with("step-") => blocked(),
            _ => Answer::text("只查到了天气。"),
        }
    }));
    let mut context = full();
    let report = agent(&model, vec![])
        .run(&Flow::new(few_turns()), context.as_mut(), &task("go"))
        .await
        .unwrap();
    let mut expected = vec!["flow/plan".to_owned(), "step-1.1/react/1".to_owned()];
    for step in 2..=5 {
        expected.extend((1..=3).map(|attempt| format!("step-{step}.{attempt}/react/1")));
        if step < 5 {
            expected.push(format!("flow/replan-{}", step - 1));
        }
    }
    expected.push("summary/summary".to_owned());
    assert_eq!(names(&model), expected);
    assert_eq!(
        (report.trajectory.outcome.stop.clone(), report.answer()),
        (given_up(4, "断网"), Some("只查到了天气。"))
    );
    let page = page(&request(&model, "summary/summary"));
    let lines = [
        "0. [✓] 查\n",
        "1. [!] 订\n   Notes: 断网\n",
        "2. [!] another way flow/replan-1\n   Notes: 断网\n",
        "4. [!] another way flow/replan-3\n   Notes: 断网\n5. [ ] 报\n",
        "Step 4: not done: 断网",
    ];
    for line in lines {
        assert!(page.contains(line), "{line} in {page}");
    }
    // The failures stay in the conversation.
    let told = conversation(context.as_ref());
    let failures = told.iter().filter(|message| message.text().contains("failed: 断网")).count();
    assert_eq!(failures, 12);
}

/// OM11: the second attempt learns why the first failed, starts afresh, and may succeed; the failure stays
/// in the plan.
#[tokio::test]
async fn om11_a_second_attempt_knows_of_the_first() {
    let model = by_name([
        ("flow/plan", planning(&["订"])),
        ("step-1.1/react/1", Answer::text("**BLOCKED：** 满房\n")),
        ("step-1.2/react/1", Answer::text("订好了")),
    ]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
    let again = request(&model, "step-1.2/react/1");
    assert_eq!(again.messages.len(), 1, "it begins anew");
    assert!(page(&again).contains("was tried before, and failed: 满房\n"), "{}", page(&again));
    let told = page(&request(&model, "summary/summary"));
    assert!(told.contains("0. [✓] 订\n   Notes: failed before: 满房\n"), "{told}");
}

/// OM11: a new rest replaces the steps after the blocked one; whatever the model writes, what is done stays.
/// If it plans nothing, the run stops.
#[tokio::test]
async fn om11_the_rest_is_made_anew() {
    let blocked = || Answer::text("BLOCKED: 满房");
    for (rest, expected) in [
        (&["换一家", "报"][..], "1. [!] 订\n   Notes: 满房\n2. [✓] 换一家\n3. [✓] 报\n"),
        // The model repeats the steps that are done, or all of them.
        (&["查", "换一家", "报"], "1. [!] 订\n   Notes: 满房\n2. [✓] 换一家\n3. [✓] 报\n"),
        (&["查", "订", "换一家"], "1. [!] 订\n   Notes: 满房\n2. [✓] 换一家\n"),
        (&["订"], "1. [!] 订\n   Notes: 满房\n2. [✓] 订\n"),
    ] {
        let model = by_name([
            ("flow/plan", planning(&["查", "订", "写"])),
            ("step-2.1/react/1", blocked()),
            ("step-2.2/react/1", blocked()),
            ("step-2.3/react/1", blocked()),
            ("flow/replan-1", update(rest)),
        ]);
        let report = run(&agent(&model, vec![]), few_turns()).await;
        assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
        let asked = request(&model, "flow/replan-1");
        assert!(page(&asked).contains("Step 1 cannot be done: 满房"), "{}", page(&asked));
        assert_eq!((asked.tools.len(), &asked.tool_choice), (1, &ToolChoice::Auto));
        let told = page(&request(&model, "summary/summary"));
        assert!(told.contains(&format!("0. [✓] 查\n{expected}")), "{told}");
        assert!(!told.contains("写"), "the old rest is gone: {told}");
    }
    let model = by_name([
        ("flow/plan", planning(&["订"])),
        ("step-1.1/react/1", blocked()),
        ("step-1.2/react/1", blocked()),
        ("step-1.3/react/1", blocked()),
        ("flow/replan-1", Answer::text("Nothing helps.")),
    ]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    assert_eq!(report.trajectory.outcome.stop, given_up(0, "满房"));
    assert_eq!(names(&model).last().unwrap(), "summary/summary");
}

/// OM11, B9: in whatever way a step fails to finish, it is not completed, and its reason is reported. The
/// reference leaves it in progress for ever, or marks it completed.
#[tokio::test]
async fn om11_a_step_that_is_not_done_is_not_completed() {
    type Way = (&'static str, fn(u32) -> Answer, &'static str);
    let ways: [Way; 5] = [
        ("gives up by the tool", |_| terminate("failure"), "failure"),
        ("gives up in words", |_| Answer::text("BLOCKED:"), "without a reason"),
        (
            "reaches its last turn",
            |turn| calling("look", json!({"turn": turn})),
            "Terminated: Reached max steps (4)",
        ),
        (
            "answers what cannot be read",
            |_| ModelError::new(ModelErrorKind::Response, "no JSON").into(),
            "no JSON",
        ),
        (
            "outgrows the model's window",
            |_| ModelError::new(ModelErrorKind::ContextLength, "300000 tokens").into(),
            "300000 tokens",
        ),
    ];
    for (what, way, reason) in ways {
        let model = Arc::new(ScriptedModel::answering(move |request| {
            let name = name(request);
            let turn = || name.rsplit('/').next().and_then(|turn| turn.parse().ok()).unwrap_or(0);
            match name.as_str() {
                "flow/plan" => planning(&["一", "二"]),
                _ if name.starts_with("step-1.") => way(turn()),
                _ => Answer::text(&name),
            }
        }));
        let tools = vec![says("look", 0, "nothing yet")];
        let report = run(&agent(&model, tools), few_turns()).await;
        let stop = &report.trajectory.outcome.stop;
        assert!(matches!(stop, Stop::StepFailed { step: 0, .. }), "{what}: {stop:?}");
        let told = page(&request(&model, "summary/summary"));
        let line =
            told.split("0. [!] 一\n   Notes: ").nth(1).unwrap_or_else(|| panic!("{what}: {told}"));
        assert!(line.lines().next().unwrap().contains(reason), "{what}: {told}");
        assert!(told.contains("1. [ ] 二\n"), "{what}: {told}");
        let attempts = names(&model)
            .iter()
            .filter(|name| name.starts_with("step-1.") && name.ends_with("/1"))
            .count();
        assert_eq!(attempts, 3, "{what}: it is not selected for ever");
    }
}

/// OM11, B9: a step that ends itself as done is done for the flow, which continues with the next.
#[tokio::test]
async fn om11_a_step_that_ends_itself_as_done_is_done() {
    let model = by_name([
        ("flow/plan", planning(&["一", "二"])),
        ("step-1.1/react/1", terminate("success")),
    ]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
    assert_eq!(
        names(&model),
        ["flow/plan", "step-1.1/react/1", "step-2.1/react/1", "summary/summary"]
    );
}

/// OM11: a provider that fails says nothing about a step: the run ends, so that it can be resumed.
#[tokio::test]
async fn om11_a_provider_that_fails_is_not_the_steps_fault() {
    let gone = ModelError::new(ModelErrorKind::RateLimit, "busy");
    let model =
        by_name([("flow/plan", planning(&["一", "二"])), ("step-2.1/react/1", gone.into())]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::ModelFailed { message: "busy".to_owned() });
    assert!(report.answer().unwrap().contains("0. [✓] 一\n1. [→] 二\n"));
}

/// OM11: a blocked step is recognised however it is written, also in the last line; a word that only begins
/// the same way does not count.
#[tokio::test]
async fn om11_giving_up_is_read_however_it_is_written() {
    for (answer, reason) in [
        ("Blocked: 断网", Some("断网")),
        ("BLOCKED - no network", Some("no network")),
        ("**blocked** — 断网", Some("断网")),
        ("BLOCKED：断网\n多试几次", Some("断网 多试几次")),
        ("I tried everything.\n\n> Blocked – 断网", Some("断网")),
        ("Blocked-by lists are read", None),
        ("Unblocked: all of it", None),
        ("Nothing is blocked: all is done", None),
        // A list of outcomes: only what is blocked is a reason.
        ("Done: 查, 订\nBlocked: 3 tasks remain", Some("3 tasks remain")),
        ("Done: 查, 订\nBlocked: 0", None),
        ("Blocked: 0 of 3 tasks\nDone: 3", None),
        ("Done: 3 steps\n- Blocked: **0 steps**.", None),
        ("BLOCKED: 0 bytes left on the device", Some("0 bytes left on the device")),
        ("BLOCKED: 0.5 GB free, 3 needed", Some("0.5 GB free, 3 needed")),
        ("Blocked: 0 of 3 hosts answer", Some("0 of 3 hosts answer")),
        ("Blocked: 0 of 3 tasks could be begun", Some("0 of 3 tasks could be begun")),
        ("完成：三项\n**Blocked:** 无。", None),
        ("Done: all\n- Blocked: none", None),
        ("Blocked: none of the hosts answers", Some("none of the hosts answers")),
    ] {
        let model =
            by_name([("flow/plan", planning(&["一"])), ("step-1.1/react/1", Answer::text(answer))]);
        let flow = few_turns().with_max_retries(0).with_max_replans(0);
        let report = run(&agent(&model, vec![]), flow).await;
        let stop = reason.map_or(Stop::Answered, |why| given_up(0, why));
        assert_eq!(report.trajectory.outcome.stop, stop, "{answer}");
        let told = page(&request(&model, "summary/summary"));
        let reason = reason.map(|reason| format!("Notes: {reason}\n"));
        assert!(reason.is_none_or(|reason| told.contains(&reason)), "{told}");
    }
}

/// OM11: a summary that was cut off says so.
#[tokio::test]
async fn om11_what_is_cut_off_says_so() {
    let plan = r#"{"action_plan": {"step1": {"function": "look", "args": {}}}}"#;
    let model = Arc::new(ScriptedModel::answering(move |request| match name(request).as_str() {
        "flow/plan" => planning(&["一"]),
        "summary/summary" => "done".into(),
        name if name.contains("/planner/") => plan.into(),
        _ => Answer::text("三米，然后").stopped(StopReason::Length),
    }));
    let flow = few_turns().with_strategy(Arc::new(OnePlan::default()));
    run(&agent(&model, vec![says("look", 0, "晴")]), flow).await;
    let told = page(&request(&model, "summary/summary"));
    assert!(told.contains("三米，然后\n  (the summary was cut off here)"), "{told}");
}

/// OM11: an answer that is not whole says so, whatever stopped it.
#[tokio::test]
async fn om11_an_answer_that_is_not_whole_says_so() {
    for stop in [StopReason::Length, StopReason::Filtered] {
        let model = Arc::new(ScriptedModel::answering({
            let stop = stop.clone();
            move |request| match name(request).as_str() {
                "flow/plan" => planning(&["一"]),
                "summary/summary" => Answer::text("三米，然后").stopped(stop.clone()),
                _ => "三米".into(),
            }
        }));
        let report = run(&agent(&model, vec![]), few_turns()).await;
        assert_eq!(report.trajectory.outcome.stop, Stop::CutOff, "{stop:?}");
        assert_eq!(report.answer(), Some("三米，然后"));
    }
}

/// OM11: a step whose own flow could not do it has failed: it is tried again, and the whole continues.
#[tokio::test]
async fn om11_a_step_whose_own_flow_fails_is_tried_again() {
    let model = Arc::new(ScriptedModel::answering(|request| {
        let name = name(request);
        match name.as_str() {
            "flow/plan" => planning(&["查", "报"]),
            _ if name.ends_with("/flow/plan") => planning(&["问"]),
            _ if name.starts_with("step-1.1/step-") => Answer::text("BLOCKED: 断网"),
            _ => Answer::text(&name),
        }
    }));
    let inner = Flow::new(few_turns().with_max_retries(0).with_max_replans(0));
    let flow = FlowSettings::default().with_strategy(Arc::new(inner));
    let report = run(&agent(&model, vec![]), flow).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered, "{:?}", names(&model));
    let again = page(&request(&model, "step-1.2/flow/plan"));
    assert!(again.contains("Step 0 could not be done: 断网"), "{again}");
}
