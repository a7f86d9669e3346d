//! GW7, GW8: what leaves a request, when, and what that costs.

use crate::world::{World, load_tool};
use foldback_core::CacheTerms;
use foldback_gateway::{GatewayConfig, RecallBy, Replay, Taped};
use foldback_providers::{Billed, ModelConfig, Provider};
use foldback_testkit::upstream::{Answer, Raw, Said, Seen, Upstream};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An agent that calls a tool repeatedly, as clients send it: the whole conversation each time, with a mark on the
/// last block of the last message.
struct Agent {
    body: Value,
    messages: Vec<Value>,
    thinks: bool,
    file: File,
    /// How many requests make a turn, and how many bytes each question has; 0 if the turn never ends.
    turn: (usize, usize),
}

/// The content of the file with this number, of about this many bytes.
type File = fn(usize, usize) -> String;

/// The content of the file `n`: `size` bytes.
fn file(n: usize, size: usize) -> String {
    let line = |m: usize| format!("{n}.{m}: 端口 {} belongs to service s{}\n", n * 31 + m, m % 7);
    let mut text = String::new();
    for m in 0.. {
        text.push_str(&line(m));
        if text.len() >= size {
            return text;
        }
    }
    text
}

/// Numbers, which this provider counts as fewer tokens than they are estimated at.
fn numbers(n: usize, size: usize) -> String {
    (0..size / 4).map(|m| format!("{:03} ", (n * 7_919 + m * 104_729) % 1_000)).collect()
}

/// Words, which it counts as more.
fn words(n: usize, size: usize) -> String {
    let words = ["understanding", "information", "international", "development", "performance"];
    (0..size / 13).map(|m| format!("{} ", words[(n * 3 + m * m) % words.len()])).collect()
}

/// A model that reads one file after the other.
fn reading(thinks: bool) -> impl Fn(&Seen) -> Answer + Send + Sync {
    move |seen| {
        let body = seen.json();
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned();
        let turn = last.unwrap_or_default().to_string();
        let n = turn.split("turn-").nth(1).and_then(|rest| rest.split('.').next());
        let n: usize = n.and_then(|n| n.parse().ok()).unwrap_or_default();
        let said = Said::text(&format!("I read file {n}."));
        let said = if thinks { said.thinking("Which file is next?") } else { said };
        if turn.contains("Then stop.") {
            return Answer::Said(said);
        }
        Answer::Said(said.call(&format!("c{n}"), "read", json!({ "path": format!("src/f{n}.rs") })))
    }
}

impl Agent {
    fn new(thinks: bool) -> Self {
        let read = json!({ "name": "read", "description": "Reads a file.", "input_schema": { "type": "object" } });
        let tools = json!([read, load_tool()]);
        let system = json!([{ "type": "text", "text": "You read files. ".repeat(300), "cache_control": { "type": "ephemeral" } }]);
        let mut body =
            json!({ "model": "claude-x", "max_tokens": 100, "system": system, "tools": tools });
        if thinks {
            body["thinking"] = json!({ "type": "adaptive" });
        }
        Self { body, messages: Vec::new(), thinks, file, turn: (0, 0) }
    }

    /// The body of the next request: a question, or the result of the call before.
    fn ask(&mut self, content: Value) -> Value {
        self.messages.push(json!({ "role": "user", "content": content }));
        let mut body = self.body.clone();
        let mut messages = self.messages.clone();
        let last = messages.last_mut().and_then(|last| last["content"].as_array_mut()).unwrap();
        last.last_mut().unwrap()["cache_control"] = json!({ "type": "ephemeral" });
        body["messages"] = json!(messages);
        body
    }

    fn hear(&mut self, answer: &Value) {
        assert_eq!(answer["type"], "message", "{answer}");
        self.messages.push(json!({ "role": "assistant", "content": answer["content"] }));
    }

    /// Everything that was said, except signatures of thinking: those depend on what the model sees.
    fn said(&self) -> Vec<Value> {
        let mut messages = self.messages.clone();
        for message in &mut messages {
            for block in message["content"].as_array_mut().unwrap() {
                block.as_object_mut().unwrap().shift_remove("signature");
            }
        }
        messages
    }

    /// The call that waits for its result.
    fn call(&self) -> Option<String> {
        let blocks = self.messages.last()?["content"].as_array().unwrap();
        assert_eq!(blocks[0]["type"] == "thinking", self.thinks);
        let call = blocks.iter().find(|block| block["type"] == "tool_use")?;
        Some(call["id"].as_str().unwrap().to_owned())
    }

    /// What is sent in a turn: a result of this many bytes, and the number of the turn.
    fn turn(&mut self, n: usize, size: usize) -> Value {
        let (requests, question) = self.turn;
        let text = |text: &str| json!({ "type": "text", "text": format!("turn-{n}. {text}") });
        let Some(call) = self.call() else {
            let question = "Look well. ".repeat(question / 11);
            return self.ask(json!([text(&format!("{question}Go on."))]));
        };
        let result =
            json!({ "type": "tool_result", "tool_use_id": call, "content": (self.file)(n, size) });
        let is_last = (n + 1).checked_rem(requests) == Some(0);
        self.ask(json!([result, text(if is_last { "Then stop." } else { "Go on." })]))
    }
}

/// The cost of a conversation of this many turns through the gateway, and without it.
async fn played(
    turns: usize,
    size: usize,
    pause: u32,
    agent: impl Fn() -> Agent,
) -> (Billed, Billed, Vec<usize>) {
    let (mut through, mut plain) = (agent(), agent());
    let world = World::new(reading(plain.thinks)).await;
    let direct = Upstream::with_cache(reading(plain.thinks), CacheTerms::default()).await;
    let mut worst: f64 = 0.0;
    for n in 0..turns {
        let body = plain.turn(n, size);
        let url = format!("{}/v1/messages", direct.url);
        let answer = world.client.post(url).header("anthropic-version", "1").body(body.to_string());
        plain.hear(&answer.send().await.unwrap().json().await.unwrap());
        let body = through.turn(n, size);
        let answer = world.messages(&body).send().await.unwrap();
        through.hear(&answer.json().await.unwrap());
        worst = worst.max(world.upstream.billed().cost / direct.billed().cost);
        direct.wait(pause);
        world.upstream.wait(pause);
        world.wait(pause);
    }
    println!("{turns} turns of {size} bytes, {pause} s apart: worst {worst:.4}");
    assert!(worst <= 1.02, "{worst} times as dear as without it");
    assert_eq!(through.said(), plain.said(), "the client sees the same");
    let log = world.log.lock().clone();
    assert!(log.is_empty(), "{log:?}");
    let (billed, direct) = (world.upstream.billed(), direct.billed());
    let (_, seen) = world.end().await;
    (billed, direct, seen.iter().map(|seen| seen.body.len()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn gw8_a_long_conversation_costs_less_and_never_much_more() {
    for thinks in [false, true] {
        let (billed, direct, sizes) = played(60, 3_000, 10, || Agent::new(thinks)).await;
        println!("{billed:?}\n{direct:?}\n{sizes:?}");
        assert!(billed.cost < 0.65 * direct.cost, "{billed:?} {direct:?}");
        assert!(sizes.iter().max().unwrap() < &160_000, "{sizes:?}");
    }
}

/// However far its counts are from the estimates, and not equally far everywhere.
#[tokio::test(flavor = "multi_thread")]
async fn gw8_folds_go_by_what_the_provider_counts() {
    let numbers_first: File = |n, size| if n < 30 { numbers(n, size) } else { words(n, size) };
    let words_first: File = |n, size| if n < 30 { words(n, size) } else { numbers(n, size) };
    let by_turns: File = |n, size| if n % 8 < 4 { words(n, size) } else { numbers(n, size) };
    for file in [numbers, words, numbers_first, words_first, by_turns] {
        let agent = || Agent { file, ..Agent::new(false) };
        let (billed, direct, _) = played(60, 3_000, 10, agent).await;
        println!("{:.3}", billed.cost / direct.cost);
        assert!(billed.cost < 0.8 * direct.cost, "{billed:?} {direct:?}");
    }
}

/// A question that is shown before its turn is written again with each fold within that turn.
#[tokio::test(flavor = "multi_thread")]
async fn gw8_a_kept_question_is_foreseen() {
    for (requests, question) in [(5, 4_000), (7, 8_000), (12, 8_000), (20, 2_000)] {
        let agent = || Agent { turn: (requests, question), ..Agent::new(false) };
        let (billed, direct, _) = played(60, 1_000, 10, agent).await;
        println!("{requests} {question}: {:.3}", billed.cost / direct.cost);
        assert!(billed.cost < 0.95 * direct.cost, "{billed:?} {direct:?}");
    }
}

/// A client's tools are read with every request: where they are large, a fold is a smaller part of the bill.
#[tokio::test(flavor = "multi_thread")]
async fn gw8_large_tools_let_it_fold_earlier() {
    let mut first = Vec::new();
    for bytes in [0, 100_000] {
        let agent = || {
            let mut agent = Agent::new(false);
            agent.body["tools"][0]["description"] = json!("Reads a file. ".repeat(bytes / 14));
            agent
        };
        let (_, _, sizes) = played(40, 3_000, 10, agent).await;
        first.push(sizes.windows(2).position(|pair| pair[1] < pair[0]).unwrap());
    }
    assert!(first[1] < first[0], "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gw8_a_cold_prefix_is_folded_at_once() {
    let (billed, direct, sizes) = played(30, 3_000, 3_600, || Agent::new(false)).await;
    println!("{billed:?}\n{direct:?}\n{sizes:?}");
    assert!(billed.cost < 0.4 * direct.cost, "{billed:?} {direct:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gw8_a_short_conversation_is_left_as_it_is() {
    let (billed, direct, _) = played(8, 1_000, 10, || Agent::new(false)).await;
    assert_eq!(billed, direct);
}

/// A branch that is resumed is sent as it was left: what had left it stays away.
#[tokio::test(flavor = "multi_thread")]
async fn gw8_a_branch_that_is_gone_back_to_stays_folded() {
    let world = World::new(reading(false)).await;
    let mut agent = Agent::new(false);
    for n in 0..30 {
        let answer = world.messages(&agent.turn(n, 3_000)).send().await.unwrap();
        agent.hear(&answer.json().await.unwrap());
    }
    // What it follows has left the other branch.
    let mut fork = Agent { messages: agent.messages[..8].to_vec(), ..Agent::new(false) };
    for n in 90..92 {
        let answer = world.messages(&fork.turn(n, 3_000)).send().await.unwrap();
        fork.hear(&answer.json().await.unwrap());
    }
    world.messages(&agent.turn(30, 3_000)).send().await.unwrap();
    let (_, seen) = world.end().await;
    let sent = |n: usize| {
        let text = seen[n].json()["messages"].to_string();
        let text = text.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        serde_json::from_str::<Vec<Value>>(&text).unwrap()
    };
    let (before, fork, after) = (sent(29), sent(31), sent(32));
    assert!(before.len() < 59 && fork.len() == 11, "{} {}", before.len(), fork.len());
    assert_eq!(after.len(), before.len() + 2);
    assert!(after.starts_with(&before));
}

/// GW7: what a provider refuses is sent once more unchanged, and whole from then on.
#[tokio::test(flavor = "multi_thread")]
async fn gw7_a_refused_part_is_sent_whole() {
    let reading = reading(false);
    let world = World::new(move |seen| {
        let is_part = String::from_utf8_lossy(&seen.body).contains("[memory]");
        let refusal =
            Raw { status: 400, headers: Vec::new(), pieces: vec![b"thoughts are bound".to_vec()] };
        if is_part { Answer::Raw(refusal) } else { reading(seen) }
    })
    .await;
    let mut agent = Agent::new(false);
    for n in 0..20 {
        let body = agent.turn(n, 3_000);
        let answer = world.messages(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        agent.hear(&answer.json().await.unwrap());
    }
    let log = world.log.lock().clone();
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(log[0].contains("sent whole from now on") && log[0].contains("400"), "{log:?}");
    assert!(!log[0].contains("thoughts are bound"), "a provider may quote what was sent");
    let (_, seen) = world.end().await;
    assert_eq!(seen.len(), 21, "one request was made twice");
    assert_eq!(seen[20].json()["messages"].as_array().unwrap().len(), 39);
}

/// GW7: a turn whose beginning left follows the question that it works on. A question that is too
/// long leaves with the rest.
#[tokio::test(flavor = "multi_thread")]
async fn gw7_a_turn_keeps_its_question() {
    for (length, stays) in [(0, true), (6_000, true), (9_000, false)] {
        let done = AtomicBool::new(true);
        let reads = reading(false);
        let world = World::new(move |seen| match done.swap(false, Ordering::Relaxed) {
            true => Answer::Said(Said::text("They are called f0 to f40.")),
            false => reads(seen),
        });
        let (world, mut agent) = (world.await, Agent::new(false));
        let text = |text: &str| json!([{ "type": "text", "text": text }]);
        let question = format!("turn-0. Which port is it? {}", "Look well. ".repeat(length / 11));
        for n in 0..40 {
            let body = match n {
                0 => agent.ask(text("turn-0. How are the files called?")),
                1 => agent.ask(text(&question)),
                n => agent.turn(n, 3_000),
            };
            let answer = world.messages(&body).send().await.unwrap();
            agent.hear(&answer.json().await.unwrap());
        }
        let (_, seen) = world.end().await;
        let folded = seen.iter().filter(|seen| seen.json().to_string().contains("[memory]"));
        let sent: Vec<_> = folded.map(|seen| seen.json()["messages"].clone()).collect();
        // A question that stays is paid for at each request, so a long one puts folds off.
        assert!(sent.len() > 15, "{length}: {}", sent.len());
        // A long one stays in place until its block leaves.
        for messages in sent.iter().skip(if stays { 0 } else { sent.len() - 1 }) {
            let messages = messages.as_array().unwrap();
            let is_it = |message: &&Value| message.to_string().contains("Which port is it?");
            assert_eq!(messages.iter().filter(is_it).count(), usize::from(stays), "{length}");
        }
    }
}

/// GW7: even after a restart of the gateway.
#[tokio::test(flavor = "multi_thread")]
async fn gw7_what_was_refused_once_is_sent_whole_after_a_restart() {
    let reading = reading(false);
    let mut world = World::new(move |seen| {
        let is_part = String::from_utf8_lossy(&seen.body).contains("[memory]");
        let refusal = Raw { status: 400, headers: Vec::new(), pieces: Vec::new() };
        if is_part { Answer::Raw(refusal) } else { reading(seen) }
    })
    .await;
    let mut agent = Agent::new(false);
    for n in 0..24 {
        if n == 20 {
            world.restart().await;
        }
        let answer = world.messages(&agent.turn(n, 3_000)).send().await.unwrap();
        agent.hear(&answer.json().await.unwrap());
    }
    let (_, seen) = world.end().await;
    assert_eq!(seen.len(), 25, "one request was made twice");
}

/// GW6: the tokens of a request are those of what will be sent, and asking for them changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn gw6_a_token_count_is_of_what_will_be_sent() {
    for recall in [RecallBy::Mcp, RecallBy::Stream] {
        let mut sent = Vec::new();
        for counts in [false, true] {
            let world = World::with(reading(false), |config| config.recall = recall).await;
            let mut agent = Agent::new(false);
            if recall == RecallBy::Stream {
                agent.body["tools"].as_array_mut().unwrap().pop();
            }
            let mut folded = 0;
            for n in 0..30 {
                let body = agent.turn(n, 3_000);
                let mut counted = Value::Null;
                if counts {
                    let mut body = body.clone();
                    body.as_object_mut().unwrap().shift_remove("max_tokens");
                    let url = format!("{}/v1/messages/count_tokens", world.url);
                    let count = world.client.post(url).header("anthropic-version", "1");
                    let count = count.header("user-agent", "claude-cli/2.1 (external)");
                    let count = count.header("x-api-key", "sk-ant-canary").body(body.to_string());
                    let answer = count.send().await.unwrap();
                    folded += usize::from(answer.headers().contains_key("x-foldback-sent"));
                    let answer: Value = answer.json().await.unwrap();
                    counted = world.upstream.seen().last().unwrap().json();
                    assert!(answer["input_tokens"].is_u64(), "{answer}");
                }
                let answer = world.messages(&body).send().await.unwrap();
                agent.hear(&answer.json().await.unwrap());
                let seen = world.upstream.seen().last().unwrap().json();
                for key in ["messages", "tools", "system"].iter().filter(|_| counts) {
                    assert_eq!(counted[key], seen[key], "{recall:?}, turn {n}");
                }
            }
            assert!(!counts || folded > 10, "{folded}");
            let (memory, seen) = world.end().await;
            let todo = &memory.todos(None, 2).unwrap()[0];
            assert_eq!(memory.sent(todo, 0, 1_000).unwrap().len(), 60, "{recall:?}");
            let real = seen.into_iter().filter(|seen| seen.path == "/v1/messages");
            sent.push(real.map(|seen| seen.body).collect::<Vec<_>>());
        }
        assert!(sent[0] == sent[1], "{recall:?}");
    }
}

/// GW18: the note about the rest names the tool that the agent has by now.
#[tokio::test(flavor = "multi_thread")]
async fn gw18_a_tool_of_another_name_is_named_so() {
    let world = World::new(reading(false)).await;
    let mut agent = Agent::new(false);
    for n in 0..24 {
        if n == 20 {
            agent.body["tools"][1]["name"] = json!("memory_load");
        }
        let answer = world.messages(&agent.turn(n, 3_000)).send().await.unwrap();
        agent.hear(&answer.json().await.unwrap());
    }
    let (_, seen) = world.end().await;
    let says = |n: usize, name: &str| {
        String::from_utf8_lossy(&seen[n].body).contains(&format!("call {name} before you ask"))
    };
    assert!(says(19, "mcp__foldback__load") && says(20, "memory_load") && says(23, "memory_load"));
    assert!(!says(20, "mcp__foldback__load"));
}

/// A message as some clients write it the next time: its keys in another order, a lone text as a string.
fn rewritten(message: &Value) -> Value {
    let mut content = message["content"].clone();
    let blocks = content.as_array_mut().unwrap();
    for block in blocks.iter_mut() {
        let turned: serde_json::Map<_, _> =
            block.as_object().unwrap().clone().into_iter().rev().collect();
        *block = Value::Object(turned);
    }
    let lone =
        blocks.iter().all(|block| block["type"] == "text").then(|| blocks[0]["text"].clone());
    json!({ "content": lone.unwrap_or(content), "role": message["role"] })
}

/// GW5: however differently a client writes its messages, those of a folded conversation keep their bytes except for
/// the marks.
#[tokio::test(flavor = "multi_thread")]
async fn gw5_messages_are_sent_again_in_the_same_bytes() {
    let mut moves = Vec::new();
    for rewrites in [false, true] {
        let world = World::new(reading(false)).await;
        let mut agent = Agent::new(false);
        for n in 0..24 {
            // With results of this size both clients' conversations fold at the same turns, although their bytes differ.
            let mut body = agent.turn(n, 4_000);
            let messages = body["messages"].as_array_mut().unwrap();
            let (_, earlier) = messages.split_last_mut().unwrap();
            for message in earlier.iter_mut().filter(|_| rewrites && n % 2 == 1) {
                *message = rewritten(message);
            }
            let answer = world.messages(&body).send().await.unwrap();
            agent.hear(&answer.json().await.unwrap());
        }
        let (_, seen) = world.end().await;
        let sent = seen.iter().skip(14).map(|seen| {
            let text = String::from_utf8(seen.body.clone()).unwrap();
            let (_, messages) = text.split_once("\"messages\":[").unwrap();
            let messages = messages.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
            messages.split("{\"role\"").map(str::to_owned).collect::<Vec<_>>()
        });
        let sent: Vec<_> = sent.collect();
        let kept = |pair: &[Vec<String>]| {
            pair[0]
                .iter()
                .zip(&pair[1])
                .take_while(|(before, now)| {
                    before.trim_end_matches(']').trim_end_matches(',') == now.trim_end_matches(',')
                })
                .count()
        };
        moves.push(sent.windows(2).map(kept).collect::<Vec<_>>());
    }
    println!("{moves:?}");
    assert_eq!(moves[0], moves[1]);
}

/// GW19: the kept exchanges of a conversation, replayed, give the bytes that the provider got.
#[tokio::test(flavor = "multi_thread")]
async fn gw19_a_replay_sends_what_the_gateway_sent() {
    let dir = tempfile::tempdir().unwrap();
    let model = ModelConfig::new(Provider::Anthropic, "", "claude-x");
    let (prices, least) = (model.prices, model.least_cached_tokens);
    let terms = CacheTerms { prices, least, ..CacheTerms::default() };
    let traffic = |config: &mut GatewayConfig| config.traffic = Some(dir.path().to_owned());
    let world = World::with(reading(false), traffic).await;
    let mut agent = Agent::new(false);
    for n in 0..40 {
        let answer = world
            .messages(&agent.turn(n, 3_000))
            .header("x-foldback-todo", "t")
            .send()
            .await
            .unwrap();
        agent.hear(&answer.json().await.unwrap());
        // Exchanges are ordered by the millisecond in which they were sent.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (_, seen) = world.end().await;
    std::fs::write(dir.path().join("notes.json"), "[]").unwrap();
    let mut odd = Taped::folder(dir.path()).unwrap().0[0].clone();
    odd.request = "{\"messages\": 港".into();
    let odd = serde_json::to_vec(&odd).unwrap();
    std::fs::write(dir.path().join("0000000000002-1-000000.json"), odd).unwrap();
    let (mut exchanges, skipped) = Taped::folder(dir.path()).unwrap();
    let skipped: Vec<_> = skipped.iter().map(ToString::to_string).collect();
    assert!(skipped.len() == 1 && skipped[0].contains("2-1-000000.json has a request that is not"));
    // The gateway's clock stood still.
    exchanges.iter_mut().for_each(|exchange| exchange.at = 1_763_856_000_000);
    assert_eq!(exchanges.len(), seen.len());
    for _ in 0..2 {
        let (mut replay, mut folded) = (Replay::new(terms).unwrap(), 0);
        for (exchange, seen) in exchanges.iter().zip(&seen) {
            let sent = replay.play(exchange, |_| None).unwrap();
            folded += usize::from(sent.is_some());
            let sent = sent.unwrap_or_else(|| exchange.request.to_string());
            assert!(sent.as_bytes() == seen.body, "{sent}");
        }
        assert!(folded > 10, "{folded} of {}", seen.len());
        let todo = &replay.memory().todos(None, 2).unwrap()[0];
        assert_eq!(replay.memory().sent(todo, 0, 1_000).unwrap().len(), 80);
    }
    std::fs::write(dir.path().join("0000000000001-1-000000.json"), "{\"at\": true}").unwrap();
    let error = Taped::folder(dir.path()).unwrap_err().to_string();
    assert!(error.contains("000000.json holds something else at line 1, column"), "{error}");
}
