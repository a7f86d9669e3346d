//! The cost of one message: a chat message, and a tool result of 3,000 characters.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use divan::Bencher;
use foldback_chunker::{Chunker, ChunkerConfig, Described, Event, Input, State, describe};
use foldback_core::{BlockId, Message, Timestamp, TodoId, ToolCall, ToolCallId};

fn main() {
    for (name, messages) in [("chat", chat()), ("agent", agent())] {
        let bytes = rmp_serde::to_vec(warm(&messages).state()).unwrap().len();
        println!("state after {} {name} messages: {bytes} bytes", messages.len());
    }
    divan::main();
}

const WORDS: [&str; 16] = [
    "parser", "hotel", "flights", "weather", "compile", "index", "testing", "budget", "garden",
    "server", "invoice", "planet", "recipes", "deadline", "museum", "storage",
];

fn text(seed: usize, words: usize) -> String {
    let word = |i: usize| {
        let at = (seed * 31 + i * 17 + i * i * 7) % 4096;
        format!("{}{}", WORDS[at % 16], ["", "a", "b", "c"][at / 16 % 4])
    };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

fn chat() -> Vec<Message> {
    (0..200)
        .map(|i| {
            let text = text(i / 6, 18);
            if i % 2 == 0 { Message::user(&text) } else { Message::assistant(&text) }
        })
        .collect()
}

fn agent() -> Vec<Message> {
    (0..100)
        .flat_map(|i| {
            let id = format!("call_{i}");
            let arguments = format!("{{\"path\": \"src/{}.rs\"}}", text(i, 1));
            let call = ToolCall::new(&id, "read_file", &arguments);
            let result = Message::tool_result(&ToolCallId::new(&id), &text(i, 400));
            [Message::calls("I will read the next file.", vec![call]), result]
        })
        .collect()
}

fn vector(seed: usize) -> Vec<f32> {
    (0..256).map(|i| ((seed * 131 + i * 7) as f32).sin() / 11.3).collect()
}

fn warm(messages: &[Message]) -> Chunker {
    let mut chunker = Chunker::new(ChunkerConfig::default());
    for (i, message) in messages.iter().enumerate() {
        let vector = vector(i / 6);
        chunker.push(Event::Message(Input::of(message).with_vector(&vector)));
    }
    chunker
}

/// One of two hundred messages; the chunker is warm.
fn push(bencher: Bencher<'_, '_>, messages: &[Message]) {
    let mut chunker = warm(messages);
    let vectors: Vec<_> = (0..messages.len()).map(|i| vector(i / 6)).collect();
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 1) % messages.len();
        chunker.push(Event::Message(Input::of(&messages[at]).with_vector(&vectors[at])))
    });
}

#[divan::bench]
fn push_chat(bencher: Bencher<'_, '_>) {
    push(bencher, &chat());
}

#[divan::bench]
fn push_agent(bencher: Bencher<'_, '_>) {
    push(bencher, &agent());
}

#[divan::bench(args = ["chat", "agent"])]
fn state_round_trip(bencher: Bencher<'_, '_>, kind: &str) {
    let chunker = warm(&if kind == "chat" { chat() } else { agent() });
    bencher.bench(|| {
        let bytes = rmp_serde::to_vec(chunker.state()).unwrap();
        rmp_serde::from_slice::<State>(&bytes).unwrap()
    });
}

#[divan::bench(args = ["chat", "agent"])]
fn describe_block(bencher: Bencher<'_, '_>, kind: &str) {
    let messages = if kind == "chat" { chat() } else { agent() };
    let id = BlockId::new(TodoId::new("t").unwrap(), 1);
    let recorded_at = Timestamp(0);
    let described = |message| Described::new(message, recorded_at);
    let parts: Vec<_> = messages.iter().take(6).map(described).collect();
    bencher.bench(|| describe(id.clone(), &parts, &|_| true));
}
