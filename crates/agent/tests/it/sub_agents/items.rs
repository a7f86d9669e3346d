//! Edge cases of items: delegated again, named twice, waiting for a cancelled one; and sub-agents at their
//! limits.

use super::{delegate, delegating, told, told_json, walk};
use crate::keeping::{Keeping, Watching, calling, scripts};
use crate::script::task;
use crate::toolkit::settings;
use foldback_agent::{Agent, AgentEvent, Executor, React, ReactSettings, SubAgents, think};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel};
use foldback_tool::Toolbox;
use serde_json::json;
use std::sync::Arc;

/// An agent whose only tool is `delegate`.
fn parent(model: &Arc<ScriptedModel>, executor: Executor, sub_agents: SubAgents) -> Agent {
    let toolbox = Toolbox::new([sub_agents.delegate()]).unwrap();
    Agent::new(model.clone(), executor.with_toolbox(toolbox))
}

/// TD4: nobody waits for a cancelled item, nor is given a result of it.
#[tokio::test]
async fn td4_nobody_waits_for_what_was_cancelled() {
    let list = json!({"items": [{"id": "x", "title": "取消的", "state": "cancelled"}]});
    let model = scripts([
        (
            "task",
            vec![
                calling("todo_write", list),
                delegate(json!([{"id": "a", "task": "写", "depends_on": ["x"]}])),
                "完成".into(),
            ],
        ),
        ("task.a", vec!["写好了".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    assert_eq!(told_json(&model)["states"], "a=completed");
    assert_eq!(context.said("task.a")[1], "user: 写");
}

/// TD4: a reopened item has no result while it is open, and a reference that it returns twice is in the list
/// once.
#[tokio::test]
async fn td4_an_item_that_is_taken_up_again_begins_anew() {
    let broken = ModelError::new(ModelErrorKind::Configuration, "断网");
    let order = || delegate(json!([{"id": "a", "task": "找"}]));
    let model = scripts([
        ("task", vec![order(), order(), "完成".into()]),
        ("task.a", vec![Answer::text("").failing(broken), "找到了".into()]),
    ]);
    let watching = Arc::new(Watching::default());
    let task = task("写报告").with_observer(watching.clone());
    let mut context = Keeping::new();
    delegating(&model, vec![], |sub| sub)
        .run(&React::default(), &mut context, &task)
        .await
        .unwrap();
    let item = &told_json(&model)["items"][0];
    assert_eq!(item["result"], "找到了");
    assert_eq!(item["references"], json!(["b_task.a_001"]));
    let mut states = Vec::new();
    for (_, event) in watching.0.lock().iter() {
        let AgentEvent::Todos { list } = event else { continue };
        let item = &list.items()[0];
        assert!(item.result.is_none() || !item.state.is_open(), "{item:?}");
        states.push(item.state.to_string());
    }
    states.dedup();
    assert_eq!(states, ["pending", "in_progress", "failed", "pending", "in_progress", "completed"]);
}

/// TD2: a reference that is named twice is granted once, and listed once.
#[tokio::test]
async fn td2_a_reference_is_granted_once() {
    let references = ["b_001", "b_task_001", "store://2-k4qd", "b_001"];
    let model = scripts([
        (
            "task",
            vec![
                delegate(json!([{"id": "a", "task": "看", "references": references}])),
                "完成".into(),
            ],
        ),
        ("task.a", vec!["看过了".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    let granted = ["task -> task.a: b_task_001", "task -> task.a: store://task/2-k4qd"];
    assert_eq!(context.kept.lock().grants, granted);
    let asked = &context.said("task.a")[1];
    assert!(asked.ends_with("You can read: b_task_001, store://task/2-k4qd"), "{asked}");
}

/// B9: a sub-agent that declares success has succeeded, even without words.
#[tokio::test]
async fn b9_a_success_without_words_is_one() {
    let model = scripts([
        ("task", vec![delegate(json!([{"id": "a", "task": "做"}])), "完成".into()]),
        ("task.a", vec![calling("terminate", json!({"status": "success"}))]),
    ]);
    let react = ReactSettings::default().with_terminate(true);
    let template = Agent::new(model.clone(), Executor::new(Toolbox::default()));
    let sub_agents = SubAgents::new(template).with_strategy(Arc::new(React::new(react)));
    walk(&parent(&model, Executor::new(Toolbox::default()), sub_agents), &mut Keeping::new()).await;
    let item = &told_json(&model)["items"][0];
    assert_eq!(item["state"], "completed");
    assert!(item["result"].as_str().unwrap().ends_with(", without words"), "{item}");
}

/// B9: sub-agents delegate no further than their levels allow, whatever tools their template has; none runs
/// deeper than runs may be nested; and at least one works at a time.
#[tokio::test]
async fn b9_sub_agents_have_bounds() {
    let script = || {
        scripts([
            ("task", vec![delegate(json!([{"id": "a", "task": "做"}])), "完成".into()]),
            ("task.a", vec!["好".into()]),
        ])
    };
    let model = script();
    let below = SubAgents::new(Agent::new(model.clone(), Executor::new(Toolbox::default())));
    let theirs = Toolbox::new([think(), below.delegate()]).unwrap();
    let template = Agent::new(model.clone(), Executor::new(theirs));
    let sub_agents =
        SubAgents::new(template).with_strategy(Arc::new(React::default())).with_max_parallel(0);
    walk(&parent(&model, Executor::new(Toolbox::default()), sub_agents), &mut Keeping::new()).await;
    assert_eq!(told_json(&model)["states"], "a=completed");
    let requests = model.requests();
    let theirs = requests.iter().find(|request| request.session.as_deref() == Some("task.a"));
    let tools: Vec<&str> = theirs.unwrap().tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["think"]);

    let model = script();
    let executor = Executor::new(Toolbox::default()).with_settings(settings(|s| s.quota.depth = 1));
    let template = Agent::new(model.clone(), executor.clone());
    let sub_agents = SubAgents::new(template).with_strategy(Arc::new(React::default()));
    let mut context = Keeping::new();
    walk(&parent(&model, executor, sub_agents), &mut context).await;
    let told = told(&model);
    assert!(told.contains("at most 1 runs may be nested"), "{told}");
    assert!(context.list().items().iter().all(|item| item.result.is_some()));
}
