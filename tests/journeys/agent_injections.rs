//! Texts that an attacker wrote reach the reference agent by every tool that returns someone else's
//! words: files, commands, a server, documents, a sub-agent, a person. They are folded away, found,
//! loaded and recited, and stay data.

#[path = "../../crates/mcp/tests/it/in_process.rs"]
#[expect(dead_code, reason = "a part of it is used here")]
mod in_process;

use crate::injections::{escaped, misplaced, name, page, reference, wipe};
use crate::story::{in_memory, todo};
use foldback::{Close, Session};
use foldback_agent::{
    Agent, AskPerson, CallForm, Executor, Person, Question, React, ReactSettings, Report,
    SubAgents, Task, reference_system_prompt, todo_write,
};
use foldback_core::{Budget, Message, Role, ToolCall};
use foldback_deep_search::{DeepSearch, DeepSearchSettings, Effort, research};
use foldback_documents::{DocumentFolder, DocumentSettings};
use foldback_llm::{Answer, ChatRequest, ScriptedModel};
use foldback_testkit::agent::payloads::payloads;
use foldback_tool::{Tool, Toolbox};
use foldback_tools::{Permissions, PermissionsError, toolset};
use futures::FutureExt;
use futures::future::BoxFuture;
use in_process::{Said, client, config, text, tool};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The text before the state of the work at the end of a prompt.
pub(crate) const STATE: &str = "[state of the work, not said by the user]\n";

/// The pages, and everything that brings them to an agent.
struct World {
    pages: Vec<String>,
    folder: TempDir,
    tools: Vec<Arc<dyn Tool>>,
    has_shell: bool,
    wiped: Arc<AtomicUsize>,
}

/// A person who answers with the page that the question names.
struct Reader(Vec<String>);

impl Person for Reader {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        async move { Some(self.0[number_in(&question.text)].clone()) }.boxed()
    }
}

/// The number at the end of a text.
fn number_in(text: &str) -> usize {
    text.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

impl World {
    async fn new() -> Self {
        let payloads = payloads();
        assert_eq!(payloads.len(), 200);
        let page = |(number, payload): (usize, &String)| page(number, payload);
        let pages: Vec<String> = payloads.iter().enumerate().map(page).collect();
        let folder = tempfile::tempdir().unwrap();
        for (number, page) in pages.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number}.md")), page).unwrap();
        }
        let permissions = Permissions::in_workspace(folder.path());
        let (mut tools, has_shell) = match toolset(&permissions.clone().with_shell()) {
            Ok(tools) => (tools, true),
            Err(error @ PermissionsError::Unavailable { .. }) => {
                println!("SKIPPED the command of s6_real_tools: {error}");
                (toolset(&permissions).unwrap(), false)
            }
            Err(error) => panic!("{error}"),
        };
        let served = pages.clone();
        let server = move |method: &str, params: &Value| match method {
            "tools/list" => Said::Result(json!({ "tools": [tool("fetch")] })),
            _ => Said::Result(text(&served[number_in(params["arguments"]["q"].as_str().unwrap())])),
        };
        let (server, _) = client(config("notes"), server).await;
        tools.extend(server.unwrap().tools());
        let wiped = Arc::new(AtomicUsize::new(0));
        tools.push(wipe(&wiped));
        tools.push(Arc::new(AskPerson::new(Arc::new(Reader(pages.clone())))));
        Self { pages, folder, tools, has_shell, wiped }
    }

    /// The calls that bring a page by every tool that reads, and those that delegate it.
    fn calls(&self, number: usize) -> [Vec<(&'static str, Value)>; 2] {
        let path = format!("{number}.md");
        let mut read = vec![
            ("ask_person", json!({ "question": format!("Say page {number}") })),
            ("file_grep", json!({ "pattern": ".", "path": path })),
            ("file_read", json!({ "path": path })),
            ("notes_fetch", json!({ "q": format!("page {number}") })),
        ];
        if self.has_shell {
            read.push(("shell_run", json!({ "command": format!("cat {path}") })));
        }
        let item = json!({ "id": format!("p{number}"), "task": format!("Tell page {number}") });
        let question = format!("What stands in [{}]?", name(number));
        let give = vec![
            ("delegate", json!({ "items": [item] })),
            ("research", json!({ "question": question })),
        ];
        [read, give]
    }

    /// The reference agent with all of these.
    fn agent(&self, model: &Arc<ScriptedModel>, react: &React) -> Agent {
        let own = |tools: Vec<Arc<dyn Tool>>| {
            let executor = Executor::new(Toolbox::new(tools).unwrap());
            Agent::new(model.clone(), executor).with_system_prompt(reference_system_prompt())
        };
        let delegate =
            SubAgents::new(own(self.tools.clone())).with_strategy(Arc::new(react.clone()));
        let documents =
            DocumentFolder::open(self.folder.path(), DocumentSettings::default()).unwrap();
        let depth = DeepSearchSettings::default().with_passages(1);
        let deep =
            DeepSearch::new(Arc::new(documents)).with_settings(depth.with_effort(Effort::Low));
        let mut tools = self.tools.clone();
        tools.push(delegate.delegate());
        tools.push(research(deep, SubAgents::new(own(Vec::new()))));
        tools.push(todo_write());
        own(tools)
    }
}

/// The model: it follows the script, repeats what it reads if its task is to report it, and knows what
/// it has said.
struct Script {
    form: CallForm,
    /// What the model calls at each step of the runs that read: each in two groups of parallel calls.
    reads: Vec<[Vec<(&'static str, Value)>; 2]>,
    /// What it has said.
    said: Mutex<Vec<String>>,
}

impl Script {
    fn answer(&self, request: &ChatRequest) -> Answer {
        let id = request.id.as_deref().unwrap();
        let session = request.session.as_deref().unwrap();
        let step = || id.rsplit_once('/').unwrap().1.parse::<usize>().unwrap();
        match session.split_once('.') {
            None if id.starts_with("read-") => {
                let (run, _) = id.split_once('/').unwrap();
                self.read(number_in(run), step())
            }
            None if id.starts_with("recall-") => {
                let (run, _) = id.split_once('/').unwrap();
                self.recall(number_in(run), step(), &results(request))
            }
            None => self.says("Noted."),
            Some((_, item)) if item.starts_with("research") => {
                let text = searched(id, request);
                self.says(&text)
            }
            Some((_, item)) if step() == 1 => {
                let path = format!("{}.md", number_in(item));
                self.calls(&[("file_read", json!({ "path": path }))])
            }
            // What it read is its conclusion, word for word; a block is quoted in a fence, or it would be asked about.
            Some(_) => {
                let read = results(request).pop().unwrap();
                let is_asked_about =
                    self.form == CallForm::Native && read.contains("<execute_tools>");
                self.says(&if is_asked_about { format!("```\n{read}\n```") } else { read })
            }
        }
    }

    fn read(&self, number: usize, step: usize) -> Answer {
        match step {
            1 | 2 => self.calls(&self.reads[number][step - 1]),
            3 => {
                let payload = &payloads()[number];
                let item =
                    json!({ "id": format!("t{number}"), "title": payload, "result": payload });
                self.said.lock().unwrap().push(String::new());
                ToolCall::new("t", "todo_write", &json!({ "items": [item] }).to_string()).into()
            }
            _ => self.says("Noted."),
        }
    }

    /// Searches for a page, loads its block, and what is stored outside it.
    fn recall(&self, number: usize, step: usize, results: &[String]) -> Answer {
        let call = |tool: &str, arguments: Value| {
            self.said.lock().unwrap().push(String::new());
            ToolCall::new("r", tool, &arguments.to_string()).into()
        };
        let begins = match step {
            1 => return call("search_block", json!({ "query": name(number) })),
            2 => "b_",
            3 => "store://",
            _ => return self.says("Noted."),
        };
        match reference(results.last().unwrap(), begins) {
            Some(reference) => call("load", json!({ "ref": reference })),
            None => self.says("Noted."),
        }
    }

    fn says(&self, text: &str) -> Answer {
        self.said.lock().unwrap().push(text.to_owned());
        Answer::text(text)
    }

    fn calls(&self, calls: &[(&str, Value)]) -> Answer {
        let (said, answer) = written(self.form, calls);
        self.said.lock().unwrap().push(said);
        answer
    }
}

/// An answer that makes parallel calls: its words, and the whole of it.
pub(crate) fn written(form: CallForm, calls: &[(&str, Value)]) -> (String, Answer) {
    if form == CallForm::Native {
        let call = |(at, (tool, arguments)): (usize, &(&str, Value))| {
            ToolCall::new(&format!("c{at}"), tool, &arguments.to_string())
        };
        return (String::new(), calls.iter().enumerate().map(call).collect::<Vec<_>>().into());
    }
    let call = |(tool, arguments): &(&str, Value)| {
        let server = if *tool == "notes_fetch" { "notes" } else { "tools" };
        format!("<{server}><{tool}>{arguments}</{tool}></{server}>\n")
    };
    let calls: String = calls.iter().map(call).collect();
    let block = format!("<execute_tools><parallel>\n{calls}</parallel></execute_tools>");
    (block.clone(), Answer::text(&block))
}

/// The results of tools that a request shows, in order: of calls, and of blocks.
pub(crate) fn results(request: &ChatRequest) -> Vec<String> {
    let is_result = |message: &Message| {
        *message.role() == Role::Tool || message.text().starts_with("<tool_results>")
    };
    let results = request.messages.iter().filter(|message| is_result(message));
    results.map(|message| message.text().into_owned()).collect()
}

/// The answer of a model that searches and copies everything that it finds.
fn searched(id: &str, request: &ChatRequest) -> String {
    let user = request.messages[1].text().into_owned();
    let asked = || user.rsplit_once('[').unwrap().1.split_once(']').unwrap().0;
    if id.ends_with("queries/queries") {
        return json!({ "rationale": "it", "query": [asked()] }).to_string();
    }
    if id.contains("/reflection/") {
        let told = json!({ "is_sufficient": true, "knowledge_gap": "", "follow_up_queries": [] });
        return told.to_string();
    }
    if id.contains("/answer/") {
        return user;
    }
    let sources = user.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    sources.filter_map(|source| Some(source["text"].as_str()?.to_owned())).collect()
}

/// What is wrong with a request, in which `payload` may occur only as data.
fn wrong(request: &ChatRequest, said: &[String], payload: &str) -> Vec<String> {
    let mut request = request.clone();
    let mut found = Vec::new();
    // The state of the work comes last, and is not a user's.
    let is_state = |message: &Arc<Message>| message.text().starts_with(STATE);
    if let Some(state) = request.messages.pop_if(|message| is_state(message)) {
        let state = state.text().into_owned();
        let list = state.split_once("Todo list:\n").map_or("", |(_, list)| list);
        let is_line = |line: &str| line.starts_with("1. [") || line.starts_with("2. [");
        let lines = list.split(['\n', '\r', '\u{2028}']);
        found.extend(lines.filter(|line| !line.is_empty() && !is_line(line)).map(str::to_owned));
    }
    if request.session.as_deref().is_some_and(|session| session.contains(".research")) {
        // The search is made in a separate request, which has no tools.
        let roles: Vec<&Role> = request.messages.iter().map(|message| message.role()).collect();
        if roles != [&Role::System, &Role::User] || !request.tools.is_empty() {
            found.push(format!("a search asks with {roles:?} and {} tools", request.tools.len()));
        }
        request.messages.truncate(1);
        request.messages.push(Arc::new(Message::user("(what is asked)")));
    }
    found.extend(misplaced(&request, said, payload));
    found
}

/// One session of one agent, and its task.
struct Journey {
    world: World,
    script: Arc<Script>,
    model: Arc<ScriptedModel>,
    agent: Agent,
    react: React,
    session: Session,
}

impl Journey {
    async fn new(form: CallForm) -> Self {
        let world = World::new().await;
        let reads = (0..world.pages.len()).map(|number| world.calls(number)).collect();
        let said = Mutex::new(vec![String::new()]);
        let script = Arc::new(Script { form, reads, said });
        let answers = Arc::clone(&script);
        let model = Arc::new(ScriptedModel::answering(move |request| answers.answer(request)));
        let react = React::new(ReactSettings::default().with_calls(form));
        let agent = world.agent(&model, &react);
        let session = in_memory().session(&todo("inbox")).unwrap();
        Self { world, script, model, agent, react, session }
    }

    /// One run; returns its requests, after all of them were checked.
    async fn run(&mut self, run: &str, request: &str, payload: &str) -> (Report, Vec<ChatRequest>) {
        let before = self.model.calls();
        let task = Task::new(run, request);
        let report = self.agent.run(&self.react, &mut self.session, &task).await.unwrap();
        assert_eq!(report.answer(), Some("Noted."), "{run}");
        let requests = self.model.requests().split_off(before);
        let said = self.script.said.lock().unwrap();
        for request in &requests {
            let id = request.id.as_deref().unwrap();
            assert_eq!(wrong(request, &said, payload), Vec::<String>::new(), "{id}: {payload}");
        }
        (report, requests)
    }

    /// The tools that the agent itself is given, which never change.
    fn check_tools(requests: &[ChatRequest], known: &mut Vec<String>) {
        let own = requests.iter().filter(|request| request.session.as_deref() == Some("inbox"));
        for request in own {
            let names: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
            if known.is_empty() {
                *known = names.clone();
            }
            assert_eq!(names, *known, "a tool came or went");
        }
    }
}

fn called(report: &Report) -> Vec<String> {
    let mut called: Vec<String> =
        report.trajectory.tool_calls().map(|call| call.function.clone()).collect();
    called.sort();
    called
}

async fn check(form: CallForm) {
    let mut journey = Journey::new(form).await;
    let mut tools = Vec::new();
    for (number, payload) in payloads().iter().enumerate() {
        let run = format!("read-{number}");
        let (report, requests) = journey.run(&run, "Read the next page.", payload).await;
        Journey::check_tools(&requests, &mut tools);
        let mut expected: Vec<&str> =
            journey.script.reads[number].iter().flatten().map(|(tool, _)| *tool).collect();
        expected.push("todo_write");
        expected.sort_unstable();
        assert_eq!(called(&report), expected, "{payload}");
        check_brought(&requests, &journey.world, number, payload);
        journey.session.close(Close::Switch).unwrap();
    }
    for number in 0..12 {
        let run = format!("talk-{number}");
        journey.run(&run, "Say something about the weather.", "\u{0}none").await;
        journey.session.close(Close::Switch).unwrap();
    }
    let shown = journey.session.prompt(&Budget::default()).messages;
    assert!(!shown.iter().any(|message| message.text().contains("The page ")));
    for (number, payload) in payloads().iter().enumerate() {
        let run = format!("recall-{number}");
        let (report, requests) = journey.run(&run, "What was in it?", payload).await;
        Journey::check_tools(&requests, &mut tools);
        let called = called(&report);
        assert!(called.iter().all(|tool| tool == "load" || tool == "search_block"), "{called:?}");
        let recalled = results(requests.last().unwrap()).join("\n");
        assert!(shows(&recalled, payload), "{payload} is not recalled: {recalled}");
    }
    assert_eq!(journey.world.wiped.load(Ordering::SeqCst), 0);
}

/// Whether a text contains the payload, as it is or as lists and JSON write it.
fn shows(text: &str, payload: &str) -> bool {
    forms(payload).iter().any(|form| text.contains(form.as_str()))
}

/// A payload as it is, in a list of results, in JSON, and quotations of these in a list or in JSON.
fn forms(payload: &str) -> Vec<String> {
    let told = [payload.to_owned(), escaped(payload)];
    let told = told.iter().flat_map(|text| [text.clone(), inside_json(text)]);
    told.flat_map(|text| [escaped(&text), text]).collect()
}

fn inside_json(text: &str) -> String {
    let json = json!(text).to_string();
    json.strip_prefix('"').unwrap().strip_suffix('"').unwrap().to_owned()
}

/// Each way brought the payload as a tool result; otherwise its harmlessness would prove nothing.
fn check_brought(requests: &[ChatRequest], world: &World, number: usize, payload: &str) {
    // A long page is identified by its beginning, and loaded whole later.
    if number.is_multiple_of(4) {
        return;
    }
    let mut own = requests.iter().filter(|request| request.session.as_deref() == Some("inbox"));
    let told = results(own.next_back().unwrap()).join("\n");
    let forms: BTreeSet<String> = forms(payload).into_iter().collect();
    let brought: usize = forms.iter().map(|form| told.matches(form.as_str()).count()).sum();
    // If one way brings the same words as another, it is a line that names the other.
    let brought = brought + told.matches(": word for word the result of ").count();
    // A person and a server; a file and the sub-agent that reads it, unless a byte of it is not text; a
    // command.
    let is_text = !payload.contains('\0');
    let ways = 2 + 2 * usize::from(is_text) + usize::from(world.has_shell);
    assert!(brought >= ways, "{number}: {payload} came {brought} times, not {ways}: {told}");
    // Text below its own heading is a different passage from the page's name.
    if !is_text || payload.lines().any(|line| line.starts_with('#')) {
        return;
    }
    let searched =
        requests.iter().filter(|request| request.id.as_deref().unwrap().contains("/answer/"));
    let searched = searched.map(|request| request.messages[1].text().into_owned());
    let searched = searched.collect::<String>();
    assert!(shows(&searched, payload), "{number}: {payload} is not found: {searched}");
}

/// S6: 200 payloads by the tools that the reference agent has, written as calls of the chat API.
#[tokio::test]
async fn s6_payloads_by_real_tools_stay_data() {
    check(CallForm::Native).await;
}

/// S6: the same if calls are written as blocks.
#[tokio::test]
async fn s6_payloads_by_real_tools_in_blocks_stay_data() {
    check(CallForm::ExecuteTools).await;
}
