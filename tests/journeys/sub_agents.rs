//! An agent over a store delegates work: each item in a separate todo, its results handed on by name,
//! and a process that is killed in the middle of it resumes.

use crate::story::{exchange, in_memory, open, todo};
use foldback::{Close, Memory};
use foldback_agent::{
    Agent, AgentEvent, Executor, FileJournal, Observer, React, Report, SubAgentTool, SubAgents,
    Task, memory_share, todo_write,
};
use foldback_core::{
    ContextManager, Estimate, ItemState, Message, Reference, Role, SubTasks, TodoItem, TodoList,
    TokenCounter, ToolCall, ToolDefinition,
};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_testkit::alone;
use foldback_tool::{Effect, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use serde_json::{Value, json};
use std::fs;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::tempdir;

/// What only the work on one item finds.
const SECRET: &str = "潮位 3.2 米，站点 7 号";

/// How its first line begins.
const LINE: &str = "0: 潮位";

fn spec(name: &str, effect: Effect) -> ToolSpec {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: r#"{"type": "object"}"#.to_owned(),
    };
    ToolSpec::new(definition).with_effect(effect)
}

/// Answers a table that is too large for a conversation.
fn tides() -> Arc<dyn Tool> {
    Arc::new(FunctionTool::new(spec("tides", Effect::ReadOnly), |_, _| async {
        Ok(ToolOutput::text((0..600).map(|n| format!("{n}: {SECRET}\n")).collect::<String>()))
    }))
}

/// An agent that can delegate work, and its sub-agents with these tools.
fn agent(model: Arc<ScriptedModel>, executor: Executor, tools: Vec<Arc<dyn Tool>>) -> Agent {
    let toolbox = |tools: Vec<Arc<dyn Tool>>| Toolbox::new(tools).unwrap();
    let template = Agent::new(model.clone(), executor.clone().with_toolbox(toolbox(tools)));
    let delegate = SubAgents::new(template).with_strategy(Arc::new(React::default())).delegate();
    let own = toolbox(vec![delegate, todo_write(), memory_share()]);
    Agent::new(model, executor.with_toolbox(own))
}

fn calls(tool: &str, arguments: Value) -> Answer {
    ToolCall::new(&format!("call-{tool}"), tool, &arguments.to_string()).into()
}

/// The results of tools that a request shows, in order.
fn results(request: &ChatRequest) -> Vec<String> {
    let results = request.messages.iter().filter(|message| message.tool_call_id().is_some());
    results.map(|message| message.text().into_owned()).collect()
}

/// The last name in a text with this beginning.
fn last_name(text: &str, prefix: &str) -> String {
    let (_, rest) = text.rsplit_once(prefix).unwrap_or_else(|| panic!("no {prefix} in {text}"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || "./_:-".contains(c);
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    format!("{prefix}{}", &rest[..end])
}

async fn walk(agent: &Agent, memory: &Memory, id: &str, request: &str) -> Report {
    let mut session = memory.session(&todo(id)).unwrap();
    agent.run(&React::default(), &mut session, &Task::new(id, request)).await.unwrap()
}

/// All messages of a todo, as text: what is said, and what is called.
fn said(memory: &Memory, id: &str) -> Vec<String> {
    let messages = memory.conversations().export(&todo(id)).unwrap().messages;
    let said = |message: &Message| {
        let calls: Vec<&str> = message.tool_calls().iter().map(|call| &*call.arguments).collect();
        format!("{}: {}{}", message.role().as_str(), message.text(), calls.join(" "))
    };
    messages.iter().map(said).collect()
}

/// TD1, TD2, TD4: a parent hands a block down by its name; a sub-agent hands back what it names, to its
/// parent and to the item that waits for it. A sibling neither finds nor loads any of it, and the
/// parent's conversation grows by a few words.
#[tokio::test]
async fn td1_td2_td4_what_is_named_is_handed_on_and_nothing_else_is_seen() {
    let model = ScriptedModel::answering(|request| {
        let results = results(request);
        let last = || results.last().unwrap().clone();
        let asked = || {
            let users = request.messages.iter().filter(|m| m.role().as_str() == "user");
            users.map(|m| m.text().into_owned()).find(|text| text.contains("报告")).unwrap()
        };
        match (request.session.as_deref().unwrap_or_default(), results.len()) {
            // The earlier conversation has one result of its own.
            ("plan", 0 | 1) if !request.messages.iter().any(|m| m.text().contains("completed")) => {
                calls(
                    "delegate",
                    json!({"items": [
                        {"id": "read", "title": "读取潮汐", "task": "为报告读取潮汐，不超预算", "references": ["b_001"]},
                    ]}),
                )
            }
            ("plan", _) if last().contains(r#""id":"read""#) => calls(
                "delegate",
                json!({"items": [
                    {"id": "draft", "task": "写报告初稿", "depends_on": ["read"]},
                    {"id": "poster", "task": "为报告画海报"},
                ]}),
            ),
            ("plan", _) if last().contains(r#""id":"draft""#) => {
                calls("load", json!({"ref": "b_plan.read_002", "lines": "1-40"}))
            }
            ("plan", _) => Answer::text(&format!("完成: {}", last().contains(SECRET))),
            ("plan.read", 0) => calls("load", json!({"ref": last_name(&asked(), "b_plan_")})),
            ("plan.read", 1) => {
                assert!(last().contains("预算 4200 元"), "{}", last());
                calls("tides", json!({}))
            }
            ("plan.read", _) => {
                let payload = last_name(&last(), "store://");
                Answer::text(&format!("站点七号的潮位已读取，全表见{payload}。"))
            }
            ("plan.draft", 0) => {
                let payload = last_name(&asked(), "store://");
                calls("load", json!({"ref": payload, "lines": "1-20"}))
            }
            ("plan.draft", _) => Answer::text(&format!("初稿已写: {}", last().contains(SECRET))),
            ("plan.poster", 0) => calls("search_block", json!({"query": SECRET})),
            ("plan.poster", 1) => calls("load", json!({"ref": "b_plan.read_002"})),
            ("plan.poster", _) => {
                let seen = results.iter().any(|told| told.contains(LINE));
                Answer::text(&format!("海报已画，看见别人的: {seen}"))
            }
            (session, n) => panic!("{session} {n}"),
        }
    });
    let model = Arc::new(model);
    let memory = in_memory();
    {
        let mut session = memory.session(&todo("plan")).unwrap();
        session.record_all(exchange(1, "budget", "预算 4200 元").to_vec()).unwrap();
        session.close(Close::End).unwrap();
    }
    let agent = agent(model.clone(), Executor::new(Toolbox::default()), vec![tides()]);
    let report = walk(&agent, &memory, "plan", "请写一份报告").await;
    assert_eq!(report.answer(), Some("完成: true"), "the parent loads what was handed back");

    // TD1: histories never mix, and a search never crosses.
    let read = said(&memory, "plan.read").join("\n");
    assert!(read.contains(SECRET) && read.contains("预算 4200 元"));
    let draft = said(&memory, "plan.draft");
    assert!(draft.last().unwrap().ends_with("初稿已写: true"), "TD4: {draft:?}");
    let poster = said(&memory, "plan.poster");
    assert!(poster.last().unwrap().ends_with("看见别人的: false"), "{poster:?}");
    assert!(!poster.join("\n").contains(LINE), "{poster:?}");
    let own = said(&memory, "plan");
    let sees = own.iter().filter(|said| said.contains(SECRET)).count();
    assert_eq!(sees, 1, "only what the parent loaded itself: {own:?}");
    let delegated: usize = own
        .iter()
        .filter(|said| said.contains(r#""items":[{"id""#) && said.starts_with("tool:"))
        .map(|said| Estimate.count(said))
        .sum();
    assert!((20..300).contains(&delegated), "CX7: it grew by {delegated} tokens for three items");

    // TD2, TD4: each grant is recorded.
    let grants = |id: &str| -> Vec<String> {
        let grants = memory.grants().list(&todo(id)).unwrap();
        grants.iter().map(|g| format!("{} -> {}: {}", g.from, g.to, g.reference)).collect()
    };
    let granted = grants("plan.read");
    assert!(granted.contains(&"plan -> plan.read: b_plan_001".to_owned()), "{granted:?}");
    for reader in ["plan", "plan.draft"] {
        for what in ["b_plan.read_002", "store://plan.read/1-"] {
            let grant = format!("plan.read -> {reader}: {what}");
            assert!(granted.iter().any(|line| line.starts_with(&grant)), "{grant}: {granted:?}");
        }
    }
    assert!(grants("plan.poster").iter().all(|line| line.starts_with("plan.poster -> plan: ")));
    let list = memory.todo_list(&todo("plan")).unwrap();
    assert!(list.items().iter().all(|item| item.state == ItemState::Completed));
    assert_eq!(list.items().len(), 3);
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// TD2: a model shares a block of its own with an item of its list that it has not delegated yet.
#[tokio::test]
async fn td2_a_model_shares_a_block_with_an_item() {
    let model = ScriptedModel::answering(|request| {
        let results = results(request);
        match (request.session.as_deref().unwrap_or_default(), results.len()) {
            ("plan", 0) => {
                calls("todo_write", json!({"items": [{"id": "撰写", "title": "撰写报告"}]}))
            }
            ("plan", 1) => calls("memory_share", json!({"to": "撰写", "references": ["b_001"]})),
            ("plan", 2) => calls(
                "delegate",
                json!({"items": [{"id": "撰写", "task": "写", "tools": ["load"]}]}),
            ),
            ("plan", _) => "完成".into(),
            // It learns what it was given, and by whom.
            (_, 0) => {
                let asked = request.messages.iter().rfind(|m| *m.role() == Role::User).unwrap();
                assert!(asked.text().contains("You can read: b_plan_001"), "{}", asked.text());
                calls("load", json!({"ref": "b_plan_001"}))
            }
            (_, _) => Answer::text(&format!("看到了: {}", results[0].contains("预算 4200 元"))),
        }
    });
    let memory = in_memory();
    {
        let mut session = memory.session(&todo("plan")).unwrap();
        session.record(Message::user("预算 4200 元")).unwrap();
        session.record(Message::assistant("好的。")).unwrap();
        session.close(Close::End).unwrap();
    }
    let agent = agent(Arc::new(model), Executor::new(Toolbox::default()), vec![]);
    let report = walk(&agent, &memory, "plan", "请写报告").await;
    assert_eq!(report.answer(), Some("完成"));
    let item = memory.todo_list(&todo("plan")).unwrap().items()[0].clone();
    assert_eq!((item.result.as_deref(), item.state), (Some("看到了: true"), ItemState::Completed));
}

/// TD1: a sub-agent enters no existing conversation; the model learns what to do instead.
#[tokio::test]
async fn td1_a_sub_agent_enters_nobody_s_conversation() {
    let model = Arc::new(ScriptedModel::answering(|request| match results(request).as_slice() {
        [] => calls("delegate", json!({"items": [{"id": "read", "task": "看看"}]})),
        [.., told] => Answer::text(told),
    }));
    let memory = in_memory();
    let mut stranger = memory.session(&todo("plan.read")).unwrap();
    stranger.record(Message::user("口令是芝麻")).unwrap();
    let agent = agent(model.clone(), Executor::new(Toolbox::default()), vec![]);
    let report = walk(&agent, &memory, "plan", "请看").await;
    let answer = report.answer().unwrap();
    assert!(answer.contains("give new work an id of its own"), "{answer}");
    assert_eq!(said(&memory, "plan.read").len(), 1);
    assert!(model.requests().iter().all(|request| request.session.as_deref() == Some("plan")));
}

fn kept(context: &mut dyn ContextManager) -> &mut dyn SubTasks {
    context.sub_tasks().unwrap()
}

/// TD4: what a failed item returned can be handed to another, which need not wait for it; what it did
/// not return cannot. Its failure message is removed once it is taken up again.
#[test]
fn td4_what_a_failed_item_returned_is_handed_on() {
    let memory = in_memory();
    let mut session = memory.session(&todo("plan")).unwrap();
    let context: &mut dyn ContextManager = &mut session;
    let items = ["plan.a", "plan.b"].map(|id| TodoItem::new(todo(id), "找"));
    kept(context).set_todo_list(&TodoList::new(items.to_vec()).unwrap()).unwrap();
    let mut a = context.child(todo("plan.a")).unwrap();
    let blocks = [1, 2].map(|n| {
        exchange(n, "tides", SECRET).into_iter().for_each(|message| {
            a.record(message).unwrap();
        });
        Reference::Block(kept(a.as_mut()).conclude().unwrap().unwrap())
    });
    let (failed, returned) = (ItemState::Failed, &blocks[..1]);
    kept(context).finish_item(&todo("plan.a"), failed, Some("断网"), returned).unwrap();
    let mut b = context.child(todo("plan.b")).unwrap();
    assert_eq!(kept(b.as_mut()).granted().unwrap(), []);
    assert!(kept(context).grant(&todo("plan.b"), &blocks[1..]).is_err(), "it was not returned");
    kept(context).grant(&todo("plan.b"), returned).unwrap();
    assert_eq!(kept(b.as_mut()).granted().unwrap(), returned);
    let loaded = format!(r#"{{"ref": "{}"}}"#, blocks[0]);
    assert!(memory.recall(&todo("plan.b"), "load", &loaded).unwrap().text.contains(SECRET));

    let mut again = kept(context).todo_list().items().to_vec();
    assert_eq!(again[0].result.as_deref(), Some("断网"));
    (again[0].state, again[0].result) = (ItemState::InProgress, None);
    kept(context).set_todo_list(&TodoList::new(again).unwrap()).unwrap();
    assert_eq!(kept(context).todo_list().items()[0].result, None);
    assert_eq!(kept(context).todo_list().items()[0].references, returned);
}

/// TD4: open messages are closed so that they can be named, once, however often this is requested.
#[test]
fn td4_a_todo_that_is_concluded_has_a_name_for_its_end() {
    let memory = in_memory();
    let mut session = memory.session(&todo("read")).unwrap();
    let context: &mut dyn ContextManager = &mut session;
    assert_eq!(kept(context).conclude().unwrap(), None, "nothing was said");
    for (n, expected) in [(1, "b_read_001"), (2, "b_read_002")] {
        for message in exchange(n, "tides", SECRET) {
            context.record(message).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(kept(context).conclude().unwrap().unwrap().to_string(), expected);
        }
    }
    let answer = memory.recall(&todo("read"), "load", r#"{"ref": "b_read_002"}"#).unwrap();
    assert!(answer.text.contains(SECRET), "{}", answer.text);
}

/// CX7: a search sub-agent knows its arguments alone, and its caller a conclusion; what it read is in a
/// separate todo.
#[tokio::test]
async fn cx7_a_search_reads_in_a_todo_of_its_own() {
    // Not all that it read is still in view.
    let read = AtomicUsize::new(0);
    let model = Arc::new(ScriptedModel::answering(move |request| {
        match (request.session.as_deref().unwrap_or_default(), results(request).len()) {
            ("plan", 0) => calls("ask_tides", json!({"station": "7 号"})),
            ("plan", _) => "完成".into(),
            _ => match read.fetch_add(1, Ordering::Relaxed) {
                n @ 0..5 => calls("tides", json!({"page": n})),
                _ => "最高潮位出现在周日。".into(),
            },
        }
    }));
    let executor = |tools: Vec<Arc<dyn Tool>>| Executor::new(Toolbox::new(tools).unwrap());
    let template = Agent::new(model.clone(), executor(vec![tides()]));
    let ask = SubAgentTool::new(
        spec("ask_tides", Effect::ReadOnly),
        SubAgents::new(template).with_strategy(Arc::new(React::default())),
        "查站点 {station} 的潮汐",
    );
    let agent = Agent::new(model, executor(vec![Arc::new(ask)]));
    let memory = in_memory();
    walk(&agent, &memory, "plan", "机密任务: 何时出港?").await;
    let own = said(&memory, "plan");
    let conclusion =
        r#"tool: {"step":"ask_tides","args":{"station":"7 号"},"result":"最高潮位出现在周日。"}"#;
    assert_eq!(own[own.len() - 2], conclusion);
    let todos = memory.todos(None, 10).unwrap();
    assert_eq!(todos.len(), 2);
    let inside = said(&memory, todos[1].as_str()).join("\n");
    assert!(inside.contains("user: 查站点 7 号 的潮汐") && !inside.contains("机密"), "{todos:?}");
    assert_eq!(inside.matches(LINE).count(), 5 * 60, "all of what it read is kept");
    let found = memory.recall(&todo("plan"), "search_block", r#"{"query": "潮位 站点"}"#).unwrap();
    assert!(!found.text.contains(LINE), "{}", found.text);
}

const FOLDER: &str = "FOLDBACK_TEST_SUB_AGENTS";
const STUCK: &str = "FOLDBACK_TEST_STUCK_FROM";

/// TD3: a process that is killed in the middle of two sub-agents, again and again. Completed work is
/// not repeated, and in the end each conversation is that of a process that was never killed.
#[tokio::test]
async fn td3_a_process_killed_in_the_middle_of_two_sub_agents_goes_on() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return work_on(Path::new(&folder)).await;
    }
    let undisturbed = tempdir().unwrap();
    let end = spawn(undisturbed.path(), usize::MAX).wait().unwrap();
    assert!(end.success());

    let dir = tempdir().unwrap();
    let mut kills = 0;
    loop {
        let mut child = spawn(dir.path(), 1 + kills % 3);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut stuck, mut done, mut is_over) = (0, 0, true);
        for line in lines {
            let line = line.unwrap();
            stuck += usize::from(line.contains("stuck in"));
            done = line.strip_prefix("completed ").map_or(done, |n| n.parse().unwrap());
            // Whatever is not stuck has ended: nothing is in between.
            if stuck == 2 || (stuck == 1 && done > 0) {
                is_over = false;
                break;
            }
        }
        if is_over {
            assert!(child.wait().unwrap().success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert!(kills < 40, "it comes to no end");
    }
    assert!(kills >= 4, "it was killed {kills} times only");

    let effects = |dir: &Path| -> Vec<String> {
        let effects = fs::read_to_string(dir.join("effects")).unwrap();
        let mut effects: Vec<String> = effects.lines().map(str::to_owned).collect();
        effects.sort();
        effects
    };
    assert_eq!(effects(dir.path()), effects(undisturbed.path()), "each once");
    assert_eq!(effects(dir.path()).len(), 15);
    let (memory, expected) = (open(dir.path()), open(undisturbed.path()));
    let todos = memory.todos(None, 10).unwrap();
    assert_eq!(todos, expected.todos(None, 10).unwrap());
    assert_eq!(todos.len(), 4);
    for id in &todos {
        let (messages, others) = (
            memory.conversations().export(id).unwrap().messages,
            expected.conversations().export(id).unwrap().messages,
        );
        let json = |messages: &[Message]| -> Vec<String> {
            messages.iter().map(|message| message.json().to_owned()).collect()
        };
        assert_eq!(json(&messages), json(&others), "{id}");
        let lists = (memory.todo_list(id).unwrap(), expected.todo_list(id).unwrap());
        assert_eq!(lists.0, lists.1, "{id}");
    }
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// The test in another process, where an agent works on the task.
fn spawn(folder: &Path, stuck_from: usize) -> Child {
    alone("sub_agents::td3_a_process_killed_in_the_middle_of_two_sub_agents_goes_on")
        .env(FOLDER, folder)
        .env(STUCK, stuck_from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Prints how many items are completed.
struct Says;

impl Observer for Says {
    fn observe(&self, _: &foldback_core::TodoId, event: &AgentEvent) {
        let AgentEvent::Todos { list } = event else { return };
        let done = list.items().iter().filter(|item| item.state == ItemState::Completed).count();
        println!("completed {done}");
    }
}

/// Works on the task, or resumes it.
async fn work_on(folder: &Path) {
    let stuck_from: usize = std::env::var(STUCK).unwrap().parse().unwrap();
    let effects =
        OpenOptions::new().append(true).create(true).open(folder.join("effects")).unwrap();
    let (effects, made) = (Arc::new(effects), Arc::new(AtomicUsize::new(0)));
    let work = FunctionTool::new(spec("work", Effect::Idempotent), move |arguments, call| {
        let (effects, made) = (effects.clone(), made.clone());
        async move {
            let todo = call.context.as_ref().unwrap().todo().clone();
            if made.fetch_add(1, Ordering::SeqCst) >= stuck_from {
                println!("stuck in {todo}");
                std::io::stdout().flush().unwrap();
                std::future::pending::<()>().await;
            }
            (&*effects).write_all(format!("{todo} {arguments}\n").as_bytes()).unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok(ToolOutput::text(format!("{SECRET} {arguments}\n").repeat(200)))
        }
    });
    let model = ScriptedModel::answering(|request| {
        // By the name in the question, because earlier text may have left the view.
        let (_, number) = request.id.as_deref().unwrap().rsplit_once('/').unwrap();
        let items = json!({"items": [
            {"id": "甲", "task": "研究港口甲"},
            {"id": "b", "task": "研究港口乙"},
            {"id": "c", "task": "比较甲乙", "depends_on": ["甲", "b"]},
        ]});
        match (request.session.as_deref().unwrap(), number.parse::<u32>().unwrap()) {
            ("plan", 1) => calls("delegate", items),
            ("plan", _) => "完成".into(),
            (_, n @ 1..=5) => calls("work", json!({"n": n})),
            (session, _) => Answer::text(&format!("{session} 好了，见 b_001")),
        }
    });
    let journal = FileJournal::open(folder.join("journal.jsonl")).unwrap();
    let executor = Executor::new(Toolbox::default()).with_journal(Arc::new(journal));
    let agent = agent(Arc::new(model), executor, vec![Arc::new(work)]);
    let memory = open(folder);
    let mut session = memory.session(&todo("plan")).unwrap();
    let task = Task::new("run", "比较两个港口").with_observer(Arc::new(Says));
    let report = agent.run(&React::default(), &mut session, &task).await.unwrap();
    assert_eq!(report.answer(), Some("完成"));
}
