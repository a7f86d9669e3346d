//! GW4, GW5: random histories of edits, forks, retries and compactions, sent in the different forms that clients use.

use crate::world::{World, body, counting, exports, todos};
use foldback_testkit::Random;
use serde_json::{Value, json};

/// A message in another form with the same content: a string or a block, with a cache mark or without.
fn rewritten(message: &Value, is_last: bool, random: &mut Random) -> Value {
    let mut message = message.clone();
    let text = message["content"].as_str().map(str::to_owned);
    if let Some(text) = text.filter(|_| random.below(2) == 0) {
        let mut block = json!({ "type": "text", "text": text });
        if is_last && random.below(2) == 0 {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
        message["content"] = json!([block]);
    }
    if random.below(3) == 0 {
        message = json!({ "content": message["content"], "role": message["role"] });
    }
    message
}

/// What a message says.
fn said(json: &str) -> (String, String) {
    let message: Value = serde_json::from_str(json).unwrap();
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap().to_owned(),
    };
    (message["role"].as_str().unwrap().to_owned(), text)
}

/// GW4, GW5: every branch is exported as the client sent it, and nothing is recorded twice.
#[tokio::test]
async fn gw4_gw5_every_branch_of_a_random_history_is_there() {
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let world = World::new(counting()).await;
        let mut told: Vec<Vec<Value>> = Vec::new();
        let mut history: Vec<Value> = Vec::new();
        for step in 0..30 {
            match random.below(8) {
                // Back to an earlier point, of this branch or of another.
                0 if !told.is_empty() => {
                    let other = told[random.below(told.len())].clone();
                    let turns = random.below(other.len() / 2 + 1);
                    history = other[..2 * turns].to_vec();
                }
                // The client's own compaction.
                1 if history.len() > 4 => {
                    history = vec![json!({ "role": "user", "content": format!("summary {step}") })];
                    history.push(json!({ "role": "assistant", "content": "answer to 1" }));
                }
                _ => {}
            }
            history.push(
                json!({ "role": "user", "content": format!("说 {} {step}", random.below(4)) }),
            );
            for _retry in 0..=random.below(2) {
                let sent: Vec<_> = (1..)
                    .zip(&history)
                    .map(|(n, one)| rewritten(one, n == history.len(), &mut random))
                    .collect();
                let request =
                    world.messages(&body(json!(sent))).header("x-claude-code-session-id", "s");
                let answer = request.send().await.unwrap();
                assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
                assert!(answer.bytes().await.is_ok());
            }
            let answer = format!("answer to {}", history.len());
            history.push(json!({ "role": "assistant", "content": answer }));
            told.push(history.clone());
        }
        let (memory, _) = world.end().await;
        let todos = todos(&memory);
        assert_eq!(todos.len(), 1, "seed {seed}: {todos:?}");
        let branches: Vec<Vec<_>> = exports(&memory, &todos[0])
            .iter()
            .map(|branch| branch.iter().map(|json| said(json)).collect())
            .collect();
        for history in &told {
            let wanted: Vec<_> = history.iter().map(|one| said(&one.to_string())).collect();
            let found = branches.iter().any(|branch| branch.starts_with(&wanted));
            assert!(found, "seed {seed}: {wanted:?}");
        }
        let mut prefixes: Vec<_> =
            told.iter().flat_map(|h| (1..=h.len()).map(|n| h[..n].to_vec())).collect();
        prefixes.sort_by_key(|prefix| json!(prefix).to_string());
        prefixes.dedup();
        let sent = memory.sent(&todos[0], 0, usize::MAX).unwrap();
        assert_eq!(
            sent.len(),
            prefixes.len(),
            "seed {seed}: a message for each that was told, once"
        );
        let findings = memory.maintenance().doctor().unwrap().findings;
        assert_eq!(findings, Vec::<String>::new(), "seed {seed}");
    }
}
