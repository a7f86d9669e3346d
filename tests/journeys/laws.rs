//! The laws, over random histories: append, close, search, load, pin, reopen.

use crate::story::{in_memory, in_memory_showing, open_showing, todo, views};
use foldback::{Close, Engine, Memory, Session, ViewConfig};
use foldback_core::{Budget, Message, PairingTracker, SeqNo, ToolCall, ToolCallId, check_request};
use foldback_testkit::effort;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use std::sync::Arc;
use tempfile::TempDir;

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    User(String),
    Reply(String),
    /// A number of calls, the last `unanswered` of which get no result, with results of this many
    /// bytes.
    Unit {
        calls: usize,
        unanswered: usize,
        bytes: usize,
    },
    /// A result that answers nothing.
    Orphan,
    /// Searches for a word, and records the exchange with the memory tool.
    Recall(String),
    /// Loads a block that may not exist.
    Load(u32),
    Pin(u64),
    Close,
    Reopen,
}

/// What must be true afterwards: the exact messages, in order.
#[derive(Clone, Debug, Default)]
struct History {
    calls: usize,
}

impl ReferenceStateMachine for History {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        let words = prop_oneof![
            "[a-z]{1,12}( [a-z]{1,12}){0,20}",
            "\\PC{0,80}",
            Just("请检查配置文件 config.toml 里的重试次数。".to_owned()),
            Just(String::new()),
        ];
        prop_oneof![
            4 => words.clone().prop_map(Step::User),
            4 => words.clone().prop_map(Step::Reply),
            5 => (1..5usize, 0..2usize, prop_oneof![4 => 0..400usize, 1 => 2_000..40_000usize])
                .prop_map(|(calls, unanswered, bytes)| Step::Unit {
                    calls,
                    unanswered: unanswered.min(calls),
                    bytes,
                }),
            1 => Just(Step::Orphan),
            2 => words.prop_map(Step::Recall),
            2 => (0..20u32).prop_map(Step::Load),
            1 => (0..40u64).prop_map(Step::Pin),
            1 => Just(Step::Close),
            2 => Just(Step::Reopen),
        ]
        .boxed()
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        state.calls += usize::from(matches!(step, Step::Unit { .. }));
        state
    }
}

/// The memory under test, with the plain list of what it was given.
struct Subject {
    memory: Memory,
    session: Option<Session>,
    sent: Vec<Message>,
    tracker: PairingTracker,
    calls: usize,
    /// The engine and the folder of a store on disk; without them the store is in memory.
    place: Option<(Engine, TempDir)>,
    /// How it is shown.
    view: ViewConfig,
}

impl Subject {
    fn session(&mut self) -> &mut Session {
        self.session.as_mut().unwrap()
    }

    fn record(&mut self, message: Message) {
        self.tracker.observe(&message);
        self.sent.push(message.clone());
        let recorded = self.session().record(message).unwrap();
        assert_eq!(recorded.seq.0 + 1, self.sent.len() as u64);
    }

    fn call_id(&mut self) -> String {
        self.calls += 1;
        // Every third id was used before, as careless models do.
        format!("call_{}", self.calls - usize::from(self.calls.is_multiple_of(3)))
    }

    fn recall(&mut self, name: &str, arguments: &str) {
        let id = self.call_id();
        let call = ToolCall::new(&id, name, arguments);
        self.record(Message::calls("", vec![call.clone()]));
        let answer = self.session().call(&call).unwrap();
        self.record(Message::tool_result(&call.id, &answer.text));
    }

    fn reopen(&mut self) {
        let before = self.prompt_bytes();
        self.session = None;
        if let Some((engine, dir)) = &self.place {
            self.memory = in_memory();
            self.memory = open_showing(&self.view, *engine, dir.path());
        }
        self.session = Some(self.memory.session(&todo("t")).unwrap());
        assert_eq!(self.prompt_bytes(), before, "TD3: a session resumes exactly where it was");
    }

    fn prompt_bytes(&self) -> Vec<String> {
        let prompt = self.session.as_ref().unwrap().prompt(&Budget::default());
        prompt.messages.iter().map(|message| message.api_json()).collect()
    }
}

struct Laws;

impl StateMachineTest for Laws {
    type SystemUnderTest = Subject;
    type Reference = History;

    fn init_test(_: &History) -> Subject {
        let (engine, view) = next_place();
        let place = engine.map(|engine| (engine, tempfile::tempdir().unwrap()));
        let memory = match &place {
            Some((engine, dir)) => open_showing(&view, *engine, dir.path()),
            None => in_memory_showing(&view),
        };
        let session = Some(memory.session(&todo("t")).unwrap());
        let tracker = PairingTracker::default();
        Subject { memory, session, sent: Vec::new(), tracker, calls: 0, place, view }
    }

    fn apply(mut subject: Subject, _: &History, step: Step) -> Subject {
        match step {
            Step::User(text) => subject.record(Message::user(&text)),
            Step::Reply(text) => subject.record(Message::assistant(&text)),
            Step::Unit { calls, unanswered, bytes } => {
                let ids: Vec<_> = (0..calls).map(|_| subject.call_id()).collect();
                let arguments =
                    serde_json::json!({ "path": "src/α.rs", "text": "x ".repeat(bytes / 4) });
                let made = ids.iter().map(|id| ToolCall::new(id, "write", &arguments.to_string()));
                subject.record(Message::calls("", made.collect()));
                for id in ids.iter().take(calls - unanswered) {
                    let text = format!("line of {id}\n").repeat(bytes / 16);
                    subject.record(Message::tool_result(&ToolCallId::new(id), &text));
                }
            }
            Step::Orphan => {
                subject.record(Message::tool_result(&ToolCallId::new("nobody"), "late"));
            }
            Step::Recall(query) => {
                let arguments = serde_json::json!({ "query": query }).to_string();
                subject.recall("search_block", &arguments);
            }
            Step::Load(n) => {
                let arguments = serde_json::json!({ "ref": format!("b_t_{n:03}") }).to_string();
                subject.recall("load", &arguments);
            }
            Step::Pin(seq) => {
                let exists = seq < subject.sent.len() as u64;
                assert_eq!(subject.session().pin(SeqNo(seq)).is_ok(), exists);
            }
            Step::Close => drop(subject.session().close(Close::Switch).unwrap()),
            Step::Reopen => subject.reopen(),
        }
        subject
    }

    fn check_invariants(subject: &Subject, _: &History) {
        let session = subject.session.as_ref().unwrap();
        let prompt = session.prompt(&Budget::default());
        let again = session.prompt(&Budget::default());
        let bytes = |messages: &[Arc<Message>]| {
            messages.iter().map(|message| message.api_json()).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&prompt.messages), bytes(&again.messages), "law 8");
        let bound = subject.view.window_bound();
        assert!(prompt.window <= bound, "LV1, LV4: {} messages in view", prompt.window);
        let violations = check_request(prompt.messages.iter().map(AsRef::as_ref));
        assert_eq!(violations, [], "law 3");
        // Law 1: blocks plus the open tail are the transcript.
        let id = todo("t");
        let blocks = subject.memory.blocks(&id, 0, usize::MAX).unwrap();
        let mut next = 0;
        for block in &blocks {
            assert_eq!(block.range.first().0, next);
            next = block.range.last().0 + 1;
        }
        assert_eq!(next + session.open() as u64, subject.sent.len() as u64);
    }

    fn teardown(subject: Subject, _: History) {
        let id = todo("t");
        let back = subject.memory.conversations().export(&id).unwrap();
        let exact = |messages: &[Message]| {
            messages.iter().map(|message| message.json().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(exact(&back.messages), exact(&subject.sent), "law 1");
        let checkup = subject.memory.maintenance().doctor().unwrap();
        assert_eq!(checkup.findings, Vec::<String>::new());
    }
}

/// The store of the next history, in a fixed order: one in sixteen in SQLite, one in thirty-two in redb
/// and in sled; the rest in memory, which is faster. And how it is shown: under either schedule in
/// turn.
fn next_place() -> (Option<Engine>, ViewConfig) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let [strict, aware] = views();
    let engine = match turn / 2 % 32 {
        0 | 16 => Some(Engine::Sqlite),
        8 => Some(Engine::Sled),
        24 => Some(Engine::Redb),
        _ => None,
    };
    (engine, if turn.is_multiple_of(2) { strict } else { aware })
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: effort(2_000), max_shrink_iters: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn the_laws_hold_over_random_histories(sequential 1..30 => Laws);
}
