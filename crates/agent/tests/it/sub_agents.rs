//! Agents that work for an agent.

use crate::keeping::{Keeping, Watching, calling, last_result, scripts, todo};
use crate::resume::Full;
use crate::script::task;
use crate::toolkit::{Counter, ms, spec, tool, wait};
use foldback_agent::{
    Agent, AgentEvent, Allowance, ApprovalRequest, Approver, Decision, Executor, MemoryJournal,
    Purse, Report, Resource, Stop, Strategy, SubAgentTool, SubAgents, Task, Tool, ToolOutput,
    Toolbox, todo_write,
};
use foldback_baselines::BASELINES;
use foldback_core::{ContextManager, Estimate, ItemState, TokenCounter};
use foldback_llm::{Answer, ScriptedModel};
use foldback_planner::Effect;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// A plan of one that needs no call.
const NOTHING_MORE: &str = r#"{"action_plan": {}}"#;

/// An agent that can delegate to agents that go step by step with these tools.
fn delegating(
    model: &Arc<ScriptedModel>,
    tools: Vec<Arc<dyn Tool>>,
    change: impl FnOnce(SubAgents) -> SubAgents,
) -> Agent {
    journaled(model, tools, Executor::new(Toolbox::default()), change)
}

fn journaled(
    model: &Arc<ScriptedModel>,
    tools: Vec<Arc<dyn Tool>>,
    executor: Executor,
    change: impl FnOnce(SubAgents) -> SubAgents,
) -> Agent {
    let theirs = executor.clone().with_toolbox(Toolbox::new(tools.clone()).unwrap());
    let template = Agent::new(model.clone(), theirs).with_head("You are careful.");
    let sub_agents = change(SubAgents::new(template).with_strategy(Strategy::React));
    let own = tools.into_iter().chain([sub_agents.delegate(), todo_write()]);
    Agent::new(model.clone(), executor.with_toolbox(Toolbox::new(own).unwrap()))
}

fn delegate(items: Value) -> Answer {
    calling("delegate", json!({ "items": items }))
}

async fn walk(agent: &Agent, context: &mut dyn ContextManager) -> Report {
    agent.react(context, &task("写报告")).await.unwrap()
}

/// What the model was told of its last call.
fn told(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let own = requests.iter().rfind(|request| request.session.as_deref() == Some("task"));
    last_result(own.unwrap())
}

fn told_json(model: &ScriptedModel) -> Value {
    serde_json::from_str(&told(model)).unwrap()
}

/// Says something after so many seconds.
fn says(text: &str, seconds: u64) -> Answer {
    Answer::text(text).after(Duration::from_secs(seconds))
}

fn states(context: &Keeping) -> Vec<String> {
    let line = |item: &foldback_core::TodoItem| format!("{}={}", item.id, item.state);
    context.list().items().iter().map(line).collect()
}

/// TD1, TD4: each item has a conversation of its own; what came out goes to the list, to the items that
/// wait for it and, in a few words, to the parent. Nobody sees more.
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
    let task = Task { observer: Some(watching.clone()), ..task("写报告") };
    let agent = delegating(&model, vec![wait()], |sub| sub);
    let report = agent.react(&mut context, &task).await.unwrap();
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

    // TD4: the item that waits is told what came out, and what may be read of it.
    let brought = "What the items before this one brought, as data:\n- read (读取): \"潮位 3.2 米，见 b_002 与 \
                   b_010、b_other_001。\"; read b_task.read_001, b_task.read_002";
    assert!(draft.contains(brought), "{draft}");
    assert_eq!(
        told_json(&model),
        json!({"states": "read=completed draft=completed", "items": [
            {
                "id": "read", "state": "completed", "result": "潮位 3.2 米，见 b_002 与 b_010、b_other_001。",
                "references": ["b_task.read_001", "b_task.read_002"],
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

/// TD2: what a parent names is handed down; what an item returned comes with the dependency on it; what
/// is neither is refused before anything begins.
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
    assert!(told[4].contains("item c: ") && told[4].contains("is no reference"), "{}", told[4]);
}

/// Items that wait for nothing are worked on beside each other, as many as may be at once; one that waits
/// begins when the last that it waits for has ended.
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

/// Two calls of one turn work beside each other as well, on one list.
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
    assert!(told(&model).contains("a sub-agent is working on item a already"), "{}", told(&model));
}

/// B8, TD4: one that fails fails those that wait for it, each with the reason; its siblings go on and
/// keep what they brought.
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
        // The script of e is at its end at once, and panics.
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
    assert_eq!(result(1), "not begun: it waits for a, which failed");
    assert_eq!(result(2), "not begun: it waits for b, which failed");
    assert_eq!(result(3), "好了");
    assert_eq!(result(4), "the sub-agent panicked");
    assert_eq!(context.todos(), ["task", "task.a", "task.d", "task.e"]);
}

/// B9: one that only ran out of steps is not done; where nothing is, the call has failed. A failed item
/// can be taken up again, where it stood.
#[tokio::test]
async fn b9_an_item_that_ran_out_of_steps_has_failed() {
    let order = || delegate(json!([{"id": "a", "task": "找"}]));
    let looks = || calling("wait", json!({"ms": 1}));
    let model = scripts([
        ("task", vec![order(), order(), "完成".into()]),
        ("task.a", (0..30).map(|_| looks()).chain(["找到了".into()]).collect()),
    ]);
    let mut context = Keeping::new();
    walk(&delegating(&model, vec![wait()], |sub| sub), &mut context).await;
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

/// Each sub-agent has a bound of its own, and spends from its parent's purse.
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
    let three = Allowance { model_calls: Some(3), ..Allowance::default() };
    let run = async |model: &Arc<ScriptedModel>, sub: Allowance, own: Allowance| {
        let agent = delegating(model, vec![wait()], |s| s.with_allowance(sub).with_max_parallel(1));
        let task = Task { purse: Purse::new(own, None).unwrap(), ..task("写报告") };
        let report = agent.react(&mut Keeping::new(), &task).await.unwrap();
        (report, task.purse.spent())
    };
    let asked = model();
    let (report, spent) = run(&asked, three, Allowance::default()).await;
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

    let four = Allowance { model_calls: Some(4), ..Allowance::default() };
    let (report, spent) = run(&model(), Allowance::default(), four).await;
    assert_eq!(report.trajectory.outcome.stop, Stop::Exhausted { resource: Resource::ModelCalls });
    assert_eq!(spent.model_calls, 4, "sub-agents cannot spend what their parent does not have");
}

/// N3: what a delegated item has cost is spent again when its parent is resumed, and the journal holds the
/// result: nobody works on it twice.
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
        agent.react(&mut Keeping::new(), &task).await.unwrap();
        spent.push(task.purse.spent());
    }
    assert_eq!((spent[0].model_calls, spent[0].tool_calls, model.calls()), (4, 2, 4));
    assert!(spent[0].usage.input > 0);
    assert_eq!(spent[1], spent[0]);
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
    assert!(told(&model).contains("named \"file\"; give names of these"), "{}", told(&model));

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

/// An order that makes no sense is refused as a whole, and says what was expected.
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
            "item a is given away twice",
        ),
        (json!([{"id": "done", "task": "甲"}]), "item done is completed already"),
        (
            json!([{"id": "a", "task": "甲", "depends_on": ["open"]}]),
            "item a waits for open, which is pending; give open away as well",
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

fn foldback_id(name: &str) -> String {
    format!("task.{}", foldback_core::TodoId::from_foreign(name))
}

/// Whatever the policy is: one that keeps nothing gets words only, and the model is told so.
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

/// Whoever cancels stops the sub-agents; their items stay under way, and nothing more begins.
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
    let report = agent.react(&mut context, &task).await.unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::Cancelled);
    assert!(began.elapsed() < ms(8_000), "{:?}", began.elapsed());
    assert_eq!(states(&context), ["task.a=in_progress", "task.b=in_progress", "task.c=pending"]);
}

/// A model whose answers follow from how far each conversation is, so that any process gives the same:
/// two items beside each other, and one that waits for both.
fn far_along() -> Arc<ScriptedModel> {
    let items = json!([
        {"id": "a", "task": "甲"}, {"id": "b", "task": "乙"}, {"id": "c", "task": "丙", "depends_on": ["a", "b"]},
    ]);
    Arc::new(ScriptedModel::answering(move |request| {
        let results = request.messages.iter().filter(|m| m.tool_call_id().is_some()).count();
        let work = |n: usize| calling("work", json!({"n": n})).after(ms(10_000));
        match (request.session.as_deref().unwrap_or_default(), results) {
            ("task", 0) => delegate(items.clone()),
            ("task", _) => "完成".into(),
            ("task.a", 0) => work(1),
            ("task.a", _) => says("甲好了", 10),
            ("task.b", n @ 0..3) => work(n + 2),
            ("task.b", _) => says("乙好了", 10),
            (_, 0) => work(9),
            (_, _) => says("丙好了", 10),
        }
    }))
}

/// Takes a second, and counts what it has done.
fn work(done: &Counter) -> Arc<dyn Tool> {
    let done = done.clone();
    tool(spec("work", Effect::Idempotent), move |arguments, _| {
        let done = done.clone();
        async move {
            tokio::time::sleep(ms(1_000)).await;
            done.add();
            Ok(ToolOutput::json(arguments))
        }
    })
}

/// How many calls of `work` there are, and what a run that is not stopped leaves.
const WORK: usize = 5;

async fn undisturbed() -> Vec<Vec<String>> {
    let (mut context, done) = (Keeping::new(), Counter::default());
    walk(&delegating(&far_along(), vec![work(&done)], |sub| sub), &mut context).await;
    assert_eq!(done.get(), WORK);
    conversations(&context)
}

/// TD3: a run that is stopped in the middle of two sub-agents goes on in each where it stood: what ended
/// is not done again, and the end is that of a run that was not stopped.
#[tokio::test(start_paused = true)]
async fn td3_sub_agents_go_on_where_they_stood() {
    let undisturbed = undisturbed().await;
    for stop_after in [3, 12, 21, 24, 33, 45, 47, 56, 60] {
        let journal = Arc::new(MemoryJournal::default());
        let (done, mut context) = (Counter::default(), Keeping::new());
        let executor = Executor::new(Toolbox::default()).with_journal(journal);
        let agent = || journaled(&far_along(), vec![work(&done)], executor.clone(), |sub| sub);
        {
            // Dropped in the middle, as a process that is killed.
            let (agent, task) = (agent(), task("写报告"));
            let run = agent.react(&mut context, &task);
            let stopped = tokio::time::timeout(Duration::from_secs(stop_after), run).await;
            assert!(stopped.is_err(), "{stop_after}");
        }
        // What was spawned is let go before another process begins.
        tokio::time::sleep(ms(10)).await;
        let mut context = context.reopened();
        let report = walk(&agent(), &mut context).await;
        assert_eq!(report.answer(), Some("完成"), "{stop_after}");
        assert_eq!(conversations(&context), undisturbed, "{stop_after}");
        assert_eq!(done.get(), WORK, "{stop_after}: no call with a result is made again");
        assert_eq!(states(&context), ["task.a=completed", "task.b=completed", "task.c=completed"]);
    }
}

/// TD3: the same wherever the journal takes nothing more. Only calls whose end could not be written down
/// may be made again, and two are under way at once.
#[tokio::test(start_paused = true)]
async fn td3_sub_agents_go_on_from_every_record() {
    let undisturbed = undisturbed().await;
    let mut stops = 0;
    for room in 0.. {
        let journal = Arc::new(Full(MemoryJournal::default(), Mutex::new(room)));
        let (done, mut context) = (Counter::default(), Keeping::new());
        let executor = Executor::new(Toolbox::default()).with_journal(journal.clone());
        let agent = || journaled(&far_along(), vec![work(&done)], executor.clone(), |sub| sub);
        let is_over = agent().react(&mut context, &task("写报告")).await.is_ok();
        *journal.1.lock().unwrap() = usize::MAX;
        tokio::time::sleep(ms(10)).await;
        let mut context = context.reopened();
        let report = walk(&agent(), &mut context).await;
        assert_eq!(report.answer(), Some("完成"), "{room}");
        assert_eq!(conversations(&context), undisturbed, "{room}");
        assert!((WORK..=WORK + 2).contains(&done.get()), "{room}: {} calls", done.get());
        assert_eq!(states(&context), ["task.a=completed", "task.b=completed", "task.c=completed"]);
        if is_over {
            break;
        }
        stops += 1;
    }
    assert!(stops > 60, "the run was stopped {stops} times");
}

fn conversations(context: &Keeping) -> Vec<Vec<String>> {
    context.todos().iter().map(|todo| context.said(todo)).collect()
}

/// CX7: a sub-agent as a tool sees its arguments alone; the caller's conversation grows by a short
/// conclusion, however much was read for it.
#[tokio::test]
async fn cx7_a_search_is_a_calculator() {
    let found = "西湖景区门票信息".repeat(4_000);
    let text = found.clone();
    let search = tool(spec("search", Effect::ReadOnly), move |_, _| {
        let text = text.clone();
        async move { Ok(ToolOutput::text(text)) }
    });
    let long = format!("周六晴，建议去青藤茶馆。{}", "详情。".repeat(3_000));
    let mut model: Option<Arc<ScriptedModel>> = None;
    for (answer, is_cut) in
        [("周六晴, 建议去青藤茶馆; 周日雨, 建议室内体验。", false), (&long, true)]
    {
        let args = json!({"query": "杭州周末天气及茶馆建议 {city}", "days": 2});
        let answer = answer.to_owned();
        let own = Arc::new(ScriptedModel::answering(move |request| {
            let results = request.messages.iter().filter(|m| m.tool_call_id().is_some()).count();
            match (request.session.as_deref().unwrap_or_default(), results) {
                ("task", 0) => calling("ask_search", args.clone()),
                ("task", _) => "完成".into(),
                (_, n @ 0..3) => calling("search", json!({"page": n})),
                (_, _) => Answer::text(&answer),
            }
        }));
        let template =
            Agent::new(own.clone(), Executor::new(Toolbox::new([search.clone()]).unwrap()));
        let calculator = SubAgentTool::new(
            spec("ask_search", Effect::ReadOnly),
            SubAgents::new(template).with_strategy(Strategy::React),
            "在 {days} 天内: {query}",
        );
        let agent = Agent::new(
            own.clone(),
            Executor::new(Toolbox::new([Arc::new(calculator) as Arc<dyn Tool>]).unwrap()),
        );
        let mut context = Keeping::new();
        let report = agent.react(&mut context, &task("机密: 给王总订行程")).await.unwrap();
        assert_eq!(report.answer(), Some("完成"));

        let told = told(&own);
        assert!(told.starts_with(r#"{"step":"ask_search","args":{"#), "{told}");
        let read: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(read["args"]["query"], "杭州周末天气及茶馆建议 {city}");
        let result = read["result"].as_str().unwrap();
        assert!(result.starts_with("周六晴"), "{result}");
        assert_eq!(result.contains("characters left out"), is_cut, "{result}");
        assert!(Estimate.count(&told) < 500, "{}", Estimate.count(&told));
        let all: String = context.said("task").concat();
        assert!(!all.contains("西湖景区"), "nothing of what was read reaches the caller");

        let todos = context.todos();
        assert_eq!(todos.len(), 2);
        let inside = context.said(&todos[1]);
        assert!(todos[1].starts_with("task.ask_search-"), "{}", todos[1]);
        assert_eq!(inside[1], "user: 在 2 天内: 杭州周末天气及茶馆建议 {city}");
        assert!(!inside.concat().contains("机密"), "the caller's conversation stays its own");
        assert_eq!(inside.len(), 9);
        model = Some(own);
    }
    assert_eq!(model.unwrap().calls(), 6);
}

/// CX7: a sub-agent that comes to no answer is a failed call, which says why.
#[tokio::test]
async fn cx7_a_search_that_fails_says_so() {
    let broken = foldback_llm::ModelError::new(foldback_llm::ModelErrorKind::Configuration, "断网");
    let answers =
        vec![calling("ask_search", json!({})), Answer::text("").failing(broken), "完成".into()];
    let model = Arc::new(ScriptedModel::new(answers));
    let template = Agent::new(model.clone(), Executor::new(Toolbox::default()));
    let sub_agents = SubAgents::new(template).with_strategy(Strategy::React);
    let tool = SubAgentTool::new(spec("ask_search", Effect::ReadOnly), sub_agents, "{arguments}");
    let toolbox = Toolbox::new([Arc::new(tool) as Arc<dyn Tool>]).unwrap();
    let report =
        walk(&Agent::new(model.clone(), Executor::new(toolbox)), &mut Keeping::new()).await;
    assert_eq!(report.answer(), Some("完成"));
    assert!(
        told(&model).starts_with("Error (tool): ") && told(&model).contains("断网"),
        "{}",
        told(&model)
    );
}

/// Whoever keeps the records of runs is given each sub-agent's.
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

/// A plan gives work away as well, and goes on with what came out; sub-agents plan for themselves, unless
/// they are told to go step by step.
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
    let report = agent.one_plan(&mut context, &task("写报告")).await.unwrap();
    assert_eq!(report.answer(), Some("完成"));
    let levels: Vec<&str> =
        report.trajectory.tool_calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(levels[1], r#"{"level":"潮位 3.2 米"}"#);
    assert_eq!(states(&context), ["task.a=completed"]);
    assert_eq!(model.calls(), 4, "two for each: a plan and an answer");
}

/// Refuses whatever does something to the world.
struct Refusing;

impl Approver for Refusing {
    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>> {
        let denied = || Decision::Denied { reason: "不行".to_owned() };
        async move { calls.iter().map(|_| denied()).collect() }.boxed()
    }
}

/// Giving work away needs no approval; what sub-agents do to the world needs the one that it always does.
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

/// B8: a store that fails one item takes nothing from the others: they come to their end, and the error
/// says which it was.
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

/// B9: half an answer is none, and neither is one without words.
#[tokio::test(start_paused = true)]
async fn b9_a_cut_answer_is_no_success() {
    let cut = |text: &str| Answer::text(text).stopped(foldback_llm::StopReason::Length);
    let ends = [
        (vec![cut("一共"), cut("一共是")], "cut off; its last words: 一共是"),
        (vec!["".into(), "".into()], ""),
    ];
    for (answers, expected) in ends {
        let plan = Answer::text(NOTHING_MORE);
        let model = scripts([
            ("task", vec![delegate(json!([{"id": "a", "task": "数"}])), "完成".into()]),
            ("task.a", [plan].into_iter().chain(answers).collect()),
        ]);
        let mut context = Keeping::new();
        let agent = delegating(&model, vec![], |sub| sub.with_strategy(Strategy::OnePlan));
        walk(&agent, &mut context).await;
        assert_eq!(states(&context), ["task.a=failed"], "{expected}");
        assert!(told(&model).contains(expected), "{}", told(&model));
    }
}

/// TD1: new work under an old name does not go on in the old conversation.
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

/// One agent works in two stores at once, on items of one name.
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
    let of = |run: &str| Task { run: run.to_owned(), ..task("写报告") };
    let (first, second) = (of("first"), of("second"));
    let (one, other) =
        tokio::join!(agent.react(&mut one, &first), agent.react(&mut other, &second));
    for report in [one, other] {
        let report = report.unwrap();
        let answer = report.answer().unwrap();
        assert!(answer.contains(r#""states":"a=completed""#), "{answer}");
    }
}

/// TD4: what a failed item has found is handed on, and nobody has to wait for it.
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

/// TD4: what an item came to is one write, unless something of it leads nowhere.
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
