//! A failing call is an observation, never the end of the run.

use crate::script::{agent, fails, model, says, walk};
use foldback_core::{Message, Role, ToolCall};
use std::sync::Arc;

fn results(messages: &[Arc<Message>]) -> Vec<String> {
    let results = messages.iter().filter(|message| *message.role() == Role::Tool);
    results.map(|message| message.text().into_owned()).collect()
}

/// OM16: an unknown tool, arguments that are not JSON and a tool's error are results of their calls, in
/// their places; the calls beside them run, and the run continues.
#[tokio::test(start_paused = true)]
async fn om16_what_goes_wrong_is_observed() {
    let calls = vec![
        ToolCall::new("c1", "raed", "{}"),
        ToolCall::new("c2", "read", "{\"path\": \"天"),
        ToolCall::new("c3", "break", "{}"),
        ToolCall::new("c4", "read", "{}"),
    ];
    let script = model([calls.into(), "都看到了".into()]);
    let agent = agent(&script, vec![says("read", 1, "晴"), fails("break", 1)]);
    let (report, messages) = walk(&agent).await;
    assert_eq!(report.answer(), Some("都看到了"));
    let results = results(&messages);
    assert!(results[0].starts_with("Error (unknown tool): "), "{results:?}");
    assert!(
        results[0].contains("\"read\"") || results[0].contains("read"),
        "the nearest: {results:?}"
    );
    assert!(results[1].starts_with("Error (arguments): "), "{results:?}");
    assert_eq!(results[2], "Error (tool): 断网: the network is down");
    assert_eq!(results[3], "晴");
}
