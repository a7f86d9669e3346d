//! The budgets of sub-agents.

use super::{delegate, delegating, journaled, told_json};
use crate::keeping::{Keeping, calling, scripts};
use crate::script::task;
use crate::toolkit::wait;
use foldback_agent::{Executor, MemoryJournal, React, Resource, SpendLimits, SpendTracker, Stop};
use foldback_llm::ScriptedModel;
use foldback_tool::Toolbox;
use serde_json::json;
use std::sync::Arc;

/// Each sub-agent has a limit of its own, and spends from its parent's tracker.
#[tokio::test]
async fn budgets_are_shared_and_bounded() {
    let items = json!([{"id": "a", "task": "甲"}, {"id": "b", "task": "乙"}]);
    let looks = || calling("wait", json!({"ms": 0}));
    let model = || {
        scripts([
            ("task", vec![delegate(items.clone()), "完成".into()]),
            ("task.a", (0..9).map(|_| looks()).collect()),
            ("task.b", vec![looks(), "好了".into()]),
        ])
    };
    let three = SpendLimits::default().with_model_calls(3);
    let run = async |model: &Arc<ScriptedModel>, sub: SpendLimits, own: SpendLimits| {
        let agent = delegating(model, vec![wait()], |s| s.with_limits(sub).with_max_parallel(1));
        let task = task("写报告").with_spend(SpendTracker::new(own, None).unwrap());
        let report = agent.run(&React::default(), &mut Keeping::new(), &task).await.unwrap();
        (report, task.spend.spent())
    };
    let asked = model();
    let (report, spent) = run(&asked, three, SpendLimits::default()).await;
    assert_eq!(report.answer(), Some("完成"));
    let told = told_json(&asked);
    assert_eq!(told["items"][0]["state"], "failed");
    assert!(
        told["items"][0]["result"]
            .as_str()
            .unwrap()
            .contains("may spend no more calls of the model"),
        "{told}"
    );
    assert_eq!(told["items"][1]["state"], "completed");
    // Two of its own, three of a's and two of b's; delegate itself, three and one.
    assert_eq!((spent.model_calls, spent.tool_calls), (7, 5));
    assert_eq!(report.trajectory.spent().calls, 2, "its own record has its own calls");

    let four = SpendLimits::default().with_model_calls(4);
    let (report, spent) = run(&model(), SpendLimits::default(), four).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::Exhausted { resource: Resource::ModelCalls });
    assert_eq!(spent.model_calls, 4, "sub-agents cannot spend what their parent does not have");
}

/// N3: the cost of a delegated item is counted again when its parent is resumed and the journal holds the
/// result: it is not worked on twice.
#[tokio::test]
async fn n3_what_sub_agents_spent_is_spent_after_a_resume() {
    let executor =
        Executor::new(Toolbox::default()).with_journal(Arc::new(MemoryJournal::default()));
    let model = scripts([
        ("task", vec![delegate(json!([{"id": "a", "task": "甲"}])), "完成".into()]),
        ("task.a", vec![calling("wait", json!({"ms": 0})), "好了".into()]),
    ]);
    let mut spent = Vec::new();
    for _ in 0..2 {
        let agent = journaled(&model, vec![wait()], executor.clone(), |sub| sub);
        let task = task("写报告");
        agent.run(&React::default(), &mut Keeping::new(), &task).await.unwrap();
        spent.push(task.spend.spent());
    }
    assert_eq!((spent[0].model_calls, spent[0].tool_calls, model.calls()), (4, 2, 4));
    assert!(spent[0].usage.input > 0);
    assert_eq!(spent[1], spent[0]);
}
