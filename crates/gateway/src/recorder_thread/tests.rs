//! GW4, GW5: random histories, as clients of each API send them, against a model of what must be recorded.

use super::Keeper;
use crate::branches::Branches;
use crate::config::Reach;
use crate::exchange::{Asked, Course, Exchange};
use crate::model_answer::message_of;
use crate::{Api, Ledger, Log};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use foldback::{Memory, Options};
use foldback_core::Timestamp;
use foldback_testkit::Random;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A message, however it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    User(String),
    Model(String),
    /// A call of a tool with its id.
    Call(String),
    /// The answer of the tool.
    Result(String),
}

/// What a client does.
#[derive(Clone, Debug)]
enum Step {
    /// Says something.
    Say(u8),
    /// Says something that the model calls a tool for.
    Work(u8),
    /// Goes back to a point of any branch, and says something else there.
    Rewind(usize, usize, u8),
    /// Sends the last request again, and gets the same answer or another one.
    Retry(bool),
    /// Changes what the model has said, and continues.
    EditAnswer(u8),
    /// Continues with a summary.
    Compact(u8),
    /// Begins with a long conversation from elsewhere.
    Resume,
    /// Says something, and the answer breaks off.
    Break(u8),
    /// The gateway is started again.
    Restart,
    /// From here on another gateway on the same store is used.
    Switch,
}

/// How a client says who it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    Todo,
    Session,
    Nothing,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let word = 0..4_u8;
    let step = prop_oneof![
        8 => word.clone().prop_map(Step::Say),
        4 => word.clone().prop_map(Step::Work),
        4 => (0..99_usize, 0..99_usize, word.clone()).prop_map(|(of, to, word)| Step::Rewind(of, to, word)),
        3 => any::<bool>().prop_map(Step::Retry),
        2 => word.clone().prop_map(Step::EditAnswer),
        2 => word.clone().prop_map(Step::Compact),
        1 => Just(Step::Resume),
        2 => word.prop_map(Step::Break),
        1 => Just(Step::Restart),
        2 => Just(Step::Switch),
    ];
    prop::collection::vec(step, 1..16)
}

/// A client, what it sends, and what must have become of it.
struct Client {
    api: Api,
    name: Name,
    random: Random,
    history: Vec<Said>,
    /// The whole conversations that it had, to go back to.
    branches: Vec<Vec<Said>>,
    /// Each conversation that ever existed, with the bytes of its last message, and whether the client has sent
    /// them: the bytes that it sent first stay.
    model: BTreeMap<Vec<Said>, (String, bool)>,
    /// Every form in which a message was sent.
    forms: HashMap<String, Said>,
}

impl Client {
    fn step(&mut self, keepers: &mut [Keeper], memory: &Memory, step: &Step) {
        match *step {
            Step::Say(word) => self.say(keepers, word),
            Step::Work(word) => {
                self.history.push(Said::User(format!("说 {word}")));
                let id = format!("c{}", self.history.len());
                self.ask(keepers, Some(Said::Call(id.clone())));
                self.history.extend([Said::Call(id.clone()), Said::Result(id)]);
                self.answered(keepers, "");
            }
            Step::Rewind(of, to, word) => {
                if let Some(branch) = self.branches.get(of % self.branches.len().max(1)) {
                    let ends = (0..=branch.len())
                        .filter(|n| *n == 0 || matches!(branch[n - 1], Said::Model(_)));
                    let ends: Vec<_> = ends.collect();
                    self.history = branch[..ends[to % ends.len()]].to_vec();
                }
                self.say(keepers, word);
            }
            Step::Retry(is_same) => {
                if matches!(self.history.last(), Some(Said::Model(_))) {
                    self.history.pop();
                    self.answered(keepers, if is_same { "" } else { ", again" });
                }
            }
            Step::EditAnswer(word) => {
                if let Some(Said::Model(text)) = self.history.last_mut() {
                    text.push_str(", edited");
                }
                self.say(keepers, word);
            }
            Step::Compact(word) => {
                self.history =
                    vec![Said::User(format!("summary {word}")), Said::Model("I see.".to_owned())];
                self.say(keepers, word);
            }
            Step::Resume => {
                self.history = (0..70)
                    .flat_map(|n| [Said::User(format!("long {n}")), Said::Model(format!("so {n}"))])
                    .collect();
                self.say(keepers, 0);
            }
            Step::Break(word) => {
                self.history.push(Said::User(format!("说 {word}")));
                self.ask(keepers, None);
            }
            Step::Restart => keepers[0] = keeper(memory),
            Step::Switch => keepers.rotate_left(1),
        }
    }

    fn say(&mut self, keepers: &mut [Keeper], word: u8) {
        self.history.push(Said::User(format!("说 {word}")));
        self.answered(keepers, "");
    }

    /// Sends the history, and accepts the model's answer.
    fn answered(&mut self, keepers: &mut [Keeper], how: &str) {
        let answer = Said::Model(format!("answer to {}{how}", self.history.len()));
        self.ask(keepers, Some(answer.clone()));
        self.history.push(answer);
        self.branches.push(self.history.clone());
    }

    /// Sends the history, with each message written differently.
    fn ask(&mut self, keepers: &mut [Keeper], answer: Option<Said>) {
        let mut items = Vec::new();
        for n in 1..=self.history.len() {
            let said = &self.history[n - 1];
            let written = written(self.api, said, &mut self.random);
            let json = one(&written);
            self.forms.insert(json.clone(), said.clone());
            let first =
                self.model.entry(self.history[..n].to_vec()).or_insert((json.clone(), true));
            if !first.1 {
                *first = (json, true);
            }
            items.extend(written);
        }
        let body = match self.api {
            Api::Messages => json!({ "model": "m", "system": "Be brief.", "messages": items }),
            Api::Responses => json!({ "model": "m", "instructions": "Be brief.", "input": items }),
            _ => json!({ "model": "m", "messages": items }),
        };
        let name = match self.name {
            Name::Todo => Some("x-foldback-todo"),
            Name::Session => Some("x-foldback-session"),
            Name::Nothing => None,
        };
        let header = |name| (HeaderName::from_static(name), HeaderValue::from_static("s1"));
        let headers: HeaderMap = name.into_iter().map(header).collect();
        let body = body.to_string().into_bytes().into();
        let asked = Asked::new(Timestamp(0), self.api, "/", &headers, &body, &[7; 32]);
        let answer = answer.map(|said| {
            let body = answer_of(self.api, &said);
            let json = message_of(self.api, &body).unwrap().get().to_owned();
            self.forms.insert(json.clone(), said.clone());
            let whole = [&self.history[..], &[said]].concat();
            self.model.entry(whole).or_insert((json, false));
            body.into_bytes().into()
        });
        let (billed, check) = (Vec::new(), None);
        let headers = HeaderMap::new();
        let (course, took) =
            (Course { is_sent: true, ..Course::default() }, Duration::from_secs(2));
        let exchange = Exchange { asked, course, billed, check, headers, took, answer };
        assert!(keepers[0].keep(&exchange).is_ok());
    }

    /// Asserts that the store holds what the client has sent, each once.
    fn check(&self, memory: &Memory) {
        let mut all = Vec::new();
        for todo in memory.todos(None, 1_000).unwrap() {
            let sent = memory.sent(&todo, 0, usize::MAX).unwrap();
            let recorded = memory.conversations().export(&todo).unwrap().messages;
            let tree = Branches::of(&sent);
            let (mut own, mut end) = (BTreeSet::new(), 0);
            for n in 0..u32::try_from(sent.len()).unwrap() {
                let branch = tree.branch(n);
                let said = |n: &u32| self.forms[&sent[*n as usize].json].clone();
                let said: Vec<Said> = branch.iter().map(said).collect();
                let this = &sent[n as usize];
                let with_instructions = branch.len() == 1 && self.api != Api::ChatCompletions;
                assert_eq!(this.recorded.start, end, "nothing stands between");
                end += 1 + u64::from(with_instructions);
                assert_eq!(this.recorded.end, end, "{said:?}");
                let text = recorded[usize::try_from(end - 1).unwrap()].json();
                let (Said::User(word) | Said::Model(word) | Said::Call(word) | Said::Result(word)) =
                    said.last().unwrap();
                assert!(text.contains(word.as_str()), "{word:?} in {text}");
                assert!(own.insert(said.clone()), "twice: {said:?}");
                all.push((said, this.json.clone()));
            }
            assert_eq!(recorded.len() as u64, end, "nothing stands behind");
        }
        all.sort();
        let model = self.model.iter().map(|(said, (json, _))| (said.clone(), json.clone()));
        if self.name == Name::Nothing {
            // A conversation that begins anew is a todo of its own, and has the bytes that were sent there.
            let mut said: Vec<_> = all.into_iter().map(|(said, _)| said).collect();
            said.dedup();
            assert_eq!(said, self.model.keys().cloned().collect::<Vec<_>>());
        } else {
            assert_eq!(all, model.collect::<Vec<_>>());
        }
    }
}

fn keeper(memory: &Memory) -> Keeper {
    let ledger = Ledger::new(None, &(Arc::new(|_: &str| {}) as Log));
    Keeper::new(memory.clone(), [7; 32], None, Reach::default(), Arc::default(), ledger)
}

/// Keeps several items of one answer as a list.
fn one(items: &[Value]) -> String {
    match items {
        [item] => item.to_string(),
        several => json!(several).to_string(),
    }
}

/// Returns a message as a client writes it, in one of many equivalent forms.
fn written(api: Api, said: &Said, random: &mut Random) -> Vec<Value> {
    let mut is = |of: usize| random.below(of) == 0;
    let pad = if is(5) { "\n" } else { "" };
    let arguments = |id: &str| match pad {
        "" => format!(r#"{{"path":"{id}","n":1}}"#),
        _ => format!(r#"{{"n": 1, "path": "{id}"}}"#),
    };
    let thinking = json!({ "type": "reasoning", "summary": [], "encrypted_content": "x" });
    let input = |id: &str| serde_json::from_str::<Value>(&arguments(id)).unwrap();
    let mut items = match (api, said) {
        (Api::Responses, Said::User(text)) => vec![match is(2) {
            true => json!({ "role": "user", "content": format!("{text}{pad}") }),
            false => {
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
            }
        }],
        (Api::Responses, Said::Model(text)) => vec![
            thinking,
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] }),
        ],
        (Api::Responses, Said::Call(id)) => vec![
            thinking,
            json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": arguments(id) }),
        ],
        (Api::Responses, Said::Result(id)) => {
            vec![
                json!({ "type": "function_call_output", "call_id": id, "output": format!("of {id}") }),
            ]
        }
        (Api::Messages, Said::User(text)) if text.ends_with('3') => {
            let source = json!({ "type": "base64", "media_type": "image/png", "data": "aGk=" });
            let image = json!({ "type": "image", "source": source });
            vec![json!({ "role": "user", "content": [{ "type": "text", "text": text }, image] })]
        }
        (_, Said::User(text)) => vec![json!({ "role": "user", "content": format!("{text}{pad}") })],
        (_, Said::Model(text)) => {
            vec![json!({ "role": "assistant", "content": format!("{text}{pad}") })]
        }
        (Api::Messages, Said::Call(id)) => vec![json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": id, "name": "read", "input": input(id) },
        ] })],
        (Api::Messages, Said::Result(id)) => vec![json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": format!("of {id}") },
        ] })],
        (_, Said::Call(id)) => vec![json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": id, "type": "function", "function": { "name": "read", "arguments": arguments(id) } },
        ] })],
        (_, Said::Result(id)) => {
            vec![json!({ "role": "tool", "tool_call_id": id, "content": format!("of {id}") })]
        }
    };
    if items.len() > 1 && is(3) {
        // Clients drop the model's thinking.
        items.remove(0);
    }
    for item in &mut items {
        if let (true, Some(text)) = (api != Api::Responses && is(2), item["content"].as_str()) {
            item["content"] = json!([{ "type": "text", "text": text }]);
        }
        if let (true, Some(blocks)) =
            (api == Api::Messages && is(3), item["content"].as_array_mut())
        {
            blocks.last_mut().unwrap()["cache_control"] = json!({ "type": "ephemeral" });
        }
        if is(3) {
            *item = turned(item);
        }
    }
    items
}

/// The same with the keys of every object in reverse.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            object.iter().rev().map(|(k, v)| (k.clone(), turned(v))).collect::<Map<_, _>>().into()
        }
        Value::Array(list) => list.iter().map(turned).collect(),
        other => other.clone(),
    }
}

/// The provider's answer that holds a message.
fn answer_of(api: Api, said: &Said) -> String {
    let mut items = written(api, said, &mut Random::new(1));
    match api {
        Api::Messages => {
            let content = match &items[0]["content"] {
                Value::String(text) => json!([{ "type": "text", "text": text }]),
                blocks => blocks.clone(),
            };
            json!({ "id": "msg_1", "content": content })
        }
        Api::Responses => {
            items.iter_mut().for_each(|item| item["id"] = json!("i1"));
            json!({ "id": "resp_1", "output": items })
        }
        _ => json!({ "choices": [{ "message": items[0] }] }),
    }
    .to_string()
}

fn run(api: Api, name: Name, seed: u64, steps: &[Step]) {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut keepers = [keeper(&memory), keeper(&memory)];
    let (random, model, forms) = (Random::new(seed), BTreeMap::new(), HashMap::new());
    let mut client = Client { api, name, random, history: vec![], branches: vec![], model, forms };
    for step in steps {
        client.step(&mut keepers, &memory, step);
        client.check(&memory);
    }
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// After every step each branch is exported as the client sent it, nothing is recorded twice, and what was
    /// abandoned is still there. `PROPTEST_CASES` sets how many histories are tried.
    #[test]
    fn gw4_gw5_random_histories(
        api in prop::sample::select(vec![Api::Messages, Api::ChatCompletions, Api::Responses]),
        name in prop::sample::select(vec![Name::Todo, Name::Session, Name::Nothing]),
        seed in 0..1_000_000_u64,
        steps in steps(),
    ) {
        run(api, name, seed, &steps);
    }
}
