//! Plans that are repaired, and runs that continue step by step.

use super::{NOTHING_MORE, SEED_WEATHER, calls, changed, plan};
use crate::script::{
    agent, asked, conversation, full, model, plan_and_run, says, task, text, texts, times,
};
use crate::toolkit::{Counter, ms, spec, tool};
use foldback_agent::trajectory::DegradeReason;
use foldback_agent::{OnePlan, Purpose, Stop};
use foldback_llm::{Answer, ModelError, ModelErrorKind};
use foldback_tool::{Effect, ToolOutput};

/// OP14: if neither a plan nor its repair is sound, the run continues as ReAct, which is recorded with its
/// reason. The request for the repair lists all faults at once.
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
        report.trajectory.tokens.keys().cloned().collect::<Vec<_>>(),
        [Purpose::PLANNER, Purpose::REPAIR, Purpose::REACT]
    );
    let repair = asked(&model.requests()[1]);
    for part in ["`serch`", "step9", "step2 -> step3"] {
        assert!(repair.contains(part), "{part}\nin\n{repair}");
    }
    let messages = &model.requests()[2].messages;
    let told: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(told.len(), 2, "what failed would be imitated: {told:?}");
    assert!(told[1].contains("There are no more plans") && !told[1].contains("serch"), "{told:?}");
    // The example can be run, and has no blanks.
    let example =
        r#"A plan has this form: {"action_plan": {"step1": {"function": "search", "args": {}}}}"#;
    assert!(repair.ends_with(example), "{repair}");
    assert_eq!(report.trajectory.plan.iter().filter(|plan| !plan.findings.is_empty()).count(), 2);
}

/// OP14: a plan without steps is a plan; one with something that is not a step is not.
#[tokio::test(start_paused = true)]
async fn op14_an_empty_plan_is_a_plan_and_a_hollow_one_is_not() {
    let report = plan_and_run(&agent(&texts(&[NOTHING_MORE, "done"]), vec![])).await;
    assert_eq!((report.answer(), calls(&report, Purpose::REPAIR)), (Some("done"), 0));
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
            (report.answer(), calls(&report, Purpose::REPAIR)),
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
    assert_eq!(calls(&report, Purpose::REPAIR), 1);
    assert!(asked(&model.requests()[1]).contains("ends"), "{}", asked(&model.requests()[1]));
}

/// OP14: a decision for which no replan is left is made step by step, with all earlier work in view.
#[tokio::test(start_paused = true)]
async fn op14_an_open_decision_after_the_last_replan_degrades() {
    let model = texts(&[SEED_WEATHER, "我看着办。"]);
    let tools = vec![says("search_weather", 10, "小雨")];
    let agent = agent(&model, tools);
    let one_plan = OnePlan::new(changed(|settings| settings.max_replans = 0));
    let mut context = full();
    let report = agent.run(&one_plan, context.as_mut(), &task("go")).await.unwrap();
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
    assert_eq!(calls(&report, Purpose::REACT), 1);
    let told = asked(&model.requests()[1]);
    assert!(told.contains("未知领域的科研") && told.contains("step by step"), "{told}");
}

/// OP8: a streamed plan that turns out not to be sound: steps that started are facts, steps with effects never
/// ran, and the repair continues from there.
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
    let report = plan_and_run(&agent).await;
    assert_eq!((times(&report, 1), acts.get()), ((100, 110), 0));
    assert_eq!((times(&report, 2), report.answer()), ((300, 310), Some("done")));
    let repair = asked(&model.requests()[1]);
    assert!(
        repair.contains("`lok`") && repair.contains(r#"{"step":1,"function":"look""#),
        "{repair}"
    );
}

/// OP14: a refusal of the provider is not repaired by asking again; an unreadable answer is.
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

/// OP14: after the plans, a plan is neither run nor the answer: the model is asked to work step by step.
#[tokio::test(start_paused = true)]
async fn op14_there_are_no_plans_step_by_step() {
    let open = r#"{"mode": "react", "reason": "要看了结果才知道"}"#;
    let model = texts(&[open, &plan(&[(1, "a", &[])]), "没有做完。"]);
    let report = plan_and_run(&agent(&model, vec![says("a", 1, "ok")])).await;
    assert_eq!((report.answer(), model.calls()), (Some("没有做完。"), 3));
    assert!(asked(&model.requests()[2]).contains("No step of your plan was run"));
}
