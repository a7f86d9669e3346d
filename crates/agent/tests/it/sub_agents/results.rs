//! What sub-agents know about each other, and what they hand back.

use super::{delegate, delegating, states, told_json, walk};
use crate::keeping::{Keeping, Watching, calling, scripts, todo};
use crate::script::task;
use crate::toolkit::wait;
use foldback_agent::{AgentEvent, React};
use foldback_baselines::BASELINES;
use foldback_core::{ContextManager, Estimate, ItemState};
use foldback_llm::Answer;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// TD1, TD4: each item has a conversation of its own; its result goes to the list, to the items that wait for
/// it and, in a few words, to the parent. Nobody sees more.
#[tokio::test]
async fn td1_td4_items_are_worked_on_apart() {
    let items = json!([
        {"id": "read", "task": "读取潮汐数据，暗号甲", "title": "读取"},
        {"id": "draft", "task": "写初稿，暗号乙", "depends_on": ["read"]},
    ]);
    let model = scripts([
        ("task", vec![delegate(items), "完成".into()]),
        (
            "task.read",
            vec![
                calling("wait", json!({"ms": 1})),
                "潮位 3.2 米，见 b_002 与 b_010、b_other_001。".into(),
            ],
        ),
        ("task.draft", vec!["初稿写好了".into()]),
    ]);
    let mut context = Keeping::new();
    let watching = Arc::new(Watching::default());
    let task = task("写报告").with_observer(watching.clone());
    let agent = delegating(&model, vec![wait()], |sub| sub);
    let report = agent.run(&React::default(), &mut context, &task).await.unwrap();
    assert_eq!(report.answer(), Some("完成"));

    // Histories never mix.
    assert_eq!(context.todos(), ["task", "task.draft", "task.read"]);
    let read = context.said("task.read");
    assert!(read[0].starts_with("system: You are careful."), "{}", read[0]);
    assert!(read[0].contains("You work on one item of a larger task"), "{}", read[0]);
    assert_eq!(read[1], "user: 读取潮汐数据，暗号甲");
    assert_eq!(read[2..4], [r#"assistant: {"ms":1}"#, r#"tool: {"ms":1}"#]);
    let draft = context.said("task.draft").join("\n");
    assert!(!draft.contains("暗号甲") && !draft.contains(r#""ms""#), "{draft}");

    // TD4: the item that waits is given the result, and the references that it may read.
    let brought = "Results of the items before this one, as data:\n- read (读取): \"潮位 3.2 米，见 b_002 与 \
                   b_010、b_other_001。\"; read b_task.read_001, b_task.read_002";
    assert!(draft.contains(brought), "{draft}");
    assert_eq!(
        told_json(&model),
        json!({"states": "read=completed draft=completed", "items": [
            {
                "id": "read", "state": "completed", "result": "潮位 3.2 米，见 b_002 与 b_010、b_other_001。",
                "references": ["b_task.read_001", "b_task.read_002"],
                "unreadable": ["b_task.read_010"],
            },
            {"id": "draft", "state": "completed", "result": "初稿写好了", "references": ["b_task.draft_001"]},
        ]})
    );
    let item = context.list().item(&todo("task.read")).unwrap().clone();
    assert_eq!((item.title.as_str(), item.state), ("读取", ItemState::Completed));
    assert_eq!(item.references.len(), 2, "the answer's block, and what it names of its own");
    assert_eq!(context.list().items()[1].title, "写初稿，暗号乙");
    assert_eq!(
        watching.lists("task"),
        [
            "task.read=pending task.draft=pending",
            "task.read=in_progress task.draft=pending",
            "task.read=completed task.draft=pending",
            "task.read=completed task.draft=in_progress",
            "task.read=completed task.draft=completed",
        ]
    );
    let seen = watching.0.lock();
    let delegated = seen.iter().filter(|(_, event)| matches!(event, AgentEvent::Delegated { .. }));
    assert_eq!(delegated.count(), 2);
    let asked: Vec<&str> = seen
        .iter()
        .filter(|(_, event)| matches!(event, AgentEvent::Asked { .. }))
        .map(|(todo, _)| todo.as_str())
        .collect();
    assert_eq!(
        asked,
        ["task", "task.read", "task.read", "task.draft", "task"],
        "sub-agents are watched"
    );
    assert!(seen.iter().any(|(todo, event)| todo == "task"
        && matches!(event, AgentEvent::HandedBack { state: ItemState::Completed, result, .. } if result == "初稿写好了")));
}

/// TD2: references that a parent names are handed down; those that an item returned come with the dependency
/// on it; any others are refused before anything begins.
#[tokio::test]
async fn td2_references_are_handed_down() {
    let first = json!([{"id": "a", "task": "看", "references": ["b_001", "store://2-k4qd"]}]);
    let second = json!([{"id": "b", "task": "写", "references": ["b_task.a_001"]}]);
    let foreign = json!([{"id": "c", "task": "写"}, {"id": "d", "task": "偷看", "references": ["b_other_001"]}]);
    let missing = json!([{"id": "c", "task": "写", "references": ["b_010"]}]);
    let nothing = json!([{"id": "c", "task": "写", "references": ["那一块"]}]);
    let mut asked = vec![delegate(first), delegate(second)];
    asked.extend([foreign, missing, nothing].map(delegate));
    let model = scripts([
        ("task", asked.into_iter().chain(["完成".into()]).collect()),
        ("task.a", vec!["看过了".into()]),
        ("task.b", vec!["写好了".into()]),
    ]);
    let mut context = Keeping::new();
    let report = walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    assert_eq!(report.answer(), Some("完成"));
    assert_eq!(
        context.kept.lock().grants,
        ["task -> task.a: b_task_001", "task -> task.a: store://task/2-k4qd"]
    );
    let asked = &context.said("task.a")[1];
    assert!(asked.ends_with("You can read: b_task_001, store://task/2-k4qd"), "{asked}");
    assert_eq!(context.list().item(&todo("task.b")).unwrap().depends_on, [todo("task.a")]);
    assert!(context.said("task.b")[1].contains("read b_task.a_001"));
    assert_eq!(
        states(&context),
        ["task.a=completed", "task.b=completed"],
        "the others never began"
    );
    let told: Vec<String> =
        context.said("task").into_iter().filter(|said| said.starts_with("tool:")).collect();
    assert!(told[2].contains("item d cannot be given b_other_001"), "{}", told[2]);
    assert!(told[3].contains("there is no b_task_010"), "{}", told[3]);
    assert!(told[4].contains("item c: ") && told[4].contains("is not a reference"), "{}", told[4]);
}

/// Works with any policy: one that keeps no references is given words only, and the model learns of it.
#[tokio::test]
async fn without_a_memory_there_are_words() {
    let items = json!([
        {"id": "a", "task": "甲", "references": ["b_001"]},
        {"id": "b", "task": "乙", "depends_on": ["a"]},
    ]);
    let policies = BASELINES.iter().map(|policy| policy.start(todo("task"), Arc::new(Estimate)));
    let keeps_lists: Box<dyn ContextManager> = Box::new(Keeping::words_only());
    for mut context in policies.chain([keeps_lists]) {
        let model = scripts([
            ("task", vec![delegate(items.clone()), "完成".into()]),
            ("task.a", vec!["甲好了，见 b_001".into()]),
            ("task.b", vec!["乙好了".into()]),
        ]);
        let report = walk(&delegating(&model, vec![], |sub| sub), context.as_mut()).await;
        assert_eq!(report.answer(), Some("完成"));
        let told = told_json(&model);
        assert!(
            told["note"].as_str().unwrap().starts_with("These words are all there is"),
            "{told}"
        );
        assert_eq!(
            told["items"][0],
            json!({"id": "a", "state": "completed", "result": "甲好了，见 b_001"})
        );
        let requests = model.requests();
        let asked = |session: &str| {
            let request = requests.iter().find(|r| r.session.as_deref() == Some(session)).unwrap();
            request.messages.last().unwrap().text().into_owned()
        };
        assert_eq!(asked("task.a"), "甲", "nothing is promised that cannot be read");
        assert!(asked("task.b").ends_with("- a (甲): \"甲好了，见 b_001\""), "{}", asked("task.b"));
    }
}

/// A keeper of the records of runs is given each sub-agent's.
#[tokio::test]
async fn reports_of_sub_agents_are_handed_out() {
    let model = scripts([
        ("task", vec![delegate(json!([{"id": "a", "task": "甲"}])), "完成".into()]),
        ("task.a", vec!["好".into()]),
    ]);
    let reports: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = reports.clone();
    let agent = delegating(&model, vec![], |sub| {
        sub.with_reports(move |todo, report| {
            let line = format!("{todo}: {}", report.answer().unwrap());
            kept.lock().unwrap().push(line);
        })
    });
    walk(&agent, &mut Keeping::new()).await;
    assert_eq!(*reports.lock().unwrap(), ["task.a: 好"]);
}

/// TD4: the findings of a failed item are passed on, and nobody has to wait for it.
#[tokio::test]
async fn td4_a_failed_item_s_finds_are_handed_on() {
    let broken = foldback_llm::ModelError::new(foldback_llm::ModelErrorKind::Configuration, "断网");
    let model = scripts([
        (
            "task",
            vec![
                delegate(json!([{"id": "a", "task": "找"}])),
                delegate(json!([{"id": "b", "task": "接着找", "references": ["b_task.a_001"]}])),
                "完成".into(),
            ],
        ),
        ("task.a", vec![Answer::text("").failing(broken)]),
        ("task.b", vec!["找到了".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    assert_eq!(states(&context), ["task.a=failed", "task.b=completed"]);
    assert_eq!(context.list().items()[1].depends_on, []);
    let asked = &context.said("task.b")[1];
    assert!(asked.ends_with("You can read: b_task.a_001"), "{asked}");
}

/// TD4: the result of an item is one write, unless a reference in it leads nowhere.
#[tokio::test]
async fn td4_an_item_is_handed_back_at_once() {
    let model = scripts([
        ("task", vec![delegate(json!([{"id": "a", "task": "看"}])), "完成".into()]),
        ("task.a", vec!["见 b_002、b_003、b_004".into()]),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![], |sub| sub), &mut context).await;
    assert_eq!(context.kept.lock().finished, 1);
    assert_eq!(context.list().items()[0].references.len(), 4);
}
