//! The limits of a flow and its texts, and the reports at its ends.

use super::{agent, by_name, few_turns, name, names, page, planning, request, run, update};
use crate::keeping::{Keeping, Watching};
use crate::script::{conversation, full, says, task};
use crate::toolkit::ms;
use foldback_agent::{AgentEvent, Stop};
use foldback_core::{Estimate, ItemState, TodoId, TokenCounter};
use foldback_flow::{Flow, StepContext, StepExecutor};
use foldback_llm::{Answer, ScriptedModel, ToolChoice};
use std::sync::Arc;

/// The texts of a number of steps.
fn texts(kind: &str, many: usize) -> Vec<String> {
    (0..many).map(|n| format!("{kind} {n}")).collect()
}

/// OM11: the rest of a plan has at most 50 steps, and with what stays before it the plan at most 100.
#[tokio::test]
async fn om11_the_rest_of_a_plan_is_bounded() {
    // The number of steps of the first plan and which of them fails, how many replace it, which of those
    // fails and how many replace it then; and what is accepted.
    for (first, rest, again, is_taken) in [
        ((1, 1), 50, None, true),
        ((1, 1), 51, None, false),
        ((50, 50), 50, Some((60, 40)), true),
        ((50, 50), 50, Some((60, 41)), false),
    ] {
        let model = Arc::new(ScriptedModel::answering(move |request| {
            let name = name(request);
            let plan = |kind, many, of: fn(&[&str]) -> Answer| {
                let texts = texts(kind, many);
                of(&texts.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let fails = |step: usize| name == format!("step-{step}.1/react/1");
            match name.as_str() {
                "flow/plan" => plan("first", first.0, planning),
                "flow/replan-1" => plan("rest", rest, update),
                "flow/replan-2" => plan("again", again.unwrap().1, update),
                _ if fails(first.1) || again.is_some_and(|(step, _)| fails(step)) => {
                    "BLOCKED: 断网".into()
                }
                _ => Answer::text(&name),
            }
        }));
        let flow = few_turns().with_max_retries(0);
        let report = run(&agent(&model, vec![]), flow).await;
        let is_done = report.trajectory.outcome.stop == Stop::Answered;
        assert_eq!(is_done, is_taken, "{first:?}, {rest}, {again:?}");
        let last = names(&model).iter().filter(|name| name.starts_with("step-")).count();
        let all = first.1 + rest;
        let expected = match (again, is_taken) {
            (None, true) => all,
            (None, false) => first.1,
            (Some((step, rest)), true) => step + rest,
            (Some((step, _)), false) => step,
        };
        assert_eq!(last, expected, "{first:?}, {rest}, {again:?}");
    }
}

/// OM9: a flow that is cancelled during a step has no answer, even if steps are done; the step's item is
/// handed back as cancelled.
#[tokio::test(start_paused = true)]
async fn om9_a_flow_that_is_cancelled_amid_a_step_answers_nothing() {
    let model = by_name([
        ("flow/plan", planning(&["一", "二"])),
        ("step-2.1/react/1", Answer::text("never").after(ms(10_000))),
    ]);
    let watching = Arc::new(Watching::default());
    let mut task = task("go");
    task.observer = Some(watching.clone());
    let cancelled = task.cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(100)).await;
        cancelled.cancel();
    });
    let agent = agent(&model, vec![]);
    let report = agent.run(&Flow::new(few_turns()), &mut Keeping::new(), &task).await.unwrap();
    assert_eq!((report.trajectory.outcome.stop.clone(), report.answer()), (Stop::Cancelled, None));
    let events = watching.0.lock();
    let handed = events.iter().filter_map(|(_, event)| match event {
        AgentEvent::HandedBack { state, .. } => Some(*state),
        _ => None,
    });
    assert_eq!(handed.collect::<Vec<_>>(), [ItemState::Completed, ItemState::Cancelled]);
}

/// OM9: a step whose context fails is handed back as failed: an observer sees the end of all that began.
#[tokio::test(start_paused = true)]
async fn om9_a_step_whose_context_fails_is_handed_back() {
    let model = by_name([("flow/plan", planning(&["一"]))]);
    let watching = Arc::new(Watching::default());
    let task = task("go").with_observer(watching.clone());
    let mut context = Keeping::new();
    context.kept.lock().broken = Some(TodoId::new("task.run:step-1").unwrap());
    let error = agent(&model, vec![]).run(&Flow::new(few_turns()), &mut context, &task).await;
    assert_eq!(error.unwrap_err().to_string(), "the store is gone");
    let events = watching.0.lock();
    let seen = events.iter().filter_map(|(_, event)| match event {
        AgentEvent::Delegated { item, .. } => Some(format!("{item} begins")),
        AgentEvent::HandedBack { item, state, result } => Some(format!("{item} {state}: {result}")),
        _ => None,
    });
    let seen: Vec<String> = seen.collect();
    let item = "task.run:step-1";
    assert_eq!(seen, [format!("{item} begins"), format!("{item} failed: the store is gone")]);
}

/// OM10: in a shared context the result of a step is said once, by its executor.
#[tokio::test]
async fn om10_a_shared_context_hears_of_a_step_once() {
    for (context_kind, times) in [(StepContext::Isolated, 1), (StepContext::Shared, 0)] {
        let model =
            by_name([("flow/plan", planning(&["一"])), ("step-1.1/react/1", Answer::text("小雨"))]);
        let flow = few_turns().with_context(context_kind);
        let mut context = full();
        agent(&model, vec![]).run(&Flow::new(flow), context.as_mut(), &task("go")).await.unwrap();
        let told = conversation(context.as_ref());
        let is_told = |text: &str| told.iter().filter(|m| m.text() == text).count();
        assert_eq!(is_told("Step 0 is done: 小雨"), times, "{context_kind:?}");
        assert_eq!(is_told("小雨"), 1 - times, "{context_kind:?}");
    }
}

/// ET10: the record names the tools of all executors, in the order of their names.
#[tokio::test]
async fn et10_tools_of_a_flow_are_in_order() {
    let model = by_name([("flow/plan", planning(&["一"]))]);
    let working = |tool: &str| agent(&model, vec![says(tool, 0, "ok")]);
    let executors = StepExecutor::numbered(["b", "c", "a"].map(working));
    let flow = few_turns().with_executors(executors);
    let report = run(&agent(&model, vec![]), flow).await;
    let tools = &report.trajectory.situation.tools;
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

/// OM9: if the model writes no words for an answer, the plan and the results of its steps are the answer. It is
/// asked for words alone, after instructions that a provider may cache.
#[tokio::test]
async fn om9_an_answer_without_words_is_the_plan() {
    let model = by_name([
        ("flow/plan", planning(&["一"])),
        ("step-1.1/react/1", Answer::text("小雨")),
        ("summary/summary", Answer::text(" \n")),
    ]);
    let report = run(&agent(&model, vec![]), few_turns()).await;
    let answer = report.answer().unwrap();
    assert!(answer.contains("0. [✓] 一\n") && answer.contains("Step 0: 小雨"), "{answer}");
    let asked = request(&model, "summary/summary");
    assert_eq!((&asked.tool_choice, asked.cache_marks.first()), (&ToolChoice::ReplyOnly, Some(&0)));
}

/// OM11: a step that is retried learns once why it failed, and not as a result; a long reason is shortened.
#[tokio::test]
async fn om11_a_reason_is_told_once_and_in_part() {
    let long = format!("BLOCKED: 断网了 {}", "reason ".repeat(20_000));
    let model = by_name([
        ("flow/plan", planning(&["一", "二"])),
        ("step-1.1/react/1", Answer::text("小雨")),
        ("step-2.1/react/1", Answer::text(&long)),
    ]);
    run(&agent(&model, vec![]), few_turns()).await;
    let told = page(&request(&model, "step-2.2/react/1"));
    let results = told.split("RESULTS OF THE STEPS SO FAR").nth(1).unwrap();
    let results = results.split("YOUR CURRENT TASK").next().unwrap();
    assert!(results.contains("Step 0: 小雨") && !results.contains("断网了"), "{results}");
    assert!(told.contains("was tried before, and failed: 断网了"), "{told}");
    assert!(Estimate.count(&told) < 1_200, "{}", Estimate.count(&told));
}

/// OM17: the request for the summary shows long results in part, within its own limit.
#[tokio::test]
async fn om17_the_summary_sees_results_within_a_bound() {
    let model = by_name([
        ("flow/plan", planning(&["一", "二"])),
        ("step-1.1/react/1", Answer::text(&"数据库连接失败，".repeat(3_000))),
        ("step-2.1/react/1", Answer::text("short")),
    ]);
    let flow = few_turns().with_summary_tokens(600);
    run(&agent(&model, vec![]), flow).await;
    let told = page(&request(&model, "summary/summary"));
    let results = told.split("RESULTS OF THE STEPS SO FAR").nth(1).unwrap();
    assert!(Estimate.count(results) < 760, "{}", Estimate.count(results));
    assert!(results.contains("characters left out") && results.contains("Step 1: short"));
}
