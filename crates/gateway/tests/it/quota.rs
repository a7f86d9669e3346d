//! S10: a conversation that has reached its limit is passed on, and this is reported.

use crate::world::{World, counting};
use foldback::{Memory, Options, Quota};
use foldback_gateway::Keeping;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn s10_what_is_over_a_bound_is_passed_on_and_noted() {
    let quota = Quota::default().with_messages(4);
    let options = Options::default().with_view(Keeping::view()).with_quota(quota);
    let memory = Memory::in_memory(options).unwrap();
    let keeping = Keeping::On(memory.clone());
    let world = World::with(counting(), |config| config.keeping = keeping).await;
    let mut messages = Vec::new();
    for n in 0..4 {
        messages.push(json!({ "role": "user", "content": format!("question {n}") }));
        let body = json!({ "model": "claude-x", "max_tokens": 9, "messages": messages });
        let answer: serde_json::Value =
            world.messages(&body).send().await.unwrap().json().await.unwrap();
        assert_eq!(world.upstream.seen().pop().unwrap().json(), body);
        messages.push(json!({ "role": "assistant", "content": answer["content"] }));
    }
    let log = std::sync::Arc::clone(&world.log);
    world.end().await;
    let log = log.lock().clone();
    assert!(log.iter().any(|line| line.contains("memory.max_messages")), "{log:?}");
    let todo = &memory.todos(None, 1).unwrap()[0];
    assert_eq!(memory.len(todo).unwrap(), 4);
}
