//! The ids of a conversation's calls: chat APIs refuse duplicate and empty ids.

use foldback_core::{Budget, ContextManager, Message, SeqNo, ToolCall};
use std::collections::HashSet;

/// The ids of a conversation's calls.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    seen: HashSet<String>,
    /// If a run continues a conversation, the number of its request. The context may show only a part of
    /// what was said before, so there may be ids that are not seen: all ids of the run end in this number,
    /// which none before it did.
    from: Option<SeqNo>,
}

impl CallIds {
    /// Returns the ids in a conversation that begins with this run, or continues at the message `from`.
    pub(crate) fn of(context: &dyn ContextManager, from: Option<SeqNo>) -> Self {
        let prompt = context.prompt(&Budget::default());
        let calls = prompt.messages.iter().flat_map(|message| message.tool_calls());
        Self { seen: calls.map(|call| call.id.as_str().to_owned()).collect(), from }
    }

    /// Returns the message with ids that no call of the conversation has yet. A message whose calls keep
    /// their ids is left as it is.
    pub(crate) fn own(&mut self, message: Message) -> Message {
        let mut changed = false;
        let calls: Vec<ToolCall> = message
            .tool_calls()
            .iter()
            .map(|call| {
                let id = self.own_id(call.id.as_str());
                changed |= id != call.id.as_str();
                ToolCall::new(&id, &call.name, &call.arguments)
            })
            .collect();
        if changed { message.with_body(message.content().clone(), calls) } else { message }
    }

    fn own_id(&mut self, id: &str) -> String {
        let id = if id.trim().is_empty() { "call" } else { id };
        let stem = match self.from {
            Some(SeqNo(from)) => format!("{id}-{from}"),
            None => id.to_owned(),
        };
        let others = (2_u64..).map(|n| format!("{stem}-{n}"));
        let mut candidates = std::iter::once(stem.clone()).chain(others);
        // Among infinitely many names, one is free.
        candidates.find(|own| self.seen.insert(own.clone())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(message: &Message) -> Vec<&str> {
        message.tool_calls().iter().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn mc15_two_calls_with_one_id_are_told_apart() {
        let mut taken = CallIds::default();
        let calls = vec![
            ToolCall::new("c", "a", "{}"),
            ToolCall::new("c", "b", "{}"),
            ToolCall::new("", "天气", "{}"),
            ToolCall::new("c-2", "d", "{}"),
        ];
        assert_eq!(ids(&taken.own(Message::calls("so", calls))), ["c", "c-2", "call", "c-2-2"]);
        let next = taken.own(Message::calls("", vec![ToolCall::new("c", "a", "{}")]));
        assert_eq!(ids(&next), ["c-3"]);
    }

    #[test]
    fn mc15_ids_of_a_run_that_goes_on_are_those_of_no_run_before() {
        let calls = || Message::calls("", vec![ToolCall::new("c", "a", "{}"); 2]);
        let mut runs = [None, Some(SeqNo(7)), Some(SeqNo(12))]
            .map(|from| CallIds { seen: HashSet::new(), from });
        let own = runs.each_mut().map(|taken| taken.own(calls()));
        let all: Vec<&str> = own.iter().flat_map(ids).collect();
        assert_eq!(all, ["c", "c-2", "c-7", "c-7-2", "c-12", "c-12-2"]);
    }

    #[test]
    fn mc15_a_message_whose_ids_are_its_own_keeps_its_bytes() {
        let json = r#"{"role": "assistant", "x": 1.50, "tool_calls": [{"id":"c","type":"function","function":{"name":"a","arguments":"{}"}}]}"#;
        let message = Message::from_json(json).unwrap();
        assert_eq!(CallIds::default().own(message).json(), json);
    }
}
