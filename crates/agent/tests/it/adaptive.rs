//! The choice between one plan and going step by step.

use crate::keeping::Watching;
use crate::script::{agent, asked, conversation, full, model, running, says, task};
use crate::toolkit::ms;
use foldback_agent::trajectory::DegradeReason;
use foldback_agent::{
    Adaptive, AgentEvent, Executor, MemoryJournal, OnePlan, React, Report, StrategyName,
};
use foldback_core::{ContextManager, Message, ToolCall};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::Toolbox;
use std::sync::Arc;

const PLAN: &str = r#"{"action_plan": {"step1": {"function": "look", "args": {}}}}"#;

fn look() -> Answer {
    ToolCall::new("c", "look", "{}").into()
}

/// Works on a request; returns the report, the requests, and each strategy that was chosen with its reason.
async fn adapt(
    context: &mut dyn ContextManager,
    request: &str,
    answers: Vec<Answer>,
) -> (Report, Arc<ScriptedModel>, Vec<(StrategyName, String)>) {
    let model = model(answers);
    let agent = agent(&model, vec![says("look", 1, "晴")]);
    let watching = Arc::new(Watching::default());
    let task = task(request).with_observer(watching.clone());
    let report = agent.run(&Adaptive::default(), context, &task).await.unwrap();
    let events = watching.0.lock();
    let chosen = events.iter().filter_map(|(_, event)| match event {
        AgentEvent::Chose { strategy, because } => Some((strategy.clone(), because.clone())),
        _ => None,
    });
    let chosen = chosen.collect();
    let told = |event: &AgentEvent| matches!(event, AgentEvent::Began { strategy, .. } if *strategy == Adaptive::NAME);
    assert!(told(&events[0].1) && matches!(events.last().unwrap().1, AgentEvent::Ended { .. }));
    drop(events);
    (report, model, chosen)
}

/// OP14, OP18: in a new conversation one plan is made; the choice and its reason are in the record.
#[tokio::test(start_paused = true)]
async fn op18_a_new_conversation_is_planned() {
    let (report, model, chosen) =
        adapt(full().as_mut(), "How is it?", vec![PLAN.into(), "晴天".into()]).await;
    assert_eq!((report.answer(), model.calls()), (Some("晴天"), 2));
    let record = &report.trajectory.strategy;
    assert_eq!(record.chosen, OnePlan::NAME);
    assert_eq!(chosen, [(OnePlan::NAME, record.because.clone().unwrap())]);
    assert!(chosen[0].1.contains("nothing was said before"), "{chosen:?}");
    assert_eq!(asked(&model.requests()[0]), "How is it?", "the planner sees the request alone");
}

/// OP18: after a conversation, a request that points back to it is not planned; one that is self-contained
/// is, and the planner learns that there is a conversation that it does not see, and may decline.
#[tokio::test(start_paused = true)]
async fn op18_a_request_that_points_back_is_not_planned() {
    let mut context = full();
    let (first, ..) = adapt(context.as_mut(), "How is it?", vec![PLAN.into(), "晴天".into()]).await;
    assert!(first.trajectory.strategy.degraded.is_none());

    let (back, model, chosen) =
        adapt(context.as_mut(), "把刚才的结果再说一遍，好吗？", vec!["晴天".into()]).await;
    assert_eq!(back.trajectory.strategy.chosen, React::NAME);
    assert!(chosen[0].1.contains("points back"), "{chosen:?}");
    assert_eq!(model.requests()[0].messages.len(), 5, "the model sees the conversation");

    let alone = "List the weather of Oslo and Rome for tomorrow.";
    let (planned, model, chosen) =
        adapt(context.as_mut(), alone, vec![PLAN.into(), "done".into()]).await;
    assert_eq!(planned.trajectory.strategy.chosen, OnePlan::NAME);
    assert!(chosen[0].1.contains("without the conversation"), "{chosen:?}");
    let told = asked(&model.requests()[0]);
    assert!(told.starts_with(alone) && told.contains("that you do not see"), "{told}");
    assert!(!told.contains('晴'), "nothing of the conversation is shown: {told}");

    let declined = r#"{"mode": "react", "reason": "Which cities were they?"}"#;
    let (report, _, chosen) =
        adapt(context.as_mut(), alone, vec![declined.into(), "Oslo and Rome.".into()]).await;
    let degraded = report.trajectory.strategy.degraded.as_ref().unwrap();
    assert_eq!(degraded.because, DegradeReason::Declared);
    assert_eq!(chosen[1].0, React::NAME);
    assert!(chosen[1].1.ends_with("Which cities were they?"), "{chosen:?}");
    conversation(context.as_ref());
}

/// OP14, OP19: each way in which a plan turns out not to work is reported to observers, and is in the record
/// beside the choice.
#[tokio::test(start_paused = true)]
async fn op14_every_degradation_is_told() {
    let unknown = r#"{"action_plan": {"step1": {"function": "lok", "args": {}}}}"#;
    let anchor = r#"{"action_plan": {
        "step1": {"function": "anchor_function", "args": {"task": "定"}}}}"#;
    let anchors = (1..=4).map(|n| anchor.replace("step1", &format!("step{n}")).as_str().into());
    for (answers, expected, words) in [
        (vec![r#"{"mode": "react", "reason": "开放"}"#.into()], DegradeReason::Declared, "开放"),
        (vec![unknown.into(), unknown.into()], DegradeReason::InvalidPlan, "lok"),
        (anchors.collect(), DegradeReason::ReplansSpent, "3 replans"),
    ] {
        let answers: Vec<Answer> = answers.into_iter().chain([look(), "done".into()]).collect();
        let (report, model, chosen) = adapt(full().as_mut(), "Find out.", answers).await;
        assert_eq!((report.answer(), model.left()), (Some("done"), 0));
        let record = &report.trajectory.strategy;
        assert_eq!(record.degraded.as_ref().unwrap().because, expected);
        assert!(record.because.is_some());
        let strategies: Vec<_> = chosen.iter().map(|(strategy, _)| strategy.clone()).collect();
        assert_eq!(strategies, [OnePlan::NAME, React::NAME], "{expected:?}");
        assert!(chosen[1].1.contains(words), "{chosen:?}");
    }
}

/// OP18: without tools nothing is planned.
#[tokio::test(start_paused = true)]
async fn op18_without_tools_nothing_is_planned() {
    let model = model(["Hello.".into()]);
    let agent = agent(&model, Vec::new());
    let report =
        agent.run(&Adaptive::default(), full().as_mut(), &task("Say hello.")).await.unwrap();
    assert_eq!((report.answer(), model.calls()), (Some("Hello."), 1));
    assert_eq!(report.trajectory.strategy.chosen, React::NAME);
}

/// R12: the choice stays the same when the run resumes, although the context holds a conversation by then.
#[tokio::test(start_paused = true)]
async fn r12_a_choice_outlives_the_process() {
    let journal = Arc::new(MemoryJournal::default());
    let mut context = full();
    for (answers, is_done) in [
        (vec![PLAN.into(), Answer::text("never").after(ms(1_000_000))], false),
        (vec!["done".into()], true),
    ] {
        let model = model(answers);
        let executor = Executor::new(Toolbox::new([says("look", 1, "晴")]).unwrap());
        let agent = running(&model, executor.with_journal(journal.clone()));
        let task = task("Continue.");
        let adaptive = Adaptive::default();
        let run = agent.run(&adaptive, context.as_mut(), &task);
        let done = tokio::time::timeout(ms(1_000), run).await;
        assert_eq!(done.is_ok(), is_done);
        if let Ok(report) = done {
            assert_eq!(report.unwrap().trajectory.strategy.chosen, OnePlan::NAME);
        } else {
            context.record(Message::user("Somebody says something meanwhile.")).unwrap();
        }
    }
}
