//! Sub-agents that fail, and the results of the others.

use super::{delegate, delegating, foldback_id, says, states, told, told_json, walk};
use crate::keeping::{Keeping, calling, scripts, todo};
use crate::script::task;
use crate::toolkit::{ms, spec, tool, wait};
use foldback_agent::{OnePlan, React, ReactSettings, Stop, SubAgents};
use foldback_llm::Answer;
use foldback_tool::Effect;
use serde_json::json;
use std::sync::Arc;
use tokio::time::Instant;

/// B8, TD4: a sub-agent that fails also fails those that wait for it, each with the reason; its siblings
/// continue and keep their results.
#[tokio::test]
async fn b8_siblings_of_a_failed_item_go_on() {
    let items = json!([
        {"id": "a", "task": "失败"},
        {"id": "b", "task": "等甲", "depends_on": ["a"]},
        {"id": "c", "task": "等乙", "depends_on": ["b", "d"]},
        {"id": "d", "task": "顺利"},
        {"id": "e", "task": "崩溃"},
    ]);
    let broken = foldback_llm::ModelError::new(foldback_llm::ModelErrorKind::Configuration, "断网");
    let panics = tool(spec("panics", Effect::ReadOnly), |_, _| async { panic!("甲") });
    let model = scripts([
        ("task", vec![delegate(items), "完成".into()]),
        ("task.a", vec![Answer::text("").failing(broken)]),
        ("task.d", vec![calling("panics", json!({})), "好了".into()]),
        // The script of e ends at once, and panics.
        ("task.e", vec![]),
    ]);
    let mut context = Keeping::new();
    let report = walk(&delegating(&model, vec![panics], |sub| sub), &mut context).await;
    assert_eq!(report.answer(), Some("完成"));
    let expected =
        ["task.a=failed", "task.b=failed", "task.c=failed", "task.d=completed", "task.e=failed"];
    assert_eq!(states(&context), expected);
    let told = told_json(&model);
    let result = |at: usize| told["items"][at]["result"].as_str().unwrap().to_owned();
    assert!(result(0).contains("断网"), "{told}");
    assert_eq!(result(1), "not started: it waits for a, which failed");
    assert_eq!(result(2), "not started: it waits for b, which failed");
    assert_eq!(result(3), "好了");
    assert_eq!(result(4), "the sub-agent panicked");
    assert_eq!(context.todos(), ["task", "task.a", "task.d", "task.e"]);
}

/// B9: a sub-agent that only ran out of steps is not done; if none is done, the call has failed. A failed item
/// can be resumed where it was.
#[tokio::test]
async fn b9_an_item_that_ran_out_of_steps_has_failed() {
    let order = || delegate(json!([{"id": "a", "task": "找"}]));
    let looks = || calling("wait", json!({"ms": 1}));
    let model = scripts([
        ("task", vec![order(), order(), "完成".into()]),
        ("task.a", (0..30).map(|_| looks()).chain(["找到了".into()]).collect()),
    ]);
    let mut context = Keeping::new();
    let react = React::new(ReactSettings::default().with_max_steps(30));
    let bounded = |sub: SubAgents| sub.with_strategy(Arc::new(react));
    walk(&delegating(&model, vec![wait()], bounded), &mut context).await;
    let told: Vec<String> =
        context.said("task").into_iter().filter(|said| said.starts_with("tool:")).collect();
    assert!(
        told[0].contains("no item was completed: a=failed\n- a: \"Terminated: Reached max steps"),
        "{}",
        told[0]
    );
    assert!(told[0].contains("(read b_task.a_001)"), "{}", told[0]);
    assert!(told[1].contains("找到了"), "{}", told[1]);
    assert_eq!(states(&context), ["task.a=completed"]);
    let asked = context.said("task.a").iter().filter(|said| *said == "user: 找").count();
    assert_eq!(asked, 2, "it goes on in its own conversation");
}

/// A cancellation stops the sub-agents; their items stay in progress, and nothing more begins.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stops_its_sub_agents() {
    let items = json!([
        {"id": "a", "task": "甲"}, {"id": "b", "task": "乙"}, {"id": "c", "task": "丙", "depends_on": ["a"]},
    ]);
    let model = scripts([
        ("task", vec![delegate(items)]),
        ("task.a", vec![says("甲", 1_000)]),
        ("task.b", vec![calling("wait", json!({"ms": 1_000_000}))]),
    ]);
    let task = task("写报告");
    let cancelled = task.cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ms(5_000)).await;
        cancelled.cancel();
    });
    let (mut context, began) = (Keeping::new(), Instant::now());
    let agent = delegating(&model, vec![wait()], |sub| sub);
    let report = agent.run(&React::default(), &mut context, &task).await.unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled);
    assert!(began.elapsed() < ms(8_000), "{:?}", began.elapsed());
    assert_eq!(states(&context), ["task.a=in_progress", "task.b=in_progress", "task.c=pending"]);
}

/// B8: a store that fails for one item does not affect the others: they come to their end, and the error names
/// the item.
#[tokio::test(start_paused = true)]
async fn b8_siblings_of_a_broken_item_are_handed_back() {
    let items = json!([{"id": "甲", "task": "甲"}, {"id": "b", "task": "乙"}]);
    let first = foldback_id("甲");
    let model = scripts([
        ("task", vec![delegate(items), "完成".into()]),
        (&first, vec!["好".into()]),
        ("task.b", vec![says("乙好了", 10)]),
    ]);
    let mut context = Keeping::new();
    context.kept.lock().broken = Some(todo(&first));
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    let short = first.strip_prefix("task.").unwrap();
    assert!(
        told(&model).contains(&format!("item 甲 ({short}): the store is gone")),
        "{}",
        told(&model)
    );
    assert_eq!(states(&context), [format!("{first}=in_progress"), "task.b=completed".to_owned()]);
    assert_eq!(context.list().items()[1].result.as_deref(), Some("乙好了"));
}

/// B9: an incomplete answer does not count, nor does one without words.
#[tokio::test(start_paused = true)]
async fn b9_a_cut_answer_is_no_success() {
    let cut = |text: &str| Answer::text(text).stopped(foldback_llm::StopReason::Length);
    let ends = [
        (vec![cut("一共"), cut("一共是")], "cut off; its last words: 一共是"),
        (vec!["".into(), "".into()], ""),
    ];
    for (answers, expected) in ends {
        let plan = Answer::text(r#"{"action_plan": {"step1": {"function": "a", "args": {}}}}"#);
        let model = scripts([
            ("task", vec![delegate(json!([{"id": "a", "task": "数"}])), "完成".into()]),
            ("task.a", [plan].into_iter().chain(answers).collect()),
        ]);
        let mut context = Keeping::new();
        let agent = delegating(&model, vec![crate::script::says("a", 1, "ok")], |sub| {
            sub.with_strategy(Arc::new(OnePlan::default()))
        });
        walk(&agent, &mut context).await;
        assert_eq!(states(&context), ["task.a=failed"], "{expected}");
        assert!(told(&model).contains(expected), "{}", told(&model));
    }
}
