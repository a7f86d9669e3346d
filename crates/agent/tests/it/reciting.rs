//! The todo list at the end of each prompt, in contexts whose policy keeps none.

use crate::script::{agent, full, model, running, task};
use crate::toolkit::{ms, spec, tool};
use foldback_agent::{Executor, MemoryJournal, React};
use foldback_core::{ContextError, ItemState, Reference, TodoId, TodoItem, TodoList, ToolCall};
use foldback_llm::{Answer, CacheSettings, ChatRequest, PrefixCache, ScriptedModel};
use foldback_tool::{Effect, Tool, ToolError, ToolOutput, Toolbox};
use std::sync::Arc;

fn id(n: usize) -> TodoId {
    TodoId::new(&format!("task.item-{n}")).unwrap()
}

fn list() -> TodoList {
    let items = (0..6).map(|n| TodoItem::new(id(n), &format!("第{n}项: look at chapter {n}")));
    TodoList::new(items.collect()).unwrap()
}

fn failed(error: ContextError) -> ToolError {
    ToolError::permanent(error.message)
}

/// `begin` sets a list, `tick` completes its first item, `hand_back` hands back the second one, `undo` reopens
/// completed items, and `look` does nothing.
fn tools() -> Vec<Arc<dyn Tool>> {
    let named = |name: &'static str| {
        tool(spec(name, Effect::Effectful), move |_, context| async move {
            let handle = context.context.unwrap();
            let mut list = if name == "begin" { list() } else { handle.todo_list().await.unwrap() };
            match name {
                "tick" => list.set_state(&id(0), ItemState::Completed).unwrap(),
                "undo" => {
                    let mut items = list.items().to_vec();
                    items[0].state = ItemState::Pending;
                    list = TodoList::new(items).unwrap();
                }
                "hand_back" => {
                    let references: Vec<Reference> = vec!["b_task.item-1_001".parse().unwrap()];
                    let result = Some("读完了".to_owned());
                    let keeps =
                        handle.finish_item(id(1), ItemState::Completed, result, references).await;
                    return Ok(ToolOutput::text(keeps.map_err(failed)?.to_string()));
                }
                _ => {}
            }
            if name != "look" {
                handle.set_todo_list(list).await.map_err(failed)?;
            }
            Ok(ToolOutput::text("ok"))
        })
    };
    ["begin", "tick", "undo", "hand_back", "look"].into_iter().map(named).collect()
}

fn calls(names: &[&str]) -> Vec<Answer> {
    let call = |(n, name): (usize, &&str)| ToolCall::new(&format!("c{n}"), name, "{}").into();
    names.iter().enumerate().map(call).chain(["done".into()]).collect()
}

/// The texts of a request.
fn said(request: &ChatRequest) -> Vec<String> {
    request.messages.iter().map(|message| message.api_json()).collect()
}

/// Returns the uncached part of the requests over a run of these calls, in total, and the last request.
async fn uncached(names: &[&str]) -> (u64, u64) {
    let scripted = ScriptedModel::new(calls(names));
    let model = Arc::new(scripted.with_cache(PrefixCache::new(CacheSettings::default())));
    let agent = agent(&model, tools());
    let request = "Read the book. 读这本书。".repeat(600);
    let report = agent.run(&React::default(), full().as_mut(), &task(&request)).await.unwrap();
    let usages: Vec<_> = report.trajectory.model_calls().map(|call| call.usage).collect();
    let plain = usages.iter().map(|usage| usage.input - usage.cached_read).sum();
    (plain, usages.last().unwrap().input)
}

/// MC14: the list is at the end of each request, and nothing before it changes when an item is ticked: the
/// additional cost of a tick is less than 1 % of a request.
#[tokio::test]
async fn mc14_a_tick_costs_next_to_nothing() {
    let model = model(calls(&["begin", "look", "tick", "look"]));
    let agent = agent(&model, tools());
    agent.run(&React::default(), full().as_mut(), &task("Read the book.")).await.unwrap();
    let requests = model.requests();
    assert_eq!(requests[0].volatile, 0, "there is no list yet");
    for (before, after) in requests[1..].iter().zip(&requests[2..]) {
        let (before_said, after_said) = (said(before), said(after));
        assert_eq!((before.volatile, after.volatile), (1, 1));
        let stays = before_said.len() - 1;
        assert_eq!(before_said[..stays], after_said[..stays], "the beginning is the same");
    }
    let last = |n: usize| requests[n].messages.last().unwrap().text().into_owned();
    assert!(
        last(2).starts_with("[state of the work, not said by the user]\nTodo list:\n1. [ ] 第0项")
    );
    assert_eq!(last(3), last(2).replace("1. [ ]", "1. [x]"));

    let ticked = uncached(&["begin", "look", "tick", "look", "look"]).await;
    let looked = uncached(&["begin", "look", "look", "look", "look"]).await;
    let extra = ticked.0.abs_diff(looked.0);
    assert!(extra * 100 < ticked.1, "{extra} of {}", ticked.1);
}

/// TD4: the result of a sub-task is in the list; references lead nowhere if the policy keeps none, and are not
/// shown. A list that does not follow from the one before it is refused.
#[tokio::test]
async fn td4_results_are_recited_and_nonsense_is_refused() {
    let model = model(calls(&["begin", "hand_back", "tick", "undo", "look"]));
    let agent = agent(&model, tools());
    agent.run(&React::default(), full().as_mut(), &task("Read the book.")).await.unwrap();
    let requests = model.requests();
    let told = |n: usize| {
        let request = &requests[n];
        let of = request.messages.len() - request.volatile - 1;
        request.messages[of].text().into_owned()
    };
    assert_eq!(told(2), "false", "nothing of what was handed back can be loaded");
    let last = requests.last().unwrap().messages.last().unwrap().text().into_owned();
    assert!(last.contains("1. [x] 第0项") && last.contains("(task.item-1): 读完了\n"), "{last}");
    assert!(!last.contains("b_task"), "{last}");
    assert!(
        told(4).contains("item task.item-0 is completed and cannot become pending"),
        "{}",
        told(4)
    );
}

/// MC14, TD3: a run that was killed recites the list as it was, also in a context that lost everything.
#[tokio::test(start_paused = true)]
async fn td3_the_list_outlives_the_process() {
    let journal = Arc::new(MemoryJournal::default());
    let live = async |answers: Vec<Answer>| {
        let model = model(answers);
        let executor = Executor::new(Toolbox::new(tools()).unwrap());
        let agent = running(&model, executor.with_journal(journal.clone()));
        let (mut context, task) = (full(), task("Read the book."));
        let done =
            tokio::time::timeout(ms(1_000), agent.run(&React::default(), context.as_mut(), &task))
                .await;
        (model, done.is_ok())
    };
    let mut answers = calls(&["begin", "tick"]);
    answers.pop();
    answers.push(Answer::text("never").after(ms(1_000_000)));
    let (first, is_done) = live(answers).await;
    assert!(!is_done);
    let (second, is_done) = live(vec!["done".into()]).await;
    assert!(is_done);
    let (asked, again) = (&first.requests()[2], &second.requests()[0]);
    assert_eq!(said(asked), said(again));
    assert!(said(again).last().unwrap().contains("1. [x]"));
}
