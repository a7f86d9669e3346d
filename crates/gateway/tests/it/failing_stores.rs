//! R6, GW12: histories of agents behind a gateway whose store fails as a disk does: commits are refused, or fail before
//! or after the moment at which they are durable, and reads fail.

use crate::agent::{Agent, Speaks, calling};
use crate::world::{World, body, exports, todos};
use foldback::kv;
use foldback_gateway::RecallBy;
use foldback_testkit::effort;
use foldback_testkit::engine::Faulty;
use foldback_testkit::upstream::{Answer, Raw, Said};
use serde_json::{Value, json};
use std::sync::Arc;

/// Every request passes, and what was recorded is what was sent. Once the store works again, the next request of a
/// conversation has all of it recorded.
async fn played(speaks: Speaks, recall: RecallBy, seed: u64, steps: usize) -> Troubles {
    let what = format!("{speaks:?} {recall:?} {seed}");
    let truth = kv::memory();
    let mut agent = Agent::new(speaks, recall, seed);
    let model = calling(seed, agent.thinking.is_some());
    let mut world = World::with(model, |config| config.recall = recall).await;
    let mut failing = Arc::new(Faulty::new(truth.clone(), failures_of(seed, 0)));
    world.restart_on(failing.clone()).await;
    failing.fail(true);
    let mut troubles = Troubles::default();
    for step in 0..steps {
        match agent.random.below(20) {
            0 => agent.rewind(),
            1 => world.wait(400),
            2..5 => {
                troubles.faults += failing.faults();
                failing = Arc::new(Faulty::new(truth.clone(), failures_of(seed, step + 1)));
                world.restart_on(failing.clone()).await;
                failing.fail(true);
            }
            _ => {}
        }
        let mut words = agent.words.len();
        agent.ask(step);
        let body = agent.body("claude-x");
        let (status, mut answer) = world.asked(speaks.path(), &body).await;
        // A turn must begin with its thinking, and only the store knows what that followed.
        if status != 200 && agent.must_think() {
            troubles.faults += failing.faults();
            troubles.interrupted += 1;
            failing = Arc::new(Faulty::new(truth.clone(), 0));
            world.restart_on(failing.clone()).await;
            let (status, again) = world.asked(speaks.path(), &body).await;
            answer = again;
            if status != 200 {
                words = agent.words.len();
                (_, answer) = troubles.begin_again(&mut agent, &world, step).await;
            }
        } else {
            assert_eq!(status, 200, "{what}, step {step}: {answer}");
        }
        assert!(!answer.to_string().contains("foldback_load"), "{what}: {answer}");
        agent.hear(&answer);
        let sent = world.upstream.seen().pop().unwrap().body;
        let sent = String::from_utf8_lossy(&sent);
        for word in &agent.words[words..] {
            assert!(sent.contains(word), "{what}, step {step}: {word} is new, and is not sent");
        }
    }
    troubles.faults += failing.faults();
    world.restart_on(truth).await;
    agent.ask(steps);
    let mut body = agent.body("claude-x");
    let (status, answer) = world.asked(speaks.path(), &body).await;
    troubles.interrupted += u64::from(agent.must_think());
    if status != 200 {
        assert!(agent.must_think(), "{what}: {answer}");
        (body, _) = troubles.begin_again(&mut agent, &world, steps).await;
    }
    let (memory, _) = world.end().await;
    let body = body.to_string();
    let is_sent = |word: &&String| body.contains(&format!("{word} "));
    let todos = todos(&memory);
    let branches: Vec<String> =
        todos.iter().flat_map(|todo| exports(&memory, todo)).map(|sent| sent.concat()).collect();
    let is_whole = |branch: &String| {
        agent.words.iter().filter(is_sent).all(|word| branch.contains(&format!("{word} ")))
    };
    assert!(branches.iter().any(is_whole), "{what}: no branch is what the client sent last");
    let findings = memory.maintenance().doctor().unwrap().findings;
    assert_eq!(findings, Vec::<String>::new(), "{what}");
    troubles
}

/// What went wrong in a history.
#[derive(Debug, Default)]
struct Troubles {
    /// How many calls of the store failed.
    faults: u64,
    /// How many turns that must begin with their thinking met a store that failed.
    interrupted: u64,
    /// How many of them were refused on a store that works.
    begun_again: u64,
}

impl Troubles {
    /// Begins a turn again, as a client does: what its thinking followed was not recorded. Returns the request and its
    /// answer.
    async fn begin_again(
        &mut self,
        agent: &mut Agent,
        world: &World,
        step: usize,
    ) -> (Value, Value) {
        self.begun_again += 1;
        agent.begin_turn_again();
        agent.ask(step);
        let body = agent.body("claude-x");
        let answer = world.ask(agent.speaks.path(), &body).await;
        (body, answer)
    }
}

/// The seed of a store's failures. With these, turns that must begin with their thinking are interrupted by failures.
fn failures_of(seed: u64, step: usize) -> u64 {
    (seed << 32) | (2 << 16) | step as u64
}

/// The failures of a seed depend on how the threads of the recorder take turns; what the agent does, does not.
#[tokio::test(flavor = "multi_thread")]
async fn r6_gw12_requests_pass_while_the_store_fails_and_are_recorded_once_it_works() {
    let mut all = Troubles::default();
    for seed in 0..effort(12).into() {
        for speaks in [Speaks::Messages, Speaks::Chat, Speaks::Responses] {
            let recall = if seed % 2 == 0 { RecallBy::Mcp } else { RecallBy::Stream };
            let one = played(speaks, recall, seed, 25).await;
            all.faults += one.faults;
            all.interrupted += one.interrupted;
            all.begun_again += one.begun_again;
        }
    }
    println!("{all:?}");
    assert!(all.faults > 10, "{all:?}");
    assert!(all.begun_again <= all.interrupted / 2 + 1, "{all:?}");
}

/// A request that a provider refuses for another reason is not sent again, and the refusal reaches the client.
#[tokio::test]
async fn gw12_only_a_refusal_that_speaks_of_thoughts_is_sent_again_without_them() {
    let of_thoughts = "messages.3: Invalid `signature` in `thinking` block";
    for (why, has_tools, is_again) in [
        (of_thoughts, true, true),
        ("max_tokens is too large", true, false),
        // Nothing is ever left out of a conversation without tools.
        (of_thoughts, false, false),
    ] {
        let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": why } });
        let raw = Raw {
            status: 400,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            pieces: vec![error.to_string().into_bytes()],
        };
        let world = World::with(
            move |seen| match String::from_utf8_lossy(&seen.body).contains("\"thinking\"") {
                true => Answer::Raw(raw.clone()),
                false => Answer::Said(Said::text("It is port 七.")),
            },
            |config| config.recall = RecallBy::Stream,
        )
        .await;
        let long = "word ".repeat(6_000);
        let thought = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" });
        let mut sent = body(json!([
            { "role": "user", "content": long },
            { "role": "assistant", "content": [thought, { "type": "text", "text": "Done." }] },
            { "role": "user", "content": "Which port?" },
        ]));
        if has_tools {
            sent["tools"] = json!([{ "name": "read", "input_schema": { "type": "object" } }]);
        }
        let answer = world.messages(&sent).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let (_, seen) = world.end().await;
        assert_eq!((status == 200, seen.len()), (is_again, 1 + usize::from(is_again)), "{text}");
        assert_eq!(text.contains(why), !is_again, "{text}");
    }
}
