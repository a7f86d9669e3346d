//! Delegated work: to whom, when, and which orders are invalid.

use super::{delegate, delegating, foldback_id, journaled, says, states, told, told_json, walk};
use crate::keeping::{Keeping, calling, last_result, scripts};
use crate::script::task;
use crate::toolkit::{Counter, spec, tool, wait};
use foldback_agent::{
    Agent, ApprovalRequest, Approver, Decision, Executor, OnePlan, React, SubAgents, Task,
};
use foldback_core::ItemState;
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::{Effect, ToolOutput, Toolbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use tokio::time::Instant;

/// Items that wait for nothing are worked on in parallel, as many as allowed; one that waits begins when the
/// last that it waits for has ended.
#[tokio::test(start_paused = true)]
async fn independent_items_take_as_long_as_the_longest() {
    for (most, depends, seconds) in [(4, json!([]), 10), (1, json!([]), 17), (4, json!(["a"]), 17)]
    {
        let items =
            json!([{"id": "a", "task": "甲"}, {"id": "b", "task": "乙", "depends_on": depends}]);
        let model = scripts([
            ("task", vec![delegate(items), "完成".into()]),
            ("task.a", vec![says("甲", 10)]),
            ("task.b", vec![says("乙", 7)]),
        ]);
        let began = Instant::now();
        let agent = delegating(&model, vec![], |sub| sub.with_max_parallel(most));
        walk(&agent, &mut Keeping::new()).await;
        assert_eq!(began.elapsed().as_secs(), seconds, "{most} at once, b after {depends}");
    }
}

/// Two calls of one turn also work in parallel, on one list.
#[tokio::test(start_paused = true)]
async fn two_delegations_of_one_turn_share_a_list() {
    let call = |id: &str| {
        let arguments = json!({"items": [{"id": id, "task": id}]}).to_string();
        foldback_core::ToolCall::new(&format!("c-{id}"), "delegate", &arguments)
    };
    let turn = Answer::calls("", vec![call("a"), call("b"), call("a")]);
    let model = scripts([
        ("task", vec![turn, "完成".into()]),
        ("task.a", vec![says("甲", 10)]),
        ("task.b", vec![says("乙", 7)]),
    ]);
    let (mut context, began) = (Keeping::new(), Instant::now());
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(states(&context), ["task.a=completed", "task.b=completed"]);
    assert!(told(&model).contains("a sub-agent is already working on item a"), "{}", told(&model));
}

/// Sub-agents delegate no further than they may, and have the tools that they were given.
#[tokio::test]
async fn sub_agents_have_their_own_tools() {
    let named = |name: &str| {
        tool(spec(name, Effect::ReadOnly), |_, _| async { Ok(ToolOutput::text("好")) })
    };
    let tools = || vec![named("file_read"), named("file_write"), named("web_fetch")];
    let some = json!([
        {"id": "a", "task": "甲", "tools": ["file_", "web_fetch"]},
        {"id": "b", "task": "乙", "tools": ["web_fetch"]},
        {"id": "c", "task": "丙"},
    ]);
    let unknown = json!([{"id": "d", "task": "丁", "tools": ["file"]}]);
    let model = scripts([
        ("task", vec![delegate(some), delegate(unknown), "完成".into()]),
        ("task.a", vec!["好".into()]),
        ("task.b", vec!["好".into()]),
        ("task.c", vec!["好".into()]),
    ]);
    walk(&delegating(&model, tools(), |sub| sub), &mut Keeping::new()).await;
    let offered = |model: &ScriptedModel, session: &str| -> Vec<String> {
        let requests = model.requests();
        let request = requests.iter().find(|r| r.session.as_deref() == Some(session)).unwrap();
        request.tools.iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(offered(&model, "task.a"), ["file_read", "file_write", "web_fetch"]);
    assert_eq!(offered(&model, "task.b"), ["web_fetch"]);
    assert_eq!(offered(&model, "task.c"), ["file_read", "file_write", "web_fetch"]);
    assert!(told(&model).contains("named \"file\"; use these names"), "{}", told(&model));

    // Two levels: an item's own items have todos below it.
    let model = scripts([
        ("task", vec![delegate(json!([{"id": "a", "task": "甲"}])), "完成".into()]),
        ("task.a", vec![delegate(json!([{"id": "1", "task": "甲一"}])), "好".into()]),
        ("task.a.1", vec!["好".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, tools(), |sub| sub.with_levels(2)), &mut context).await;
    assert_eq!(context.todos(), ["task", "task.a", "task.a.1"]);
    assert!(offered(&model, "task.a").contains(&"delegate".to_owned()));
    assert!(!offered(&model, "task.a.1").contains(&"delegate".to_owned()));
}

/// An invalid order is refused as a whole, with what was expected.
#[tokio::test]
async fn a_wrong_order_begins_nothing() {
    let list = json!({"items": [
        {"id": "done", "title": "做过", "state": "completed"},
        {"id": "open", "title": "没做"},
        {"id": "bad", "title": "失败", "state": "failed"},
    ]});
    for (items, expected) in [
        (
            json!([{"id": "a", "task": "甲"}, {"id": "a", "task": "乙"}]),
            "item a is delegated twice",
        ),
        (json!([{"id": "done", "task": "甲"}]), "item done is already completed"),
        (
            json!([{"id": "a", "task": "甲", "depends_on": ["open"]}]),
            "item a waits for open, which is pending; delegate open as well",
        ),
        (
            json!([{"id": "a", "task": "甲", "depends_on": ["bad"]}]),
            "item a waits for bad, which is failed",
        ),
        (
            json!([{"id": "a", "task": "甲", "depends_on": ["none"]}]),
            "item a depends on none, which is not in the todo list",
        ),
        (
            json!([{"id": "a", "task": "甲", "depends_on": ["b"]}, {"id": "b", "task": "乙", "depends_on": ["a"]}]),
            "depends on itself",
        ),
        (json!([{"id": "a", "task": "  \n"}]), "item a has no task"),
        (json!([]), "items"),
        (json!([{"id": "a"}]), "task"),
    ] {
        let model = scripts([(
            "task",
            vec![calling("todo_write", list.clone()), delegate(items.clone()), "完成".into()],
        )]);
        let mut context = Keeping::new();
        walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
        assert!(told(&model).starts_with("Error (arguments): "), "{items}: {}", told(&model));
        assert!(told(&model).contains(expected), "{expected}: {}", told(&model));
        assert_eq!(
            states(&context),
            ["task.done=completed", "task.open=pending", "task.bad=failed"]
        );
    }
}

/// With items of a list that was written before: their titles and dependencies stay, in any language.
#[tokio::test]
async fn td4_items_of_the_list_are_given_away() {
    let list = json!({"items": [
        {"id": "读取", "title": "读取报告 📄", "state": "completed", "result": "三页"},
        {"id": "撰写", "title": "撰写初稿", "depends_on": ["读取"]},
    ]});
    let model = scripts([
        (
            "task",
            vec![
                calling("todo_write", list),
                delegate(json!([{"id": "撰写", "task": "写"}])),
                "完成".into(),
            ],
        ),
        (&foldback_id("撰写"), vec!["写好了".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    let item = context.list().items()[1].clone();
    assert_eq!((item.title.as_str(), item.state), ("撰写初稿", ItemState::Completed));
    assert_eq!(item.depends_on.len(), 1);
    assert!(context.said(item.id.as_str())[1].contains("(读取报告 📄): \"三页\""));
    assert_eq!(
        told_json(&model)["items"][0]["id"],
        item.id.as_str().strip_prefix("task.").unwrap()
    );
    assert_eq!(told_json(&model)["items"][0]["name"], "撰写", "as the model calls it");
}

/// A plan can delegate as well, and continues with the results; sub-agents plan for themselves, unless they are
/// told to go step by step.
#[tokio::test]
async fn a_plan_delegates_to_agents_that_plan() {
    let plan = json!({"action_plan": {
        "step1": {"function": "delegate", "args": {"items": [{"id": "a", "task": "查潮位"}]}},
        "step2": {
            "function": "wait",
            "args": {"level": "$$step1.result.items[0].result$$"},
            "dependence": [1],
        },
    }});
    let inner = json!({"action_plan": {"step1": {"function": "wait", "args": {"ms": 1}}}});
    let model = scripts([
        ("task", vec![Answer::text(&plan.to_string()), "完成".into()]),
        ("task.a", vec![Answer::text(&inner.to_string()), "潮位 3.2 米".into()]),
    ]);
    let tools = || Toolbox::new([wait()]).unwrap();
    let template = Agent::new(model.clone(), Executor::new(tools()));
    let own = Toolbox::new([wait(), SubAgents::new(template).delegate()]).unwrap();
    let mut context = Keeping::new();
    let agent = Agent::new(model.clone(), Executor::new(own));
    let report = agent.run(&OnePlan::default(), &mut context, &task("写报告")).await.unwrap();
    assert_eq!(report.answer(), Some("完成"));
    let levels: Vec<&str> =
        report.trajectory.tool_calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(levels[1], r#"{"level":"潮位 3.2 米"}"#);
    assert_eq!(states(&context), ["task.a=completed"]);
    assert_eq!(model.calls(), 4, "two for each: a plan and an answer");
}

/// Refuses every effectful call.
struct Refusing;

impl Approver for Refusing {
    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        let denied = || Decision::Denied { reason: "不行".to_owned() };
        async move { calls.iter().map(|_| denied()).collect() }.boxed()
    }
}

/// Delegating needs no approval; effectful calls of sub-agents need it as always.
#[tokio::test]
async fn sub_agents_ask_before_they_act() {
    let sent = Counter::default();
    let counted = sent.clone();
    let send = tool(spec("send", Effect::Effectful), move |_, _| {
        counted.add();
        async { Ok(ToolOutput::text("sent")) }
    });
    let model = scripts([
        ("task", vec![delegate(json!([{"id": "a", "task": "发"}])), "完成".into()]),
        ("task.a", vec![calling("send", json!({})), "没有发".into()]),
    ]);
    let executor = Executor::new(Toolbox::default()).with_approver(Arc::new(Refusing));
    let mut context = Keeping::new();
    walk(&journaled(&model, vec![send], executor, |sub| sub), &mut context).await;
    assert_eq!(sent.get(), 0);
    assert!(context.said("task.a")[3].contains("不行"), "{:?}", context.said("task.a"));
    assert_eq!(states(&context), ["task.a=completed"]);
}

/// TD1: new work under an old name does not continue the old conversation.
#[tokio::test]
async fn td1_new_work_has_a_name_of_its_own() {
    let order = |task: &str| delegate(json!([{"id": "1", "task": task}]));
    let model = scripts([
        (
            "task",
            vec![
                order("暗号甲"),
                order("别的"),
                calling("todo_write", json!({"items": []})),
                order("新的"),
                "完成".into(),
            ],
        ),
        ("task.1", vec!["好".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    let told: Vec<String> =
        context.said("task").into_iter().filter(|said| said.starts_with("tool:")).collect();
    for refused in [&told[1], &told[3]] {
        assert!(refused.contains("give new work an id of its own"), "{refused}");
    }
    assert!(!context.said("task.1").join("\n").contains("新的"));
}

/// One agent works in two stores at once, on items with the same name.
#[tokio::test(start_paused = true)]
async fn two_stores_have_items_of_one_name() {
    let model = Arc::new(ScriptedModel::answering(|request| {
        let is_parent = request.session.as_deref() == Some("task");
        match (is_parent, last_result(request).as_str()) {
            (true, "") => delegate(json!([{"id": "a", "task": "甲"}])),
            (true, told) => told.into(),
            (false, _) => says("好", 5),
        }
    }));
    let agent = delegating(&model, vec![], |sub| sub);
    let (mut one, mut other) = (Keeping::new(), Keeping::new());
    let of = |run: &str| Task::new(run, "写报告");
    let (first, second) = (of("first"), of("second"));
    let react = React::default();
    let (one, other) =
        tokio::join!(agent.run(&react, &mut one, &first), agent.run(&react, &mut other, &second));
    for report in [one, other] {
        let report = report.unwrap();
        let answer = report.answer().unwrap();
        assert!(answer.contains(r#""states":"a=completed""#), "{answer}");
    }
}
