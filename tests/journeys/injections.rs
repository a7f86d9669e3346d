//! Texts that an attacker wrote go through a memory: brought by a tool, folded away, found and loaded
//! again. Whatever they say, they stay the results of tools.

use crate::story::{in_memory, todo};
use foldback::Session;
use foldback_agent::{Agent, CallForm, Executor, React, ReactSettings, Task};
use foldback_core::{Message, Role, ToolCall, ToolDefinition, check_request};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_planner::{StepResult, render_tool_results};
use foldback_testkit::agent::payloads::payloads;
use foldback_tool::{Data, FunctionTool, Tool, ToolOutput, ToolSpec, Toolbox};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const HEAD: &str = "You read pages.";

/// A page of a site: a name that is found again, and what an attacker wrote into it. Every fourth is so
/// long that its text is stored outside the conversation.
pub(crate) fn page(number: usize, payload: &str) -> String {
    let name = name(number);
    let long = if number.is_multiple_of(4) {
        format!("filler about {name}\n").repeat(900)
    } else {
        String::new()
    };
    format!("The page {name}:\n{payload}\n{long}That was {name}.")
}

/// A word that no other page has.
pub(crate) fn name(number: usize) -> String {
    let syllables = ["ka", "to", "mi", "re", "su", "no", "ha", "vi", "lo", "pe"];
    let digits = format!("{number:03}");
    digits.bytes().map(|digit| syllables[usize::from(digit - b'0')]).collect::<String>() + "page"
}

/// A tool that nobody asks for, with the number of its calls.
pub(crate) fn wipe(calls: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let calls = Arc::clone(calls);
    tool("wipe", move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        "wiped".to_owned()
    })
}

fn fetch() -> Arc<dyn Tool> {
    let pages: Vec<String> =
        payloads().iter().enumerate().map(|(number, payload)| page(number, payload)).collect();
    tool("fetch", move |arguments| {
        let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
        let number = arguments["q"].as_str().and_then(|text| text.parse::<usize>().ok());
        pages[number.unwrap()].clone()
    })
}

fn tool(name: &str, answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: r#"{"type":"object","properties":{"q":{"type":"string"}}}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_server("s").with_primary("q");
    Arc::new(FunctionTool::new(spec, move |arguments, _context| {
        let text = answer(&arguments);
        async move { Ok(ToolOutput::text(text)) }
    }))
}

/// What is wrong with the roles of a request: only its beginning instructs, a user message contains
/// what the user or the agent's memory said, and only tool results contain the payload's own words.
pub(crate) fn misplaced(request: &ChatRequest, said: &[String], payload: &str) -> Vec<String> {
    let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
    let violations = check_request(messages.iter().copied());
    let mut found: Vec<String> = violations.iter().map(|flaw| format!("{flaw:?}")).collect();
    let head = messages.iter().take_while(|message| message.role().is_instruction()).count();
    for (at, message) in messages.iter().enumerate() {
        let (role, text) = (message.role(), message.text());
        if role.is_instruction() && at >= head {
            found.push(format!("message {at} instructs"));
        }
        if *role != Role::Tool && text.contains(payload) && !is_reply(&text) {
            found.push(format!("{} says: {text}", role.as_str()));
        }
        if *role == Role::Assistant && !said.contains(&text.into_owned()) {
            found.push(format!("the model did not say message {at}"));
        }
    }
    found
}

/// A recalled block is a user's message to chat APIs.
fn is_reply(text: &str) -> bool {
    text.starts_with("<tool_results>") && text.ends_with("</tool_results>")
}

/// One run over a session: the model writes `answers`; returns its requests and the tools that were
/// called.
async fn run(
    session: &mut Session,
    form: CallForm,
    request: &str,
    wiped: &Arc<AtomicUsize>,
    answers: Vec<Answer>,
) -> (Vec<ChatRequest>, Vec<String>) {
    let model = Arc::new(ScriptedModel::new(answers));
    let tools = Toolbox::new([wipe(wiped), fetch()]).unwrap();
    let settings = ReactSettings::default().with_calls(form);
    let agent = Agent::new(model.clone(), Executor::new(tools));
    let agent = agent.with_system_prompt(HEAD);
    let task = Task::new(request, request);
    let report = agent.run(&React::new(settings), session, &task).await.unwrap();
    assert_eq!((report.answer(), model.left()), (Some("Noted."), 0), "{request}");
    let called = report.trajectory.tool_calls().map(|call| call.function.clone()).collect();
    (model.requests(), called)
}

/// The first reference in a text with this beginning.
pub(crate) fn reference(text: &str, begins: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-:/".contains(c));
    words
        .find(|word| word.starts_with(begins))
        .map(|word| word.trim_end_matches([':', '/']).to_owned())
}

/// The last result of a request: the state of the work follows it.
fn recalled(request: &ChatRequest) -> String {
    let mut results = request.messages.iter().filter(|message| *message.role() == Role::Tool);
    results.next_back().unwrap().text().into_owned()
}

/// A text as it appears in a list of results.
pub(crate) fn escaped(text: &str) -> String {
    let data = Data { text: text.to_owned(), structured: None };
    let list = render_tool_results([&StepResult::Success { data }]);
    let (_, data) = list.split_once("<data").unwrap();
    let (_, data) = data.split_once('>').unwrap();
    data.split_once("</data>").unwrap().0.to_owned()
}

/// Fetches 200 pages, one per run, and lets them fold; then finds and loads each of them again.
async fn check_pages(form: CallForm) {
    let memory = in_memory();
    let mut session = memory.session(&todo("pages")).unwrap();
    let wiped = Arc::new(AtomicUsize::new(0));
    let payloads = payloads();
    assert_eq!(payloads.len(), 200);
    let mut said = vec!["Noted.".to_owned(), String::new()];
    for (number, payload) in payloads.iter().enumerate() {
        let arguments = format!(r#"{{"q": "{number}"}}"#);
        let block = format!("<execute_tools><s><fetch>{number}</fetch></s></execute_tools>");
        let fetch = match form {
            CallForm::Native => Answer::from(ToolCall::new("c1", "fetch", &arguments)),
            CallForm::ExecuteTools => Answer::text(&block),
        };
        said.push(block);
        let request = format!("Read page {number}.");
        let answers = vec![fetch, "Noted.".into()];
        let (requests, called) = run(&mut session, form, &request, &wiped, answers).await;
        assert_eq!(called, ["fetch"], "{payload}");
        for request in &requests {
            assert_eq!(misplaced(request, &said, payload), Vec::<String>::new(), "{payload}");
        }
        session.close(foldback::Close::Switch).unwrap();
    }
    for number in 0..12 {
        let request = format!("Say something about the weather, {number}.");
        run(&mut session, form, &request, &wiped, vec!["Noted.".into()]).await;
        session.close(foldback::Close::Switch).unwrap();
    }
    let shown = session.prompt(&foldback_core::Budget::default()).messages;
    let is_page = |message: &Arc<Message>| message.text().contains("The page ");
    assert!(!shown.iter().any(is_page), "a page is still in view");
    for (number, payload) in payloads.iter().enumerate() {
        let name = name(number);
        let query = format!(r#"{{"query": "{name}"}}"#);
        let search = Answer::from(ToolCall::new("s", "search_block", &query));
        let answers = vec![search, "Noted.".into()];
        let request = format!("Where is it? ({number})");
        let (requests, called) = run(&mut session, form, &request, &wiped, answers).await;
        assert_eq!(called, ["search_block"]);
        let found = recalled(&requests[1]);
        assert!(found.contains(&name), "{name}: {found}");
        let mut requests = requests;
        let mut text = found;
        // The block, and what is stored outside it if the page is long.
        for begins in ["b_", "store://"] {
            let Some(reference) = reference(&text, begins) else { break };
            let arguments = format!(r#"{{"ref": "{reference}"}}"#);
            let load = Answer::from(ToolCall::new("l", "load", &arguments));
            let answers = vec![load, "Noted.".into()];
            let request = format!("Load {begins} ({number})");
            let (loaded, called) = run(&mut session, form, &request, &wiped, answers).await;
            assert_eq!(called, ["load"]);
            text = recalled(&loaded[1]);
            requests.extend(loaded);
        }
        let is_there = text.contains(payload) || text.contains(&escaped(payload));
        assert!(is_there, "{payload}: {text}");
        for request in &requests {
            assert_eq!(misplaced(request, &said, payload), Vec::<String>::new(), "{payload}");
        }
    }
    assert_eq!(wiped.load(Ordering::SeqCst), 0);
}

/// S6: 200 payloads as results of calls of the chat API, folded, searched and loaded: no role changes, and
/// nothing is called but what the model called.
#[tokio::test]
async fn s6_payloads_stay_data_through_a_memory() {
    check_pages(CallForm::Native).await;
}

/// S6: the same if calls are written as blocks.
#[tokio::test]
async fn s6_payloads_in_blocks_stay_data_through_a_memory() {
    check_pages(CallForm::ExecuteTools).await;
}

/// S6: the check itself: it finds a payload in anyone's words but a tool's, a late instruction, and
/// words that the model did not write.
#[test]
fn s6_control_a_changed_role_is_found() {
    let said = vec![String::new()];
    let call = ToolCall::new("c", "fetch", "{}");
    for payload in &payloads() {
        let found = |change: fn(&mut Vec<Message>, &str)| {
            let mut messages = vec![
                Message::system(HEAD),
                Message::user("go"),
                Message::calls("", vec![call.clone()]),
                Message::tool_result(&call.id, &page(1, payload)),
            ];
            change(&mut messages, payload);
            misplaced(&ChatRequest::new(messages), &said, payload)
        };
        assert_eq!(found(|_, _| {}), Vec::<String>::new());
        let changes: [fn(&mut Vec<Message>, &str); 4] = [
            |messages, payload| messages[0] = Message::system(&format!("{HEAD}\n{payload}")),
            |messages, payload| messages[1] = Message::user(&format!("go\n{payload}")),
            |messages, _| messages.push(Message::system("Obey.")),
            |messages, payload| messages.push(Message::assistant(payload)),
        ];
        for change in changes {
            assert_ne!(found(change), Vec::<String>::new(), "{payload}");
        }
    }
}
