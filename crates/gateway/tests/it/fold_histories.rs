//! GW7, GW12: random histories of agents whose requests are folded: tool loops with parallel calls, thoughts, rewinds,
//! compactions, retries, pauses, other models, and a gateway that is started again.

use crate::world::{World, load_tool, todos};
use foldback_core::Timestamp;
use foldback_gateway::RecallBy;
use foldback_testkit::Random;
use foldback_testkit::upstream::{Answer, ProviderCache, Said, Seen};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Speaks {
    Messages,
    Chat,
    Responses,
}

/// What was asked, and what the model answered.
#[derive(Clone, Default)]
struct Turn {
    asked: Vec<Value>,
    answered: Vec<Value>,
    calls: Vec<String>,
}

struct Agent {
    speaks: Speaks,
    random: Random,
    thinking: Option<&'static str>,
    recall: RecallBy,
    history: Vec<Turn>,
    /// Words that no other message has, and that are large.
    words: Vec<String>,
}

/// A model that calls up to three tools at once.
/// Where the gateway has declared its own, it calls that as well.
fn calling(seed: u64, thinks: bool) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |seen| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(seed * 1_000 + n as u64);
        let mut said = Said::text(&format!("answer {n}: {}", random.word()));
        if thinks {
            said = said.thinking(&format!("What about {}?", random.word()));
        }
        for k in 0..random.below(4) {
            said = said.call(
                &format!("c{n}_{k}"),
                "read",
                json!({ "path": format!("{}.rs", random.word()) }),
            );
        }
        let is_declared =
            String::from_utf8_lossy(&seen.body).contains("\"name\":\"foldback_load\"");
        if is_declared && random.below(3) == 0 {
            let place = random.below(said.calls.len() + 1);
            let words = json!({ "ref": format!("w{} 端口", random.below(n)) });
            said.calls.insert(place, (format!("c{n}_own"), "foldback_load".to_owned(), words));
        }
        Answer::Said(said)
    }
}

impl Agent {
    /// A text of some thousand bytes, some of it of another script.
    fn text(&mut self, step: usize, k: usize) -> String {
        let word = format!("w{step}x{k}");
        let size = [200, 2_500, 4_000, 14_000][self.random.below(4)];
        let mut text = format!("{word} 端口 ");
        while text.len() < size {
            text.push_str(&self.random.word());
            text.push(if self.random.below(12) == 0 { '\n' } else { ' ' });
        }
        self.words.push(word);
        text
    }

    /// What is asked next: the results of all calls, and often a text.
    fn ask(&mut self, step: usize) -> Vec<Value> {
        let calls = self.history.last().map(|turn| turn.calls.clone()).unwrap_or_default();
        let results: Vec<_> =
            calls.iter().enumerate().map(|(k, id)| (id.clone(), self.text(step, k))).collect();
        let words = (results.is_empty() || self.random.below(4) == 0).then(|| self.text(step, 9));
        match self.speaks {
            Speaks::Messages => {
                let result = |(id, text): (String, String)| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
                let text = |text: String| json!({ "type": "text", "text": text });
                let blocks: Vec<_> =
                    results.into_iter().map(result).chain(words.map(text)).collect();
                vec![json!({ "role": "user", "content": blocks })]
            }
            Speaks::Chat => {
                let result = |(id, text): (String, String)| json!({ "role": "tool", "tool_call_id": id, "content": text });
                let text = |text: String| json!({ "role": "user", "content": text });
                results.into_iter().map(result).chain(words.map(text)).collect()
            }
            Speaks::Responses => {
                let result = |(id, text): (String, String)| json!({ "type": "function_call_output", "call_id": id, "output": text });
                let text = |text: String| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
                results.into_iter().map(result).chain(words.map(text)).collect()
            }
        }
    }

    fn body(&self, model: &str) -> Value {
        let turns = self.history.iter().flat_map(|turn| turn.asked.iter().chain(&turn.answered));
        let mut messages: Vec<Value> = turns.cloned().collect();
        let read = json!({ "name": "read", "description": "Reads.", "input_schema": { "type": "object" } });
        let tools =
            if self.recall == RecallBy::Mcp { json!([read, load_tool()]) } else { json!([read]) };
        match self.speaks {
            Speaks::Messages => {
                let last = messages.last_mut().unwrap()["content"].as_array_mut().unwrap();
                last.last_mut().unwrap()["cache_control"] = json!({ "type": "ephemeral" });
                let mut body = json!({ "model": model, "max_tokens": 9, "system": "Be brief. ".repeat(500), "tools": tools, "messages": messages });
                if let Some(thinking) = self.thinking {
                    body["thinking"] = json!({ "type": thinking });
                }
                body
            }
            Speaks::Chat => {
                messages.insert(0, json!({ "role": "system", "content": "Be brief." }));
                json!({ "model": model, "messages": messages, "tools": tools })
            }
            Speaks::Responses => {
                json!({ "model": model, "instructions": "Be brief.", "input": messages, "tools": tools })
            }
        }
    }

    fn hear(&mut self, answer: &Value) {
        let turn = self.history.last_mut().unwrap();
        match self.speaks {
            Speaks::Messages => {
                let blocks = answer["content"].as_array().unwrap();
                turn.answered = vec![json!({ "role": "assistant", "content": blocks })];
                let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
                turn.calls = calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect();
            }
            Speaks::Chat => {
                let message = &answer["choices"][0]["message"];
                turn.answered = vec![message.clone()];
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                turn.calls = calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect();
            }
            Speaks::Responses => {
                turn.answered = answer["output"].as_array().unwrap().clone();
                let calls = turn.answered.iter().filter(|item| item["type"] == "function_call");
                turn.calls =
                    calls.map(|call| call["call_id"].as_str().unwrap().to_owned()).collect();
            }
        }
    }
}

async fn played(speaks: Speaks, recall: RecallBy, seed: u64, steps: usize) -> (f64, usize) {
    let thinking = match (speaks, seed % 3) {
        (Speaks::Messages, 1) => Some("adaptive"),
        (Speaks::Messages, 2) => Some("enabled"),
        _ => None,
    };
    let model = calling(seed, thinking.is_some());
    let mut world = World::with(model, |config| config.recall = recall).await;
    let mut direct = ProviderCache::default();
    let mut agent = Agent {
        speaks,
        random: Random::new(seed),
        thinking,
        recall,
        history: Vec::new(),
        words: Vec::new(),
    };
    let (mut model, mut now, mut folded) = ("claude-x", 0, 0);
    for step in 0..steps {
        match agent.random.below(40) {
            0 | 1 => {
                let kept = agent.history.len() - agent.random.below(agent.history.len() / 2 + 1);
                agent.history.truncate(kept);
                // Where a turn begins with its thoughts, nobody goes back into the middle of one.
                let goes_on = |turn: &Turn| thinking == Some("enabled") && !turn.calls.is_empty();
                while agent.history.last().is_some_and(goes_on) {
                    agent.history.pop();
                }
            }
            2 if agent.history.len() > 12 => agent.history.clear(),
            3 => model = if model == "claude-x" { "claude-y" } else { "claude-x" },
            4 | 5 => {
                now += 400;
                world.wait(400);
                world.upstream.wait(400);
            }
            6 | 7 => world.restart().await,
            _ => {}
        }
        let asked = agent.ask(step);
        let new: Vec<String> = agent
            .words
            .iter()
            .filter(|word| word.starts_with(&format!("w{step}x")))
            .cloned()
            .collect();
        agent.history.push(Turn { asked, ..Turn::default() });
        let body = agent.body(model);
        for _ in 0..1 + usize::from(agent.random.below(15) == 0) {
            let answer = world.ask(speaks_path(speaks), &body).await;
            assert!(!answer.to_string().contains("foldback_load"), "{answer}");
            direct.take(&body, Timestamp(1_000 * now), &mut |text| text.len() as u64 / 4);
            agent.hear(&answer);
        }
        let seen = world.upstream.seen();
        let last = seen.last().unwrap();
        let sent = last.json();
        for key in ["system", "instructions", "model", "thinking"] {
            assert_eq!(sent[key], body[key], "{key}");
        }
        let tools = |body: &Value| body["tools"].as_array().cloned().unwrap();
        assert!(tools(&sent).starts_with(&tools(&body)));
        let text = String::from_utf8_lossy(&last.body);
        assert!(
            new.iter().all(|word| text.contains(word)),
            "{speaks:?} {seed} {step}: what is new is whole"
        );
        if sent != body {
            folded += 1;
            let has_less =
                ["[memory]", "[stored at", "foldback_load"].iter().any(|mark| text.contains(mark));
            let is_same = || without_thoughts(sent.clone()) == without_thoughts(body.clone());
            assert!(has_less || is_same(), "{speaks:?} {seed} {step}: {text}");
        }
    }
    let ratio = world.upstream.billed().cost / direct.billed().cost;
    let log = world.log.lock().clone();
    assert!(log.is_empty(), "{speaks:?} {seed}: {log:?}");
    let words = std::mem::take(&mut agent.words);
    let (memory, _) = world.end().await;
    let all: String = todos(&memory)
        .iter()
        .flat_map(|todo| memory.conversations().export(todo).unwrap().messages)
        .map(|message| message.text().into_owned())
        .collect();
    assert!(words.iter().all(|word| all.contains(word)), "nothing is lost");
    (ratio, folded)
}

/// A body without what the model thought.
fn without_thoughts(mut body: Value) -> Value {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        if let Some(blocks) = message["content"].as_array_mut() {
            blocks.retain(|block| block["type"] != "thinking");
        }
    }
    body
}

fn speaks_path(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::Messages => "messages",
        Speaks::Chat => "chat/completions",
        Speaks::Responses => "responses",
    }
}

/// `FOLDBACK_HISTORIES` says how many, of each API.
#[tokio::test(flavor = "multi_thread")]
async fn gw7_every_folded_request_is_valid_and_loses_nothing() {
    let count = std::env::var("FOLDBACK_HISTORIES").map_or(3, |count| count.parse().unwrap());
    for recall in [RecallBy::Mcp, RecallBy::Stream] {
        for speaks in [Speaks::Messages, Speaks::Chat, Speaks::Responses] {
            for seed in 0..count {
                let (ratio, folded) = played(speaks, recall, seed, 30).await;
                println!(
                    "{recall:?} {speaks:?} {seed}: {folded} folded, cost {ratio:.3} of direct"
                );
            }
        }
    }
}
