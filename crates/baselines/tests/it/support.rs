//! Helpers of the tests of policies.

use foldback_core::{
    Budget, ContextManager, Message, Prompt, TodoId, TokenCounter, ToolCall, ToolCallId,
    check_request,
};

/// Each character is a token: sizes in tests are exact. A message takes 4 more.
pub(crate) struct Characters;

impl TokenCounter for Characters {
    fn count(&self, text: &str) -> usize {
        text.chars().count()
    }
}

pub(crate) fn todo() -> TodoId {
    TodoId::new("t").unwrap()
}

pub(crate) fn prompt(context: &dyn ContextManager) -> Prompt {
    context.prompt(&Budget::default())
}

/// The texts of a prompt, which must be a valid request.
#[track_caller]
pub(crate) fn texts(context: &dyn ContextManager) -> Vec<String> {
    let messages = prompt(context).messages;
    assert_eq!(check_request(messages.iter().map(AsRef::as_ref)), []);
    messages.iter().map(|message| message.text().into_owned()).collect()
}

/// Records messages as a loop does: background work is done after each message and comes back one
/// message late.
pub(crate) fn record(
    context: &mut dyn ContextManager,
    messages: impl IntoIterator<Item = Message>,
) {
    for message in messages {
        let job = context.background_work().and_then(|policy| policy.next_job());
        let done = job.map(|job| (job.0)());
        context.record(message).unwrap();
        if let Some(done) = done {
            context.background_work().unwrap().absorb(done).unwrap();
        }
    }
}

/// One call of each id, and the results `r <id>`.
pub(crate) fn unit(ids: &[&str]) -> Vec<Message> {
    let calls = ids.iter().map(|id| ToolCall::new(id, "read", "{}")).collect();
    let results = ids.iter().map(|id| result(id, &format!("r {id}")));
    [Message::calls("I read.", calls)].into_iter().chain(results).collect()
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::tool_result(&ToolCallId::new(id), text)
}
