//! The todo list as a model writes it.

use crate::keeping::{Keeping, Watching, calling, last_result, scripts, todo};
use crate::script::{agent, full, task};
use crate::toolkit::{call, executor, failure, object, run};
use foldback_agent::{React, Task, memory_share, todo_write};
use foldback_core::{ContextManager, ItemState, TodoList};
use foldback_planner::Template;
use foldback_tool::FailureKind;
use serde_json::{Value, json};
use std::sync::Arc;

/// Makes these calls, one per turn, and returns the result of each, as the model read it.
async fn told(
    context: &mut dyn ContextManager,
    task: &Task,
    calls: &[(&str, Value)],
) -> Vec<String> {
    let answers = calls.iter().map(|(tool, arguments)| calling(tool, arguments.clone()));
    let answers = answers.chain(["done".into()]).collect();
    let model = scripts([("task", answers)]);
    let agent = agent(&model, vec![todo_write(), memory_share()]);
    let report = agent.run(&React::default(), context, task).await.unwrap();
    assert_eq!(report.answer(), Some("done"));
    let requests = model.requests();
    requests.iter().skip(1).map(last_result).collect()
}

async fn writes(context: &mut dyn ContextManager, lists: &[Value]) -> Vec<String> {
    let calls: Vec<_> =
        lists.iter().map(|items| ("todo_write", json!({ "items": items }))).collect();
    told(context, &task("go"), &calls).await
}

fn states(list: &TodoList) -> Vec<String> {
    let line =
        |item: &foldback_core::TodoItem| format!("{} {} {}", item.id, item.title, item.state);
    list.items().iter().map(line).collect()
}

/// TD4: the list is ordered and has states; each item has a todo of its own, and the list goes to the context
/// and to observers.
#[tokio::test]
async fn td4_a_list_is_written() {
    let mut context = Keeping::new();
    let watching = Arc::new(Watching::default());
    let task = task("go").with_observer(watching.clone());
    let first = json!({"items": [
        {"id": "read", "title": "读取报告 📄", "state": "in_progress"},
        {"id": "draft", "title": "撰写初稿", "depends_on": ["read"]},
        {"id": "send", "title": "Send it", "depends_on": ["draft"]},
    ]});
    let second = json!({"items": [
        {"id": "read", "title": "读取报告 📄", "state": "completed", "result": "潮位 3.2 米"},
        {"id": "draft", "title": "撰写初稿", "state": "in_progress"},
        {"id": "send", "title": "Send it", "state": "cancelled"},
    ]});
    let told = told(&mut context, &task, &[("todo_write", first), ("todo_write", second)]).await;
    assert_eq!(
        told,
        [
            "Todo list: 1 in progress, 2 pending.",
            "Todo list: 1 completed, 1 in progress, 1 cancelled."
        ]
    );
    let list = context.list();
    let expected = [
        "task.read 读取报告 📄 completed",
        "task.draft 撰写初稿 in_progress",
        "task.send Send it cancelled",
    ];
    assert_eq!(states(&list), expected);
    // The parts that the second list left out are unchanged.
    assert_eq!(list.item(&todo("task.draft")).unwrap().depends_on, [todo("task.read")]);
    assert_eq!(list.item(&todo("task.read")).unwrap().result.as_deref(), Some("潮位 3.2 米"));
    let seen = [
        "task.read=in_progress task.draft=pending task.send=pending",
        "task.read=completed task.draft=in_progress task.send=cancelled",
    ];
    assert_eq!(watching.lists("task"), seen);
}

/// TD4: a list that is invalid, or does not follow from the one before, changes nothing; the model learns what
/// was expected, with the names that it gave.
#[tokio::test]
async fn td4_a_wrong_list_changes_nothing() {
    let item = |id: &str, state: &str| json!({"id": id, "title": id, "state": state});
    let first = json!([item("a", "completed"), {"id": "b", "title": "b"}]);
    for (wrong, expected) in [
        (json!([item("a", "pending")]), "item a is completed and cannot become pending"),
        (json!([item("b", "pending"), item("b", "pending")]), "two items with the id b"),
        (
            json!([{"id": "b", "title": "b", "depends_on": ["c"]}]),
            "item b depends on c, which is not in the todo list",
        ),
        (json!([{"id": "b", "title": "b", "depends_on": ["b"]}]), "item b depends on itself"),
        (
            json!([{"id": "b", "title": "b", "state": "in_progress", "depends_on": ["c"]}, item("c", "pending")]),
            "item b cannot become in_progress: it waits for c, which is not completed",
        ),
        (json!([{"id": "b", "title": "  "}]), "item b has no title"),
        (
            json!([{"id": "b", "title": "长".repeat(501)}]),
            "501 characters in its title, but at most 500",
        ),
    ] {
        let mut context = Keeping::new();
        let told = writes(&mut context, &[first.clone(), wrong]).await;
        assert!(told[1].starts_with("Error (arguments): "), "{}", told[1]);
        assert!(told[1].contains(expected), "{expected}: {}", told[1]);
        assert!(told[1].contains("The list is unchanged"), "{}", told[1]);
        assert_eq!(states(&context.list()), ["task.a a completed", "task.b b pending"]);
    }
    // Something that is not a list is refused before it is read, with what was expected.
    let told =
        writes(&mut Keeping::new(), &[json!([item("a", "done")]), json!([{"title": "b"}])]).await;
    assert!(told[0].contains("in_progress"), "{}", told[0]);
    assert!(told[1].contains("id"), "{}", told[1]);
}

/// TD4: ids that todos cannot have are replaced, and the model learns the new ones; either name is accepted.
#[tokio::test]
async fn td4_chinese_ids_are_names_as_well() {
    let mut context = Keeping::new();
    let list = json!([
        {"id": "读取", "title": "读取报告"},
        {"id": "1.2", "title": "撰写", "depends_on": ["读取"]},
    ]);
    let told = writes(&mut context, &[list]).await;
    let items = context.list().items().to_vec();
    let (short, long) = (items[0].id.as_str().strip_prefix("task.").unwrap(), items[0].id.as_str());
    assert_eq!(
        told[0],
        format!("Todo list: 2 pending. Ids: 读取 is called {short}, 1.2 is called 1:2.")
    );
    assert_eq!(items[1].depends_on, [items[0].id.clone()]);
    for name in ["读取", short, long] {
        let list = json!([{"id": name, "title": "读取报告", "state": "completed"}, {"id": "1.2", "title": "撰写"}]);
        writes(&mut context, &[list]).await;
        assert_eq!(context.list().items()[0].id, items[0].id, "{name}");
        assert_eq!(context.list().items()[0].state, ItemState::Completed);
    }
}

/// TD4: an empty list counts as none, and observers see the list even if the context keeps none.
#[tokio::test]
async fn td4_a_context_without_lists_is_no_obstacle() {
    let watching = Arc::new(Watching::default());
    let task = task("go").with_observer(watching.clone());
    let some = json!({"items": [{"id": "a", "title": "看"}]});
    let calls = [("todo_write", some), ("todo_write", json!({"items": []}))];
    let told = told(full().as_mut(), &task, &calls).await;
    assert_eq!(told, ["Todo list: 1 pending.", "The todo list is empty."]);
    assert_eq!(watching.lists("task"), ["task.a=pending", ""]);
}

/// TD2: a model shares blocks and payloads of its own conversation with an item of its list, and nothing
/// else with nobody else.
#[tokio::test]
async fn td2_a_model_shares_what_is_its_own() {
    let mut context = Keeping::new();
    let share = |to: &str, references: &[&str]| {
        ("memory_share", json!({"to": to, "references": references}))
    };
    let calls = [
        share("read", &["b_001"]),
        ("todo_write", json!({"items": [{"id": "read", "title": "读取"}]})),
        share("read", &["b_001", "b_task_001", "store://2-k4qd"]),
        share("task.read", &["b_002"]),
        share("draft", &["b_001"]),
        share("read", &["b_other_001"]),
        share("read", &["b_003", "第三块"]),
        share("read", &["b_010"]),
    ];
    let told = told(&mut context, &task("go"), &calls).await;
    assert!(told[0].contains("has no items; write it first"), "{}", told[0]);
    assert_eq!(told[2], "read may read b_task_001, store://task/2-k4qd now.");
    assert_eq!(told[3], "task.read may read b_task_002 now.");
    assert!(told[4].contains("no item \"draft\"; the items are read"), "{}", told[4]);
    assert!(told[5].contains("b_other_001 is not from your own conversation"), "{}", told[5]);
    assert!(told[6].contains("is not a reference"), "{}", told[6]);
    assert!(told[7].contains("there is no b_task_010"), "{}", told[7]);
    let expected = [
        "task -> task.read: b_task_001",
        "task -> task.read: store://task/2-k4qd",
        "task -> task.read: b_task_002",
    ];
    assert_eq!(context.kept.lock().grants, expected);
}

/// TD2: if nothing can be shared, the model learns of it, and what to do instead.
#[tokio::test]
async fn td2_a_context_that_shares_nothing_says_so() {
    let mut context = Keeping::words_only();
    let calls = [
        ("todo_write", json!({"items": [{"id": "read", "title": "读取"}]})),
        ("memory_share", json!({"to": "read", "references": ["b_001"]})),
    ];
    let told = told(&mut context, &task("go"), &calls).await;
    assert!(told[1].contains("keeps nothing that can be shared"), "{}", told[1]);
}

/// TD4: the reason why an item failed is removed when it is reopened.
#[tokio::test]
async fn td4_an_item_that_is_taken_up_again_has_no_result() {
    let item = |state: &str| json!([{"id": "a", "title": "抓取", "state": state}]);
    let failed = json!([{"id": "a", "title": "抓取", "state": "failed", "result": "断网"}]);
    for again in ["in_progress", "pending"] {
        let mut context = Keeping::new();
        writes(&mut context, &[item("in_progress"), failed.clone()]).await;
        assert_eq!(context.list().items()[0].result.as_deref(), Some("断网"));
        writes(&mut context, &[item(again)]).await;
        assert_eq!(context.list().items()[0].result, None, "{again}");
    }
}

/// TD4: an unknown key is refused, not ignored.
#[tokio::test]
async fn td4_unknown_keys_are_refused() {
    let calls = [
        ("todo_write", json!({"items": [{"id": "a", "title": "甲", "status": "completed"}]})),
        ("todo_write", json!({"items": [], "merge": true})),
        ("memory_share", json!({"to": "a", "references": ["b_001"], "from": "b"})),
    ];
    let mut context = Keeping::new();
    for (told, key) in
        told(&mut context, &task("go"), &calls).await.iter().zip(["status", "merge", "from"])
    {
        assert!(told.starts_with("Error (arguments): ") && told.contains(key), "{told}");
    }
    assert_eq!(states(&context.list()), [""; 0]);
    for tool in [foldback_agent::think(), Arc::new(foldback_agent::AskPerson::nobody()) as _] {
        let schema: Value = serde_json::from_str(&tool.spec().definition.parameters).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{}", tool.spec().name());
    }
}

/// Without an agent there is no list.
#[tokio::test]
async fn a_list_needs_an_agent() {
    let step = call(1, "todo_write", object(&[("items", Template::Array(Vec::new()))]), &[]);
    let outcome = run(&executor([todo_write()]), vec![step]).await;
    let expected = "todo_write works only in an agent, and no agent makes this call";
    assert_eq!(failure(&outcome, 1), (FailureKind::Tool, expected));
}
