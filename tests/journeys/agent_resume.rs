//! An agent over a store is stopped at every point at which it writes something, and resumes: nothing
//! runs twice, and the conversation is that of a run that was never stopped.

use crate::story::{open, todo};
use foldback::Session;
use foldback_agent::{
    Adaptive, Agent, AgentError, Executor, FileJournal, Journal, JournalError, OnePlan, React,
    Record, Report, Strategy, Task,
};
use foldback_core::{
    ContextError, ContextLayer, ContextManager, Message, Recorded, ToolCall, ToolDefinition,
};
use foldback_llm::{Answer, ModelError, ModelErrorKind, ScriptedModel};
use foldback_testkit::{alone, stride};
use foldback_tool::{Effect, FunctionTool, Tool, ToolError, ToolOutput, ToolSpec, Toolbox};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::tempdir;

/// A run: its strategy, its request, and whether something was said before.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    strategy: &'static str,
    follows: bool,
    request: &'static str,
}

impl Case {
    fn strategy(&self) -> Box<dyn Strategy> {
        match self.strategy {
            "react" => Box::new(React::default()),
            "one-plan" => Box::new(OnePlan::default()),
            _ => Box::new(Adaptive::default()),
        }
    }
}

const CASES: [Case; 6] = [
    Case {
        name: "react",
        strategy: "react",
        follows: false,
        request: "比较两个港口的潮汐, and book a room.",
    },
    Case {
        name: "react",
        strategy: "react",
        follows: true,
        request: "Compare the two harbours again, and book a room.",
    },
    Case { name: "plan", strategy: "one-plan", follows: false, request: "Compare the harbours." },
    Case {
        name: "plan",
        strategy: "adaptive",
        follows: true,
        request: "Compare the harbours of Oslo and Rome, and book a room.",
    },
    Case { name: "degraded", strategy: "adaptive", follows: false, request: "Find the lost ship." },
    Case { name: "react", strategy: "adaptive", follows: true, request: "Continue with it." },
];

/// How much a process still writes before it is stopped.
struct Life {
    left: AtomicI64,
    written: AtomicI64,
    /// Whether it then hangs, to be killed, or continues without writing anything.
    hangs: bool,
}

impl Life {
    fn of(writes: i64, hangs: bool) -> Arc<Self> {
        Arc::new(Self { left: AtomicI64::new(writes), written: AtomicI64::new(0), hangs })
    }

    /// Whether the process is alive for one more write.
    fn write(&self) -> bool {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            self.written.fetch_add(1, Ordering::SeqCst);
            return true;
        }
        if self.hangs {
            println!("stopped");
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
        false
    }

    fn is_over(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }
}

/// A journal that is written as long as the process lives.
struct Mortal {
    inner: FileJournal,
    life: Arc<Life>,
}

impl Journal for Mortal {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        if self.life.write() {
            return self.inner.append(run, record);
        }
        Err(JournalError::Broken { path: "journal".into() })
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.inner.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.inner.records(run)
    }
}

/// A session that records as long as the process lives.
struct Recording {
    inner: Session,
    life: Arc<Life>,
}

impl ContextLayer for Recording {
    fn inner(&self) -> &dyn ContextManager {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        &mut self.inner
    }

    fn record(&mut self, message: Message) -> Result<Recorded, ContextError> {
        if self.life.write() {
            return ContextManager::record(&mut self.inner, message);
        }
        Err(ContextError { message: "the process is dead".to_owned(), source: None })
    }
}

/// What all processes did together: the calls by key, and the requests to the model.
#[derive(Clone, Default)]
struct Done {
    calls: Arc<Mutex<BTreeMap<String, u32>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

/// A result that is large enough to be stored outside the conversation.
fn table(path: &str) -> String {
    let mut text = String::from("hour,潮位\n");
    for hour in 0..600 {
        text.push_str(&format!("{hour},{} {path}\n", hour * 37 % 90));
    }
    text
}

fn tool(name: &str, effect: Effect, life: &Arc<Life>, done: &Done) -> Arc<dyn Tool> {
    let definition = ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: r#"{"type": "object"}"#.to_owned(),
    };
    let spec = ToolSpec::new(definition).with_effect(effect);
    let (life, calls, name) = (Arc::clone(life), Arc::clone(&done.calls), name.to_owned());
    Arc::new(FunctionTool::new(spec, move |arguments, context| {
        let (life, calls, name) = (Arc::clone(&life), Arc::clone(&calls), name.clone());
        async move {
            if life.is_over() {
                return Err(ToolError::permanent("the process is dead"));
            }
            *calls.lock().unwrap().entry(context.idempotency_key).or_default() += 1;
            let large = arguments.contains("rome");
            Ok(ToolOutput::text(if large {
                table(&arguments)
            } else {
                format!("{name}: {arguments}")
            }))
        }
    }))
}

fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall::new(id, tool, arguments)
}

/// What the model answers to the request of an id.
fn answer(case: Case, id: &str) -> Answer {
    let id = id.strip_prefix("run/").unwrap_or(id);
    match (case.name, id) {
        ("react", "react/1") => vec![
            call("c", "look", r#"{"path": "港口/oslo.txt"}"#),
            call("c", "look", r#"{"path": "rome.txt"}"#),
        ]
        .into(),
        ("react", "react/2") => Message::calls(
            "先查一下。",
            vec![
                call("s", "search_block", r#"{"query": "rome 潮位"}"#),
                call("b", "book", r#"{"room": 2}"#),
                call("l", "list_blocks", "{}"),
            ],
        )
        .into(),
        ("react", "react/3") => call("n", "no_such_tool", "{}").into(),
        ("react", "react/4") => "Both are fine. 都可以。".into(),
        ("plan", "planner/1") => r#"{"action_plan": {
            "step1": {"function": "look", "args": {"path": "oslo.txt"}},
            "step2": {"function": "look", "args": {"path": "rome.txt"}},
            "step3": {"function": "anchor_function", "args": {"task": "定"}, "dependence": [1]},
            "step4": {"function": "book", "args": {"of": "$$step1.result$$"}, "dependence": [1, 2]}}}"#
            .into(),
        ("plan", "replan/1") => r#"{"action_plan": {
            "step5": {"function": "book", "args": {"room": "$$step1.result$$"}, "dependence": [1]}}}"#
            .into(),
        ("plan", "answer/1") => "Room 2 is booked. 已预订。".into(),
        ("degraded", "planner/1" | "repair/1") => {
            r#"{"action_plan": {"step1": {"function": "sail", "args": {}}}}"#.into()
        }
        ("degraded", "react/1") => call("", "look", r#"{"path": "rome.txt"}"#).into(),
        ("degraded", "react/2") => "It is in Rome.".into(),
        (_, id) => panic!("nobody answers {id}"),
    }
}

/// One process: works on the case until it ends or is stopped.
fn live(case: Case, dir: &Path, life: &Arc<Life>, done: &Done) -> Result<Report, AgentError> {
    let (asked, own_life) = (Arc::clone(&done.asked), Arc::clone(life));
    let model = ScriptedModel::answering(move |request| {
        if own_life.is_over() {
            return ModelError::new(ModelErrorKind::Unavailable, "the process is dead").into();
        }
        let id = request.id.clone().unwrap();
        let answer = answer(case, &id);
        asked.lock().unwrap().push(id);
        answer
    });
    let journal = FileJournal::open(dir.join("journal.jsonl")).unwrap();
    let journal = Mortal { inner: journal, life: Arc::clone(life) };
    let tools =
        [tool("look", Effect::ReadOnly, life, done), tool("book", Effect::Idempotent, life, done)];
    let executor = Executor::new(Toolbox::new(tools).unwrap()).with_journal(Arc::new(journal));
    let agent = Agent::new(Arc::new(model), executor).with_system_prompt("You know harbours.");
    let memory = open(&dir.join("store"));
    let session = memory.session(&todo("harbours")).unwrap();
    let mut context = Recording { inner: session, life: Arc::clone(life) };
    let task = Task::new("run", case.request);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(agent.run(&*case.strategy(), &mut context, &task))
}

/// What was said before the run, if anything.
fn before(case: Case, dir: &Path) {
    if case.follows {
        let mut session = open(&dir.join("store")).session(&todo("harbours")).unwrap();
        session.record(Message::system("You know harbours.")).unwrap();
        session.record(Message::user("Look at the harbours.")).unwrap();
        session.record(Message::calls("", vec![call("c", "look", "{}")])).unwrap();
        session.record(Message::tool_result(&call("c", "look", "{}").id, &table("all"))).unwrap();
        session.record(Message::assistant("There are two.")).unwrap();
    }
}

/// The conversation in a store, byte for byte.
fn conversation(dir: &Path) -> Vec<String> {
    let memory = open(&dir.join("store"));
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    let messages = memory.conversations().export(&todo("harbours")).unwrap().messages;
    messages.iter().map(|message| message.json().to_owned()).collect()
}

/// The keys of the calls that have a recorded result.
fn ended(dir: &Path) -> Vec<String> {
    let journal = FileJournal::open(dir.join("journal.jsonl")).unwrap();
    let runs = (0..9).map(|turn| format!("run/turn-{turn}")).chain(["run".to_owned()]);
    let records = runs.flat_map(|run| journal.records(&run).unwrap());
    let ended = records.filter_map(|record| match record {
        Record::Ended { key, attempts: 1.., .. } => Some(key),
        _ => None,
    });
    ended.collect()
}

/// A run that is never stopped: how much it writes, its conversation, how often the model is asked.
fn undisturbed(case: Case) -> (i64, Vec<String>, usize) {
    let dir = tempdir().unwrap();
    before(case, dir.path());
    let (life, done) = (Life::of(i64::MAX, false), Done::default());
    let report = live(case, dir.path(), &life, &done).unwrap();
    assert!(report.answer().is_some(), "{case:?}");
    let asked = done.asked.lock().unwrap().len();
    (life.written.load(Ordering::SeqCst), conversation(dir.path()), asked)
}

/// TD3, R12, OP14, OP19: stopped after each write to the journal and to the store, once or several
/// times in a row, the run resumes and ends with exactly the same conversation.
#[test]
fn td3_an_agent_that_is_stopped_anywhere_goes_on() {
    for case in CASES {
        let (writes, expected, asked) = undisturbed(case);
        assert!(writes > 15, "{case:?}: {writes} writes");
        for stop in (0..=writes).step_by(stride()) {
            let lives: &[i64] = if stop % 4 == 1 { &[stop, 1, 2, 3] } else { &[stop] };
            check_stops(case, lives, &expected, asked);
        }
    }
}

fn check_stops(case: Case, lives: &[i64], expected: &[String], asked: usize) {
    let what = format!("{case:?}, stopped after {lives:?} writes");
    let dir = tempdir().unwrap();
    before(case, dir.path());
    let done = Done::default();
    let calls = || done.calls.lock().unwrap().clone();
    for writes in lives {
        let ended = live(case, dir.path(), &Life::of(*writes, false), &done);
        assert!(!matches!(ended, Err(AgentError::ContextMoved { .. })), "{what}: {ended:?}");
        let held = conversation(dir.path());
        assert_eq!(held, expected[..held.len()], "{what}: what is held is a beginning");
    }
    let (ended, made) = (ended(dir.path()), calls());
    let report = live(case, dir.path(), &Life::of(i64::MAX, false), &done).unwrap();
    assert!(report.answer().is_some(), "{what}");
    assert_eq!(conversation(dir.path()), expected, "{what}");
    for key in ended {
        assert_eq!(calls()[&key], made[&key], "{what}: a call with a result was made again");
    }
    let again = done.asked.lock().unwrap().len() - asked;
    assert!(again <= lives.len(), "{what}: {again} questions were asked again");
    // Once more, from its end: nothing is asked, called or recorded.
    let (before, made) = (done.asked.lock().unwrap().len(), calls());
    let report = live(case, dir.path(), &Life::of(i64::MAX, false), &done).unwrap();
    assert!(report.answer().is_some(), "{what}");
    assert_eq!((done.asked.lock().unwrap().len(), calls()), (before, made), "{what}");
    assert_eq!(conversation(dir.path()), expected, "{what}");
}

const FOLDER: &str = "FOLDBACK_TEST_AGENT";
const CASE: &str = "FOLDBACK_TEST_CASE";
const WRITES: &str = "FOLDBACK_TEST_WRITES";

/// TD3: the same with a process that the system kills.
#[test]
fn td3_an_agent_whose_process_is_killed_goes_on() {
    if let Some(dir) = std::env::var_os(FOLDER) {
        return work_until_it_hangs(Path::new(&dir));
    }
    for (at, case) in CASES.into_iter().enumerate().take(5) {
        let (writes, expected, _) = undisturbed(case);
        for kill in [2, writes / 3, writes / 2, writes - 2] {
            let dir = tempdir().unwrap();
            before(case, dir.path());
            for (life, writes) in [kill, 3].into_iter().enumerate() {
                let mut child = spawn(dir.path(), at, writes);
                let lines = BufReader::new(child.stdout.take().unwrap()).lines();
                let stopped = lines.map(Result::unwrap).any(|line| line.contains("stopped"));
                child.kill().unwrap();
                let status = child.wait().unwrap();
                // The second may come to the end.
                let is_over = life > 0 && status.success();
                assert!(stopped || is_over, "{case:?}, {kill}: {status}");
            }
            let report =
                live(case, dir.path(), &Life::of(i64::MAX, false), &Done::default()).unwrap();
            assert!(report.answer().is_some(), "{case:?}");
            assert_eq!(conversation(dir.path()), expected, "{case:?}, killed after {kill} writes");
        }
    }
}

/// The test in another process, where an agent works.
fn spawn(dir: &Path, case: usize, writes: i64) -> Child {
    alone("agent_resume::td3_an_agent_whose_process_is_killed_goes_on")
        .env(FOLDER, dir)
        .env(CASE, case.to_string())
        .env(WRITES, writes.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn work_until_it_hangs(dir: &Path) {
    let number = |name: &str| std::env::var(name).unwrap().parse::<i64>().unwrap();
    let case = CASES[usize::try_from(number(CASE)).unwrap()];
    live(case, dir, &Life::of(number(WRITES), true), &Done::default()).unwrap();
}

/// TD3: if another process has recorded something at the place where a run resumes, the run ends with a
/// typed error and records nothing.
#[test]
fn td3_a_context_that_moved_on_is_an_error() {
    let case = CASES[0];
    let (writes, expected, _) = undisturbed(case);
    let mut found = 0;
    for stop in (0..writes).step_by(stride()) {
        let dir = tempdir().unwrap();
        before(case, dir.path());
        let ended = live(case, dir.path(), &Life::of(stop, false), &Done::default());
        assert!(ended.is_err() || conversation(dir.path()) == expected, "{stop}");
        let held = conversation(dir.path());
        let mut session = open(&dir.path().join("store")).session(&todo("harbours")).unwrap();
        session.record(Message::user("别的事情: something else.")).unwrap();
        session.record(Message::assistant("Done.")).unwrap();
        drop(session);
        let moved = live(case, dir.path(), &Life::of(i64::MAX, false), &Done::default());
        let now = conversation(dir.path());
        if held.is_empty() && moved.is_ok() {
            // It had said nothing: it begins after what is there.
            assert_eq!(now.len(), 2 + expected.len() - 1, "all of it but the instructions");
            continue;
        }
        assert_eq!(now.len(), held.len() + 2, "nothing is recorded");
        match moved {
            Err(AgentError::ContextMoved { todo, run, detail }) => {
                assert_eq!((todo.as_str(), run.as_str()), ("harbours", "run"));
                assert!(detail.contains("somebody else recorded"), "{detail}");
                found += 1;
            }
            // It had said everything, and had recorded that.
            Ok(report) => assert!(held == expected && report.answer().is_some(), "{stop}"),
            Err(error) => panic!("stopped after {stop}: {error}"),
        }
    }
    assert!(found > 10 / stride(), "{found}");
}
