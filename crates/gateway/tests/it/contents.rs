//! GW20: the ledger says which messages a request had, and these are the ones that the provider got.

use crate::agent::Speaks;
use crate::world::{World, load_tool};
use foldback::Memory;
use foldback_core::{Message, TodoId};
use foldback_gateway::{Contents, Entry, Ledger, SentPart, WhyWhole};
use foldback_testkit::upstream::{Answer, Raw, Said, Seen};
use foldback_transcript::{anthropic, responses};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// What a message says: its role, the call that it answers, its text, its calls, and whether it has thinking.
type Words = (String, String, String, Vec<(String, String, String)>, bool);

fn words(message: &Message) -> Words {
    let calls = message.tool_calls().iter();
    let calls =
        calls.map(|call| (call.id.as_str().to_owned(), call.name.clone(), call.arguments.clone()));
    let answers = message.tool_call_id().map_or("", |id| id.as_str()).to_owned();
    let thinks = ["thinking\"", "\"reasoning"].iter().any(|mark| message.json().contains(mark));
    let text = message.text().into_owned();
    (message.role().as_str().to_owned(), answers, text, calls.collect(), thinks)
}

/// A message of an API in the store's form.
fn read(speaks: Speaks, message: &Value) -> Vec<Message> {
    let json = message.to_string();
    match speaks {
        Speaks::Messages => anthropic::read_message(&json).unwrap(),
        Speaks::Chat => vec![Message::from_json(&json).unwrap()],
        Speaks::Responses => responses::read_items(&format!("[{json}]")).unwrap(),
    }
}

/// The messages that a provider got. Instructions beside them are not among them.
fn got(speaks: Speaks, body: &Value) -> Vec<Words> {
    let messages: Vec<Message> = match speaks {
        Speaks::Responses => responses::read_items(&body["input"].to_string()).unwrap(),
        _ => {
            let list = body["messages"].as_array().unwrap().iter();
            list.flat_map(|message| read(speaks, message)).collect()
        }
    };
    messages.iter().map(words).collect()
}

/// The messages that were sent according to the ledger.
struct Told<'m> {
    speaks: Speaks,
    memory: &'m Memory,
    todo: TodoId,
    messages: Vec<Words>,
    /// What was put back among them.
    looked_up: Vec<Words>,
}

impl<'m> Told<'m> {
    fn of(speaks: Speaks, memory: &'m Memory, entry: &Entry) -> Self {
        let todo = TodoId::new(&entry.session).unwrap();
        let (messages, looked_up) = (Vec::new(), Vec::new());
        let mut told = Self { speaks, memory, todo, messages, looked_up };
        let contents = entry.contents.as_ref().unwrap();
        if contents.sent.is_empty() {
            contents.asked.iter().for_each(|(from, to)| told.keep(*from, *to, true));
        }
        contents.sent.iter().for_each(|part| told.add(part));
        told
    }

    fn add(&mut self, part: &SentPart) {
        match part {
            SentPart::Kept(from, to) => self.keep(*from, *to, true),
            SentPart::WithoutThoughts(from, to) => self.keep(*from, *to, false),
            SentPart::Added(name) => {
                let text = self.memory.notes(&self.todo, &[name.0]).unwrap().remove(0).unwrap();
                self.messages.push(words(&Message::user(&text)));
            }
            SentPart::Instead(_, name) => {
                let text = self.memory.notes(&self.todo, &[name.0]).unwrap().remove(0).unwrap();
                self.messages.push(words(&Message::from_json(&text).unwrap()));
            }
            SentPart::LookedUp(from, to, name) => {
                self.keep(*from, *to, true);
                let text = self.memory.parked(&self.todo, &[name.0]).unwrap().remove(0).unwrap();
                let parked: Value = serde_json::from_str(&text).unwrap();
                let rounds = parked["rounds"].as_array().into_iter().flatten();
                let lists = rounds.map(|round| &round["messages"]).chain([&parked["messages"]]);
                for message in lists.filter_map(Value::as_array).flatten() {
                    let read = read(self.speaks, message);
                    self.looked_up.extend(read.iter().map(words));
                }
            }
            _ => unreachable!("{part:?}"),
        }
    }

    fn keep(&mut self, from: u64, to: u64, thinks: bool) {
        for message in self.memory.messages(&self.todo, from..to).unwrap() {
            // Instructions beside the messages are recorded with the first.
            if self.speaks == Speaks::Chat || !message.role().is_instruction() {
                let mut words = words(&message);
                words.4 &= thinks;
                self.messages.push(words);
            }
        }
    }
}

/// Asserts that the provider got what the ledger says, message by message. Look-ups that are put back are among a
/// client's messages: of these, every text, call and answer has to be there.
#[track_caller]
pub(crate) fn assert_told(speaks: Speaks, memory: &Memory, entry: &Entry, sent: &Value) {
    let (told, got) = (Told::of(speaks, memory, entry), got(speaks, sent));
    if told.looked_up.is_empty() {
        assert_eq!(told.messages, got, "{:?}", entry.contents);
        return;
    }
    let atoms = |all: &[Words]| -> BTreeSet<String> {
        let of = |(role, answers, text, calls, _): &Words| {
            let calls = calls.iter().map(|call| format!("{call:?}"));
            let said = format!("{role} {answers} {text}");
            calls.chain((!text.is_empty()).then_some(said)).collect::<Vec<_>>()
        };
        all.iter().flat_map(of).collect()
    };
    let (got, put_back) = (atoms(&got), atoms(&told.looked_up));
    let missing: Vec<_> = put_back.difference(&got).collect();
    assert!(missing.is_empty(), "{missing:?} {:?}", entry.contents);
    let told = atoms(&told.messages);
    let unsaid: Vec<_> = got.difference(&told).filter(|atom| !put_back.contains(*atom)).collect();
    // Answers of the gateway to calls that the model made together with the client's.
    let is_ours = |atom: &&&String| atom.starts_with("tool ") && atom.contains("_own ");
    assert!(unsaid.iter().all(|atom| is_ours(&atom)), "{unsaid:?} {:?}", entry.contents);
}

pub(crate) fn entries(path: &Path) -> Vec<Entry> {
    Ledger::read(path).unwrap().map(Result::unwrap).collect()
}

/// A model that reads one file after the other.
fn reading(seen: &Seen) -> Answer {
    let count = seen.json()["messages"].as_array().map_or(0, Vec::len);
    let id = format!("c{}{count}", seen.body.len());
    Answer::Said(Said::text("I read on.").call(&id, "read", json!({ "n": count })))
}

/// Plays this many turns; a gateway that is started again does so before the turn `restart`. Returns the store, the
/// requests as they came and as they were sent, and the ledger.
async fn played(
    turns: usize,
    restart: usize,
    model: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
) -> (Memory, Vec<(Value, Value)>, Vec<Entry>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Ledger::FILE);
    let mut world = World::with(model, |config| config.ledger = Some(path.clone())).await;
    let read =
        json!({ "name": "read", "description": "Reads.", "input_schema": { "type": "object" } });
    let mut messages =
        vec![json!({ "role": "user", "content": [{ "type": "text", "text": "Read all files." }] })];
    let mut both = Vec::new();
    for n in 0..turns {
        if n == restart {
            world.restart().await;
        }
        let body = json!({
            "model": "claude-x", "max_tokens": 100, "system": "Be brief.",
            "tools": [read, load_tool()], "messages": messages,
        });
        let answer: Value = world.messages(&body).send().await.unwrap().json().await.unwrap();
        both.push((body, world.upstream.seen().pop().unwrap().json()));
        let call = answer["content"][1]["id"].clone();
        messages.push(json!({ "role": "assistant", "content": answer["content"] }));
        let text: String = (0..60).map(|m| format!("{n}.{m}: 端口 {} is open\n", n * 31)).collect();
        let result = json!({ "type": "tool_result", "tool_use_id": call, "content": text });
        messages.push(json!({ "role": "user", "content": [result] }));
        world.wait(10);
    }
    let (memory, _) = world.end().await;
    (memory, both, entries(&path))
}

/// GW20: request by request, also where a gateway was started again in between. A request that goes as it came has
/// everything; an entry takes some bytes more, however long the conversation is.
#[tokio::test(flavor = "multi_thread")]
async fn gw20_the_ledger_says_which_messages_were_sent() {
    let (memory, both, entries) = played(40, 25, reading).await;
    assert_eq!(entries.len(), both.len());
    let mut folded = 0;
    for ((came, sent), entry) in both.iter().zip(&entries) {
        assert_told(Speaks::Messages, &memory, entry, sent);
        let contents = entry.contents.as_ref().unwrap();
        let asked = came["messages"].as_array().unwrap().len() as u64;
        // The instructions are recorded as well.
        assert_eq!(contents.asked, [(0, asked + 1)]);
        assert_eq!(contents.sent.is_empty(), came == sent, "{contents:?}");
        folded += usize::from(came != sent);
        let bytes = serde_json::to_vec(contents).unwrap().len();
        assert!(bytes < 600, "{bytes}: {contents:?}");
    }
    assert!(folded > 10, "{folded}");
    let whole = serde_json::to_string(entries[0].contents.as_ref().unwrap()).unwrap();
    assert!(whole.starts_with(r#"{"asked":[[0,2]],"tools":""#), "{whole}");
    assert!(whole.len() < 50, "{whole}");
    let last = serde_json::to_string(&entries.last()).unwrap();
    for secret in ["sk-ant", "端口", "Read all files"] {
        assert!(!last.contains(secret), "{last}");
    }
}

/// GW20: what the provider refused was not sent, and the ledger says why the rest was.
#[tokio::test(flavor = "multi_thread")]
async fn gw20_a_refused_request_is_recorded_as_it_was_accepted() {
    let (memory, both, entries) = played(30, usize::MAX, |seen| {
        let is_part = String::from_utf8_lossy(&seen.body).contains("[memory]");
        let refusal = Raw { status: 400, headers: Vec::new(), pieces: Vec::new() };
        if is_part { Answer::Raw(refusal) } else { reading(seen) }
    })
    .await;
    for ((came, sent), entry) in both.iter().zip(&entries) {
        assert_eq!(came, sent);
        assert_told(Speaks::Messages, &memory, entry, sent);
    }
    let why: Vec<_> =
        entries.iter().filter_map(|entry| entry.contents.as_ref().unwrap().whole).collect();
    assert_eq!(why[0], WhyWhole::Refused);
    assert!(why.len() > 2 && why[1..].iter().all(|why| *why == WhyWhole::RefusedBefore), "{why:?}");
}

/// GW20: a ledger of an older version is read, and what a later one adds is left out.
#[test]
fn gw20_an_entry_without_contents_is_read() {
    let bill = r#"{"bytes":9,"read":0,"written":0,"plain":9,"cost":9.0}"#;
    let old = format!(
        r#"{{"at":0,"client":"c","session":"s","model":"m","class":"main","sent":{bill},"whole":{bill},"output":1,"is_estimate":false}}"#
    );
    let entry: Entry = serde_json::from_str(&old).unwrap();
    assert_eq!(entry.contents, None);
    assert!(!serde_json::to_string(&entry).unwrap().contains("contents"));
    let parts = r#"{"asked":[[0,9]],"sent":[{"kept":[0,2]},{"added":"0011223344556677"},{"instead":[4,"8899aabbccddeeff"]},{"without_thoughts":[5,9]}],"tools":"0011223344556677","has_tools":true,"whole":"slow_store"}"#;
    let contents: Contents = serde_json::from_str(parts).unwrap();
    assert_eq!(serde_json::to_string(&contents).unwrap(), parts);
    for wrong in [
        r#"{"asked":[],"sent":[{"added":"00"}]}"#,
        r#"{"asked":[],"sent":[{"added":"zz11223344556677"}]}"#,
    ] {
        assert!(serde_json::from_str::<Contents>(wrong).is_err(), "{wrong}");
    }
}
