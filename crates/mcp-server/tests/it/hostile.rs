//! S12: whatever another program's agent asks, it is answered, and the server continues.

use crate::wire::{Wire, id, server, store};
use foldback_mcp_server::Scope;
use foldback_testkit::{effort, hostile_queries};
use serde_json::json;

/// S12: 200 hostile questions (50 in a short run) over the wire.
#[tokio::test]
async fn s12_hostile_queries_are_answered_over_the_wire() {
    let memory = store(&["trip", "other"]);
    let mut wire = Wire::start(server(&memory, Scope::todo(id("trip")))).await;
    let mut errors = 0;
    for query in hostile_queries(effort(200) as usize) {
        let answer = wire.call("search_block", json!({ "query": query, "k": 20 })).await;
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < 64 << 10, "{} bytes to {query:.80}", text.len());
        assert!(!text.contains("ferry of other"), "{query:.80}: {text}");
        // A question without words is a mistake of the model.
        errors += usize::from(answer["isError"] == true);
    }
    assert!(errors < 20, "{errors} questions are mistakes");
    assert!(wire.text("search_block", json!({ "query": "ferry" })).await.contains("06:12"));
}
