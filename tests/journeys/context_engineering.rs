//! MC6, MC12 to MC15, MC17 and MC20: what good context engineering requires of a memory, met by the
//! assembled one under both fold policies.

use crate::story::{in_memory_showing, todo, views};
use foldback::core::{ItemState, TodoItem, TodoList, check_request};
use foldback::{Memory, Session};
use foldback_agent::{Agent, Executor, React, ReactSettings, Stop, Task};
use foldback_core::{
    Budget, Estimate, Message, TokenCounter, ToolCall, ToolCallId, ToolDefinition,
};
use foldback_llm::{
    AllowedTools, Availability, AvailabilityState, ChatRequest, Mask, ScriptedModel, ToolChoice,
};
use foldback_tool::{FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use std::ops::Range;
use std::sync::Arc;

fn sessions() -> impl Iterator<Item = (Memory, Session)> {
    views().into_iter().map(|view| {
        let memory = in_memory_showing(&view);
        let session = memory.session(&todo("context")).unwrap();
        (memory, session)
    })
}

fn called(session: &mut Session, n: usize, tool: &str, arguments: &str, result: &str) {
    let id = format!("call_{n}");
    let call = Message::calls("", vec![ToolCall::new(&id, tool, arguments)]);
    session.record(call).unwrap();
    session.record(Message::tool_result(&ToolCallId::new(&id), result)).unwrap();
}

fn texts(session: &Session) -> Vec<String> {
    let prompt = session.prompt(&Budget::default());
    prompt.messages.iter().map(|message| message.api_json()).collect()
}

/// The number of equal bytes at the beginning of two prompts.
fn shared(before: &[String], after: &[String]) -> usize {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b);
    same.map(|(message, _)| message.len()).sum()
}

fn page(n: usize) -> String {
    (0..400).map(|line| format!("第{n}页 line {line}: tide table of harbour {n} 潮汐\n")).collect()
}

/// The bytes of the todo's payloads with these numbers.
fn payloads(memory: &Memory, session: &Session, numbers: Range<u32>) -> Vec<String> {
    let todo = memory.find(session.todo()).unwrap();
    numbers
        .map(|n| {
            let meta = memory.payloads().meta(&todo, n.into()).unwrap();
            String::from_utf8(session.payload(&meta.reference()).unwrap()).unwrap()
        })
        .collect()
}

/// MC12: a page that is dropped leaves its address, a document its path; both come back byte for byte.
#[test]
fn mc12_what_is_dropped_leaves_a_pointer_and_comes_back() {
    for (memory, mut session) in sessions() {
        session.record(Message::user("Compare the harbours.")).unwrap();
        for n in 0..12 {
            let (tool, key, target) = match n % 2 {
                0 => ("web_fetch", "url", format!("https://example.org/harbour/{n}?q=潮")),
                _ => ("file_read", "path", format!("reports/港口_{n}.md")),
            };
            let arguments = serde_json::json!({ key: target }).to_string();
            called(&mut session, n, tool, &arguments, &page(n));
            session.record(Message::assistant(&format!("Harbour {n} is noted."))).unwrap();
        }
        let whole = texts(&session).join("\n");
        assert!(!whole.contains("line 399: tide table of harbour 0"), "the first page is dropped");
        for n in 0..12 {
            let target = match n % 2 {
                0 => format!("https://example.org/harbour/{n}?q=潮"),
                _ => format!("reports/港口_{n}.md"),
            };
            let query = serde_json::json!({ "query": target }).to_string();
            let found = session.call(&ToolCall::new("s", "search_block", &query)).unwrap().text;
            assert!(found.contains(&target), "{target}: {found}");
            assert!(found.contains("store://"), "{target}: {found}");
        }
        let pages: Vec<_> = (0..12).map(page).collect();
        assert_eq!(payloads(&memory, &session, 1..13), pages);
    }
}

/// MC12: what is not shown word for word has a pointer in its place: nothing is dropped without one.
#[test]
fn mc12_nothing_is_dropped_without_a_pointer() {
    for (_memory, mut session) in sessions() {
        let mut dropped = 0;
        session.record(Message::user("Read them.")).unwrap();
        for n in 0..30_usize {
            let result = if n.is_multiple_of(3) { page(n) } else { format!("short {n}") };
            called(&mut session, n, "file_read", &format!(r#"{{"path":"a_{n}.txt"}}"#), &result);
            for message in session.prompt(&Budget::default()).messages {
                let Some(id) = message.tool_call_id() else { continue };
                let at: usize = id.as_str().trim_start_matches("call_").parse().unwrap();
                let was = if at.is_multiple_of(3) { page(at) } else { format!("short {at}") };
                let shown = message.text();
                assert!(shown == was || shown.contains("store://"), "{id:?}: {shown}");
                dropped += usize::from(shown != was);
            }
        }
        assert!(dropped > 0, "everything was shown whole");
    }
}

/// MC13: the threshold counts tokens and not characters, so that Chinese is offloaded as English of
/// the same cost is; what stays is a preview and a short name.
#[test]
fn mc13_a_large_result_leaves_a_preview_and_a_short_pointer() {
    let chinese = "港口的潮汐数据每天更新两次。\n".repeat(60);
    let english = "The tides are told twice.\n".repeat(40);
    assert!(chinese.chars().count() <= english.len());
    assert!(Estimate.count(&chinese) > 500 && Estimate.count(&english) < 500);
    // `cache-aware` shows a short session as it is.
    for (_memory, mut session) in sessions().take(1) {
        session.record(Message::user("Read both.")).unwrap();
        called(&mut session, 0, "file_read", r#"{"path":"zh.txt"}"#, &chinese);
        called(&mut session, 1, "file_read", r#"{"path":"en.txt"}"#, &english);
        called(&mut session, 2, "clock", "{}", "noon");
        let shown = texts(&session).join("\n");
        let at = shown.find("store://").unwrap();
        let reference: String =
            shown[at..].chars().take_while(|c| !matches!(c, ',' | ']' | ' ' | '"')).collect();
        assert!(reference.chars().count() <= 24, "{reference}");
        assert!(shown.contains("港口的潮汐") && !shown.contains(&chinese.replace('\n', "\\n")));
        assert!(shown.contains(&english.replace('\n', "\\n")), "the English text stays");
    }
}

/// MC14: the todo list is recited at the end of each prompt; ticking an item re-prices less than 1 % of it.
#[test]
fn mc14_ticking_an_item_leaves_the_prefix_as_it_is() {
    for (_memory, mut session) in sessions() {
        let items = (0..6).map(|n| TodoItem::new(todo(&format!("item-{n}")), &format!("第{n}项")));
        session.set_todo_list(&TodoList::new(items.collect()).unwrap()).unwrap();
        session.record(Message::user("Work through the list.")).unwrap();
        for n in 0..4 {
            let result = format!("{n} {}", "the harbour report says more ".repeat(60));
            called(&mut session, n, "file_read", r#"{"path":"a.txt"}"#, &result);
        }
        let before = texts(&session);
        assert!(before.last().unwrap().contains("第5项"), "the list stands at the end");
        session.set_item_state(&todo("item-0"), ItemState::InProgress).unwrap();
        let after = texts(&session);
        assert_eq!(before.len(), after.len());
        let total: usize = after.iter().map(String::len).sum();
        let suffix = after.last().unwrap().len();
        assert_eq!(shared(&before, &after), total - suffix, "only the suffix changed");
        // The suffix is sent anew with each call; what the tick adds to it is what it costs.
        let words = |texts: &[String]| Estimate.count(texts.last().unwrap());
        let (extra, all) =
            (words(&after).abs_diff(words(&before)), Estimate.count(&after.concat()));
        assert!(extra * 100 < all, "{extra} of {all}");
    }
}

/// MC15: a failure, its message and its trace stay unchanged when the call is repeated.
#[test]
fn mc15_a_retry_rewrites_no_failure() {
    for (_memory, mut session) in sessions() {
        let trace = "Error: no such table: 订单\n  at query (db.rs:41)\n  at main (main.rs:7)";
        session.record(Message::user("Count the orders.")).unwrap();
        called(&mut session, 0, "sql", r#"{"query":"select count(*) from 订单"}"#, trace);
        let failed = texts(&session);
        called(&mut session, 1, "sql", r#"{"query":"select count(*) from orders"}"#, "41");
        let retried = texts(&session);
        assert_eq!(retried[..failed.len()], failed[..], "what was shown stays as it was");
        let messages = session_messages(&session, 5);
        assert_eq!(messages[2].text(), trace);
        assert_eq!(messages[4].text(), "41");
    }
}

fn session_messages(session: &Session, count: usize) -> Vec<std::sync::Arc<Message>> {
    let prompt = session.prompt(&Budget::default());
    let tail = prompt.messages.len() - prompt.volatile;
    prompt.messages[tail - count..tail].to_vec()
}

/// MC17, MC1, MC20: whatever leaves the view, calls keep all their results, parallel calls too; and
/// from call to call the prompt keeps its bytes up to the suffix, except when a fold moves it.
#[test]
fn mc17_mc20_calls_keep_their_results_and_prompts_their_beginning() {
    for (_memory, mut session) in sessions() {
        session.record(Message::system("You compare harbours.")).unwrap();
        session.record(Message::user("Compare them all.")).unwrap();
        let mut kept = 0;
        let mut calls = 0;
        for round in 0..40 {
            let ids: Vec<_> = (0..1 + round % 4).map(|n| format!("r{round}_{n}")).collect();
            let asked = ids.iter().map(|id| ToolCall::new(id, "file_read", r#"{"path":"港"}"#));
            let before = session.prompt(&Budget::default());
            let moves = session.prefix_moves();
            session.record(Message::calls("", asked.collect())).unwrap();
            for id in &ids {
                let result = format!("{id} {}", "tide ".repeat(20 * (round % 3)));
                session.record(Message::tool_result(&ToolCallId::new(id), &result)).unwrap();
            }
            let after = session.prompt(&Budget::default());
            assert_eq!(check_request(after.messages.iter().map(AsRef::as_ref)), []);
            let stable = before.messages.len() - before.volatile;
            let same = before.messages.iter().zip(&after.messages).take(stable);
            let same = same.filter(|(a, b)| a.api_json() == b.api_json()).count();
            calls += 1;
            if session.prefix_moves() == moves {
                assert_eq!(same, stable, "round {round}");
                kept += 1;
            }
        }
        assert!(kept > 0, "no prompt of {calls} went on from the one before");
    }
}

/// An agent with two tools whose model answers everything in words.
fn talking() -> (Agent, Arc<ScriptedModel>) {
    let tool = |name: &str| -> Arc<dyn Tool> {
        let spec = ToolSpec::new(ToolDefinition {
            name: name.to_owned(),
            description: "Works on a file.".to_owned(),
            parameters: r#"{"type": "object"}"#.to_owned(),
        });
        Arc::new(FunctionTool::new(spec, |_, _| async { Ok(ToolOutput::text("done")) }))
    };
    let model = Arc::new(ScriptedModel::answering(|_| "Noted. 记住了。".into()));
    let toolbox = Toolbox::new(["file_read", "file_write"].map(tool)).unwrap();
    (Agent::new(model.clone(), Executor::new(toolbox)), model)
}

fn masked(mask: Mask) -> React {
    let table = Availability::new("only", [("only", AvailabilityState::new(mask))]);
    React::new(ReactSettings::default().with_availability(table))
}

/// MC6: the choice of tools covers those that a request declares, also when recall tools are declared
/// because something has left the view. The model refuses a choice that names others.
#[tokio::test]
async fn mc6_what_may_be_called_is_declared() {
    for (_memory, mut session) in sessions() {
        let (agent, model) = talking();
        let react = masked(Mask::auto().name("file_read").name("load"));
        for n in 0..30 {
            let task = Task::new(&format!("run-{n}"), &format!("Harbour {n} 潮汐: {n} m."));
            let report = agent.run(&react, &mut session, &task).await.unwrap();
            assert_eq!(report.trajectory.outcome.stop, Stop::Answered, "{n}");
        }
        let declares =
            |request: &ChatRequest, name: &str| request.tools.iter().any(|tool| tool.name == name);
        for request in model.requests() {
            let mut names = vec!["file_read".to_owned(), "load".to_owned()];
            names.retain(|name| declares(&request, name));
            let allowed = AllowedTools { names, required: false, preferred: None };
            assert_eq!(request.tool_choice, ToolChoice::Allowed(allowed));
        }
        assert!(declares(model.requests().last().unwrap(), "load"), "nothing has left the view");
    }
}

/// MC6: if a recall tool has to be called and is not declared yet, the model answers in words.
#[tokio::test]
async fn mc6_nobody_has_to_call_what_is_not_declared() {
    let memory = in_memory_showing(&views()[1]);
    let mut session = memory.session(&todo("context")).unwrap();
    let (agent, model) = talking();
    let react = masked(Mask::required().name("load"));
    let report = agent.run(&react, &mut session, &Task::new("run", "你好")).await.unwrap();
    assert_eq!(report.trajectory.outcome.stop, Stop::Answered);
    assert_eq!(model.requests()[0].tool_choice, ToolChoice::ReplyOnly);
}
