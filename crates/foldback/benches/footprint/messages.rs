//! Messages made up by a fixed rule, so that runs compare.

use foldback_core::{Message, ToolCall, ToolCallId};
use foldback_testkit::Random;

/// A chat of messages of 420 bytes, the median of what agents write.
pub(crate) fn chat(count: usize) -> Vec<Message> {
    let mut random = Random::new(1);
    let message = |n: usize| {
        let text = random.text(420);
        if n.is_multiple_of(2) { Message::user(&text) } else { Message::assistant(&text) }
    };
    (0..count).map(message).collect()
}

/// A call and its result of so many bytes.
pub(crate) fn large_result(n: usize, bytes: usize) -> [Message; 2] {
    let id = format!("call_{n}");
    let text = Random::new(n as u64).text(bytes);
    [
        Message::calls("", vec![ToolCall::new(&id, "read", "{}")]),
        Message::tool_result(&ToolCallId::new(&id), &text),
    ]
}
