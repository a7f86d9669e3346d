//! What a deep search is shown of the conversation before its question: what was said, and nothing that
//! the context policy added.

use crate::story::{exchange, in_memory_showing, todo, views};
use foldback_agent::{Adaptive, Agent, Executor, Task};
use foldback_baselines::{Full, SlidingWindow, SummaryTopN, baseline};
use foldback_core::{
    Budget, ContextManager, Estimate, ItemState, Message, Role, SeqNo, TodoItem, TodoList,
};
use foldback_deep_search::{DeepSearch, Passage, SearchBackend};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_tool::{ToolError, Toolbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;

const TASK: &str = "Find out why the 潮位 report of quay 7 is wrong.";
const ITEM: &str = "Ask the harbour office";
const QUESTION: &str = "那么它是什么时候开始的？";

/// Finds nothing.
struct Empty;

impl SearchBackend for Empty {
    fn search<'a>(
        &'a self,
        _query: &'a str,
        _k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        async { Ok(Vec::new()) }.boxed()
    }
}

fn script(request: &ChatRequest) -> Answer {
    match request.id.as_deref().and_then(|id| id.split('/').nth(1)).unwrap() {
        "queries" => r#"{"query": ["the beginning of it"], "rationale": "it"}"#.into(),
        "reflection" => {
            r#"{"is_sufficient": true, "knowledge_gap": "", "follow_up_queries": []}"#.into()
        }
        _ => "That is open.".into(),
    }
}

/// A task, pinned by its initiator, and exchanges about it.
fn history() -> Vec<Message> {
    let mut messages = vec![Message::user(TASK)];
    for n in 0..30 {
        let subject = ["tide tables", "潮位表"][n % 2];
        messages.extend(exchange(
            n,
            subject,
            &format!("reading {n}: 3.{n} m\n{}", "0 ".repeat(60)),
        ));
    }
    messages
}

/// Whether texts occur among others, in order.
fn is_part(part: &[(Role, String)], whole: &[(Role, String)]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|turn| whole.any(|other| other == turn))
}

fn turns<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<(Role, String)> {
    let turn = |message: &Message| (message.role().clone(), message.text().into_owned());
    messages.into_iter().map(turn).collect()
}

/// Holds a conversation in a context, and asks a question by a deep search; `frames` says whether the
/// policy has replaced what was said by something else.
async fn check(mut context: Box<dyn ContextManager>, name: &str, frames: bool) {
    let recorded = history();
    for (at, message) in recorded.iter().enumerate() {
        context.record(message.clone()).unwrap();
        if at == 4 {
            context.pin(SeqNo(4)).unwrap();
        }
        let prompt = context.prompt(&Budget::default());
        let said = turns(prompt.conversation().iter().map(Arc::as_ref));
        assert!(is_part(&said, &turns(&recorded[..=at])), "{name} {at}: {said:?}");
        // One may wait with a call for its result.
        if message.tool_calls().is_empty() && message.tool_call_id().is_none() {
            assert_eq!(said.last(), turns([message]).last(), "{name} {at}");
        }
    }
    let item = TodoItem { state: ItemState::InProgress, ..TodoItem::new(todo("quay.ask"), ITEM) };
    if let Some(kept) = context.sub_tasks() {
        kept.set_todo_list(&TodoList::new(vec![item]).unwrap()).unwrap();
    }

    let shown = turns(context.prompt(&Budget::default()).messages.iter().map(Arc::as_ref));
    let all = turns(&recorded);
    assert_eq!(shown.iter().any(|turn| !all.contains(turn)), frames, "{name}: {shown:?}");

    let model = Arc::new(ScriptedModel::answering(script));
    let agent = Agent::new(model.clone(), Executor::new(Toolbox::default()));
    let search = DeepSearch::new(Arc::new(Empty));
    let task = Task::new("search", QUESTION);
    let report = agent.run(&search, context.as_mut(), &task).await.unwrap();
    assert_eq!(report.answer(), Some("That is open."), "{name}");

    let topic = model.requests()[0].messages[1].text().into_owned();
    let said: Vec<(Role, String)> = topic
        .lines()
        .map(|line| match (line.strip_prefix("User: "), line.strip_prefix("Assistant: ")) {
            (Some(text), _) => (Role::User, text.to_owned()),
            (_, Some(text)) => (Role::Assistant, text.to_owned()),
            _ => panic!("{name}: nobody said {line:?} in: {topic}"),
        })
        .collect();
    let (asked, before) = said.split_last().unwrap();
    assert_eq!(asked, &(Role::User, QUESTION.to_owned()), "{name}");
    assert!(is_part(before, &all), "{name}: {topic}");
    assert_eq!(before.last(), all.last(), "{name}: {topic}");
    // What is pinned is kept in every prompt, and is what its speaker said.
    assert!(said.contains(&all[4]), "{name}: {topic}");
    assert!(!topic.contains(ITEM), "{name}: {topic}");
}

/// DS11: a search is about what was said. The memory's opening turn, its lines about blocks, a summary,
/// the todo list and the marks around words of others are none of it: under both fold policies of
/// foldback, and under policies that sum up, that keep a window, and that keep everything.
#[tokio::test]
async fn ds11_the_topic_is_what_was_said() {
    for (view, name) in views().iter().zip(["strict", "cache-aware"]) {
        let memory = in_memory_showing(view);
        let session = memory.session(&todo("quay")).unwrap();
        check(Box::new(session), name, true).await;
        let session = memory.session(&todo("quay")).unwrap();
        assert!(session.blocks() > 2, "{name}: {} blocks", session.blocks());
        let topic = session.prompt(&Budget::default());
        let task = topic.conversation().iter().find(|message| *message.role() == Role::User);
        assert_eq!(task.unwrap().text(), TASK, "{name}: the task is pinned, and a user's word");
    }
    let start = |name: &str| baseline(name).unwrap().start(todo("quay"), Arc::new(Estimate));
    let summing = SummaryTopN { trigger_tokens: 1_500, keep_messages: 8, ..SummaryTopN::default() };
    check(summing.start(todo("quay"), Arc::new(Estimate)), "summary-top-n", true).await;
    let window = SlidingWindow { keep_messages: 6 };
    check(window.start(todo("quay"), Arc::new(Estimate)), "window", true).await;
    check(start("stm-ltm"), "stm-ltm", true).await;
    check(Full.start(todo("quay"), Arc::new(Estimate)), "full", false).await;
}

/// OP18: a context in which nothing was said yet contains no conversation, whatever its policy has
/// written into it.
#[tokio::test]
async fn op18_what_a_policy_writes_is_no_conversation() {
    for view in views() {
        let mut session = in_memory_showing(&view).session(&todo("quay")).unwrap();
        let tool = foldback_agent::think();
        let model = Arc::new(ScriptedModel::new([
            r#"{"mode": "react", "reason": "open"}"#.into(),
            "It is.".into(),
        ]));
        let agent = Agent::new(model, Executor::new(Toolbox::new([tool]).unwrap()));
        let report =
            agent.run(&Adaptive::default(), &mut session, &Task::new("r", TASK)).await.unwrap();
        let because = report.trajectory.strategy.because.as_deref().unwrap();
        assert!(because.contains("nothing was said before"), "{because}");
    }
}
