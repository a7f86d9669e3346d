//! S8: a store that redacts, and what is sent.

use crate::world::World;
use foldback::{Memory, Options, Redaction};
use foldback_gateway::Keeping;
use foldback_testkit::upstream::{Answer, Said, Seen};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A made-up secret.
const SECRET: &str = "AKIAZ7Q2MXK4N5P6R3TB";

/// A model that reads one file after the other.
fn reading() -> impl Fn(&Seen) -> Answer + Send + Sync {
    let count = AtomicUsize::new(0);
    move |_| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        Answer::Said(Said::text("I read on.").call(&format!("c{n}"), "read", json!({ "n": n })))
    }
}

/// The content of a file; the one with this number holds a secret.
fn file(n: usize, secret: usize) -> String {
    let line = |m: usize| format!("{n}.{m}: 端口 {} belongs to service s{}\n", n * 31 + m, m % 7);
    // A large one would be shown in short.
    let count = if n == secret { 3 } else { 60 };
    let text: String = (0..count).map(line).collect();
    if n == secret { format!("{text}AWS_ACCESS_KEY_ID={SECRET}\n") } else { text }
}

/// Plays this many turns of a conversation in which a file holds a secret: what came, and what was sent.
async fn played(turns: usize, secret: usize) -> (World, Memory, Vec<(Value, Value)>) {
    let options = Options::default().with_view(Keeping::view());
    let memory = Memory::in_memory(options.with_redaction(Redaction::default())).unwrap();
    let keeping = Keeping::On(memory.clone());
    let world = World::with(reading(), |config| config.keeping = keeping).await;
    let read =
        json!({ "name": "read", "description": "Reads.", "input_schema": { "type": "object" } });
    let mut messages =
        vec![json!({ "role": "user", "content": [{ "type": "text", "text": "Read all files." }] })];
    let mut both = Vec::new();
    for n in 0..turns {
        let body = json!({
            "model": "claude-x", "max_tokens": 100, "tools": [read, crate::world::load_tool()], "messages": messages,
        });
        let answer: Value = world.messages(&body).send().await.unwrap().json().await.unwrap();
        let sent = world.upstream.seen().pop().unwrap().json();
        both.push((body, sent));
        let call = answer["content"][1]["id"].clone();
        messages.push(json!({ "role": "assistant", "content": answer["content"] }));
        let result =
            json!({ "type": "tool_result", "tool_use_id": call, "content": file(n, secret) });
        messages.push(json!({ "role": "user", "content": [result] }));
        world.wait(10);
    }
    (world, memory, both)
}

/// What is in no folder of the store is not in what it returns, either.
fn check_kept(memory: &Memory) {
    let todos = memory.todos(None, 9).unwrap();
    assert!(!todos.is_empty());
    for todo in todos {
        let held = memory.conversations().export(&todo).unwrap().to_json_line();
        assert!(held.contains("[redacted aws-access-key 1]") && !held.contains(SECRET));
        let sent = memory.sent(&todo, 0, usize::MAX).unwrap();
        assert!(!sent.is_empty() && sent.iter().all(|one| !one.json.contains(SECRET)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s8_without_secrets_a_store_that_redacts_folds() {
    let (world, _, both) = played(40, usize::MAX).await;
    world.end().await;
    let folded = both.iter().filter(|(came, sent)| came != sent).count();
    assert!(folded > 10, "{folded}");
}

/// What would not come back from the store is not left out.
#[tokio::test(flavor = "multi_thread")]
async fn s8_a_message_with_a_secret_never_leaves() {
    let (world, memory, both) = played(40, 2).await;
    world.end().await;
    assert_eq!(both.len(), 40);
    for (n, (came, sent)) in both.iter().enumerate() {
        assert_eq!(came, sent, "{n}");
    }
    check_kept(&memory);
}

/// While others leave, it is sent in the client's own bytes.
#[tokio::test(flavor = "multi_thread")]
async fn s8_a_message_with_a_secret_that_stays_is_the_clients() {
    let (world, memory, both) = played(44, 34).await;
    world.end().await;
    let mut folded = 0;
    for (came, sent) in both.iter().skip(35) {
        let text = sent.to_string();
        assert!(text.contains(SECRET) && !text.contains("[redacted"));
        folded += usize::from(came != sent);
    }
    assert!(folded > 0);
    check_kept(&memory);
}
