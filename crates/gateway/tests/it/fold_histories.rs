//! GW7, GW12: random histories of agents whose requests are folded: tool loops with parallel calls, thinking, rewinds,
//! compactions, retries, pauses, other models, and restarts of the gateway.

use crate::agent::{Agent, Speaks, calling};
use crate::contents::{assert_told, entries};
use crate::world::{World, todos};
use foldback_core::Timestamp;
use foldback_gateway::{Ledger, RecallBy};
use foldback_testkit::upstream::ProviderCache;
use serde_json::Value;

async fn played(speaks: Speaks, recall: RecallBy, seed: u64, steps: usize) -> (f64, usize) {
    let mut agent = Agent::new(speaks, recall, seed);
    let model = calling(seed, agent.thinking.is_some());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Ledger::FILE);
    let mut world = World::with(model, |config| {
        config.recall = recall;
        config.ledger = Some(path.clone());
    })
    .await;
    let mut asked = Vec::new();
    let mut direct = ProviderCache::default();
    let (mut model, mut now, mut folded) = ("claude-x", 0, 0);
    for step in 0..steps {
        match agent.random.below(40) {
            0 | 1 => agent.rewind(),
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
        agent.ask(step);
        let new: Vec<String> = agent
            .words
            .iter()
            .filter(|word| word.starts_with(&format!("w{step}x")))
            .cloned()
            .collect();
        let body = agent.body(model);
        for _ in 0..1 + usize::from(agent.random.below(15) == 0) {
            // The later requests of a turn look things up.
            asked.push(world.upstream.seen().len());
            let answer = world.ask(speaks.path(), &body).await;
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
        let marks = text.matches("\"cache_control\"").count();
        assert!(marks <= 1, "{speaks:?} {seed} {step}: {marks} marks");
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
    let (memory, seen) = world.end().await;
    let entries = entries(&path);
    assert_eq!(entries.len(), asked.len());
    for (entry, n) in entries.iter().zip(asked) {
        assert_told(speaks, &memory, entry, &seen[n].json());
    }
    let all: String = todos(&memory)
        .iter()
        .flat_map(|todo| memory.conversations().export(todo).unwrap().messages)
        .map(|message| message.text().into_owned())
        .collect();
    assert!(words.iter().all(|word| all.contains(word)), "nothing is lost");
    (ratio, folded)
}

/// A body without the model's thinking.
fn without_thoughts(mut body: Value) -> Value {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        if let Some(blocks) = message["content"].as_array_mut() {
            blocks.retain(|block| block["type"] != "thinking");
        }
    }
    body
}

/// `FOLDBACK_HISTORIES` sets how many, for each API.
#[tokio::test(flavor = "multi_thread")]
async fn gw7_gw20_every_folded_request_is_valid_loses_nothing_and_is_recorded() {
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
