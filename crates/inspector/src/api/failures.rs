//! How many calls of each session failed: counted once, and then only in what is new.

use super::readable::readable;
use foldback::Memory;
use foldback::call_outcome;
use foldback::core::{CallOutcome, Message, Role};
use foldback::kv::Todo;
use parking_lot::Mutex;
use std::collections::HashMap;

/// What was counted so far, by the numbers of the todos, which are never given again.
#[derive(Default)]
pub(super) struct FailedCalls(Mutex<HashMap<u32, Counted>>);

/// The failed calls among the first messages of a session.
#[derive(Clone, Copy, Default)]
struct Counted {
    messages: u64,
    failed: u64,
}

/// How many messages one answer may read to count: a store that is looked at for the first time is counted in several.
/// A long message counts as several.
pub(super) const READ_MOST: u64 = 10_000;

/// The bytes of a message that count as one.
const BYTES: usize = 8 << 10;

/// How many messages are read at once.
const AT_ONCE: u64 = 100;

impl FailedCalls {
    /// The failed calls among the first `len` messages of a todo; `None` if that takes more than `left` further messages,
    /// or if the store fails meanwhile. What is read is taken from `left`. A damaged message counts as no failure.
    pub(super) fn of(&self, memory: &Memory, todo: &Todo, len: u64, left: &mut u64) -> Option<u64> {
        let mut counted = self.0.lock().get(&todo.no()).copied().unwrap_or_default();
        while counted.messages < len && *left > 0 {
            let end = len.min(counted.messages + AT_ONCE.min(*left));
            let Ok(messages) = readable(memory, todo.id(), counted.messages..end) else { break };
            let longer = messages.iter().map(|(_, message)| message.json().len() / BYTES);
            *left = left.saturating_sub(end - counted.messages + longer.sum::<usize>() as u64);
            let failed = messages.iter().filter(|(_, message)| has_failed(message));
            counted.failed += failed.count() as u64;
            counted.messages = end;
        }
        // Another answer may have counted further meanwhile.
        let mut all = self.0.lock();
        let known = all.entry(todo.no()).or_default();
        if known.messages < counted.messages {
            *known = counted;
        }
        (counted.messages >= len).then_some(counted.failed)
    }
}

fn has_failed(message: &Message) -> bool {
    *message.role() == Role::Tool && call_outcome(message) == Some(CallOutcome::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback::Options;
    use foldback::core::{TodoId, ToolCall, ToolCallId};

    #[test]
    fn in10_failed_calls_are_counted_once_by_what_is_recorded_of_them() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let id = TodoId::new("gate").unwrap();
        let mut session = memory.session(&id).unwrap();
        let mut call = |text: &str, outcome: Option<CallOutcome>| {
            let call = ToolCallId::new("c");
            let result = Message::tool_result(&call, text);
            let calls = vec![ToolCall::new("c", "read", "{}")];
            session.record(Message::calls("", calls)).unwrap();
            let result = outcome.map_or(result.clone(), |outcome| result.with_outcome(outcome));
            session.record(result).unwrap();
        };
        let failed = FailedCalls::default();
        let todo = memory.find(&id).unwrap();
        let count = |left: u64| {
            let mut rest = left;
            let found = failed.of(&memory, &todo, memory.len(&id).unwrap(), &mut rest);
            (found, left - rest)
        };
        call("错误：没有这个文件", None);
        call("error: is the first line of the file", Some(CallOutcome::Succeeded));
        call("没有权限", Some(CallOutcome::Failed));
        call("Not run: it waited for step 1.", Some(CallOutcome::NotMade));
        assert_eq!(count(3), (None, 3), "not all of them were read");
        assert_eq!(count(100), (Some(2), 5));
        assert_eq!(count(0), (Some(2), 0), "nothing is new");
        call("fine", None);
        call("Error: no such file", None);
        assert_eq!(count(100), (Some(3), 4));
        call(&"长".repeat(2 * BYTES), None);
        assert_eq!(count(100), (Some(3), 8), "a long message counts as several");
    }
}
