//! The share of its caller's budget that a sub-agent may spend.

use super::{delegate, delegating, told_json};
use crate::keeping::{Keeping, calling, scripts};
use crate::script::{agent, task};
use crate::toolkit::wait;
use foldback_agent::{React, Resource, SpendLimits, SpendTracker, Stop, SubAgents, TokenPrices};
use foldback_llm::Usage;
use serde_json::json;
use std::time::Duration;

/// S10: a sub-agent that never ends takes half of what is left when it begins, and the next one has the rest to
/// work with.
#[tokio::test]
async fn s10_a_sub_agent_takes_no_more_than_its_share() {
    let looks = || calling("wait", json!({"ms": 0}));
    let items = json!([{"id": "a", "task": "甲"}, {"id": "b", "task": "乙"}]);
    let spent = async |share: f64| {
        let model = scripts([
            ("task", vec![delegate(items.clone()), "完成".into()]),
            ("task.a", (0..30).map(|_| looks()).collect()),
            ("task.b", vec![looks(), "好了".into()]),
        ]);
        let twelve = SpendLimits::default().with_model_calls(12);
        let agent =
            delegating(&model, vec![wait()], |s| s.with_share(share).unwrap().with_max_parallel(1));
        let task = task("写报告").with_spend(SpendTracker::new(twelve, None).unwrap());
        let report = agent.run(&React::default(), &mut Keeping::new(), &task).await.unwrap();
        (report, task.spend.spent().model_calls, model)
    };
    // One to delegate, half of the eleven left for a, two for b, one to answer.
    let (report, calls, model) = spent(0.5).await;
    let told = told_json(&model);
    assert_eq!((report.answer(), calls), (Some("完成"), 1 + 6 + 2 + 1));
    assert_eq!(
        (&told["items"][0]["state"], &told["items"][1]["state"]),
        (&json!("failed"), &json!("completed"))
    );
    // Without a share it uses up everything.
    let (report, calls, _) = spent(1.0).await;
    assert_eq!(
        (&report.trajectory.outcome.stop, calls),
        (&Stop::Exhausted { resource: Resource::ModelCalls }, 12)
    );
}

/// S10: what is left is the least of all trackers along the way, including calls in progress.
#[tokio::test(start_paused = true)]
async fn s10_what_is_left_is_the_least_of_all() {
    let prices = TokenPrices { input: 2.0, output: 10.0, cached_read: 0.2, cached_write: 2.0 };
    let most = SpendLimits::default()
        .with_model_calls(10)
        .with_tokens(1_000_000)
        .with_cost(4.0)
        .with_time(Duration::from_secs(60));
    let spend = SpendTracker::new(most, Some(prices)).unwrap();
    assert_eq!(spend.left(), most);
    let four = SpendLimits::default().with_model_calls(4).with_tool_calls(7);
    let share = spend.share(four).unwrap();
    let usage = Usage { input: 500_000, output: 100_000, ..Usage::default() };
    share.model_called(usage);
    let _under_way = spend.begin_model_call(50_000).unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    let left = share.left();
    assert_eq!((left.model_calls, left.tool_calls, left.tokens), (Some(3), Some(7), Some(350_000)));
    assert_eq!(left.time, Some(Duration::from_secs(40)));
    assert!((left.cost.unwrap() - 1.9).abs() < 1e-9, "{left:?}");
    assert_eq!(
        SpendTracker::default().left(),
        SpendLimits::default(),
        "what has no bound has none left"
    );
}

/// A part is rounded up, and never more than the whole.
#[test]
fn a_part_of_something_is_something() {
    let most = SpendLimits::default()
        .with_model_calls(3)
        .with_tool_calls(1)
        .with_tokens(u64::MAX)
        .with_cost(0.5)
        .with_time(Duration::MAX);
    let half = most.part(0.5);
    assert_eq!((half.model_calls, half.tool_calls, half.cost), (Some(2), Some(1), Some(0.25)));
    assert!(half.tokens.unwrap() < u64::MAX && half.time.unwrap() < Duration::MAX);
    for whole in [1.0, 7.5, f64::NAN, f64::INFINITY] {
        assert_eq!(most.part(whole), most);
    }
    let nothing = most.part(-1.0);
    assert_eq!((nothing.model_calls, nothing.time), (Some(0), Some(Duration::ZERO)));
}

/// S10: an invalid share is refused with a sentence.
#[test]
fn s10_a_share_is_a_part() {
    let template = || agent(&scripts([]), Vec::new());
    for (share, told) in [(0.0, "0.0"), (-1.0, "-1.0"), (1.5, "1.5"), (f64::NAN, "NaN")] {
        let error = SubAgents::new(template()).with_share(share).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("share is {told}, but a number above 0 and at most 1 is expected")
        );
    }
    assert!(SubAgents::new(template()).with_share(1.0).is_ok());
}
