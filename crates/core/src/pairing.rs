//! Calls and their results belong together.

use crate::{Content, Message, Role, ToolCallId};
use std::collections::HashSet;
use std::fmt;

/// Follows a conversation and classifies each message by its relation to the calls before it.
///
/// The calls of one assistant message and their results are a unit. It is open until each call is
/// answered, or until a message of the user or the assistant shows that the rest never will be. An
/// instruction (a reminder, say) may come between a call and its result: it abandons no call.
#[derive(Clone, Debug, Default)]
pub struct PairingTracker {
    open: Vec<ToolCallId>,
}

/// The relation of a message to the calls before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// It neither calls nor answers. `abandoned` calls before it were never answered.
    Free {
        /// Calls that this message shows to be abandoned.
        abandoned: Vec<ToolCallId>,
    },
    /// It calls tools. `abandoned` calls before it were never answered.
    Calls {
        /// Calls that this message shows to be abandoned.
        abandoned: Vec<ToolCallId>,
    },
    /// It answers an open call.
    Answers,
    /// It is a tool message, but no open call has its id.
    Orphan,
}

impl PairingTracker {
    /// Takes the next message.
    pub fn observe(&mut self, message: &Message) -> Pairing {
        if *message.role() == Role::Tool {
            let answered = message
                .tool_call_id()
                .and_then(|id| self.open.iter().position(|open| open == id))
                .map(|at| self.open.remove(at));
            return if answered.is_some() { Pairing::Answers } else { Pairing::Orphan };
        }
        if message.role().is_instruction() && message.tool_calls().is_empty() {
            return Pairing::Free { abandoned: Vec::new() };
        }
        let abandoned = std::mem::take(&mut self.open);
        if message.tool_calls().is_empty() {
            return Pairing::Free { abandoned };
        }
        self.open = message.tool_calls().iter().map(|call| call.id.clone()).collect();
        Pairing::Calls { abandoned }
    }

    /// Returns the calls that wait for their result, in the order of calling.
    #[must_use]
    pub fn open(&self) -> &[ToolCallId] {
        &self.open
    }
}

/// Something in a request that a chat API would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The message at this index answers a call that is not directly before it.
    Orphan(usize),
    /// The call with this id is not answered.
    Unanswered(ToolCallId),
    /// Two calls have this id.
    DuplicateCall(ToolCallId),
    /// The first message that is not an instruction is not a user's.
    FirstNotUser,
    /// The message at this index says nothing.
    Empty(usize),
    /// The message at this index is an instruction after the conversation's beginning. Between a
    /// call and its result, it is the violation; the result after it still answers.
    LateInstruction(usize),
    /// There is no message.
    NoMessage,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orphan(at) => write!(f, "message {at} answers a call that is not before it"),
            Self::Unanswered(id) => write!(f, "the call {id:?} is not answered", id = id.as_str()),
            Self::DuplicateCall(id) => write!(f, "two calls have the id {id:?}", id = id.as_str()),
            Self::FirstNotUser => f.write_str("the first message is not a user's"),
            Self::Empty(at) => write!(f, "message {at} is empty"),
            Self::LateInstruction(at) => {
                write!(f, "message {at} is an instruction that comes late")
            }
            Self::NoMessage => f.write_str("there is no message"),
        }
    }
}

/// Checks that `messages` are a valid request for the chat APIs: results directly after their
/// calls, every call answered, ids unique, instructions first, a user's message next, no empty
/// content except a result's empty text.
#[must_use]
pub fn check_request<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut tracker = PairingTracker::default();
    let mut seen = HashSet::new();
    let mut begun = false;
    let mut any = false;
    for (at, message) in messages.into_iter().enumerate() {
        any = true;
        match tracker.observe(message) {
            Pairing::Orphan => found.push(Violation::Orphan(at)),
            Pairing::Free { abandoned } | Pairing::Calls { abandoned } => {
                found.extend(abandoned.into_iter().map(Violation::Unanswered));
            }
            Pairing::Answers => {}
        }
        for call in message.tool_calls() {
            if !seen.insert(call.id.clone()) {
                found.push(Violation::DuplicateCall(call.id.clone()));
            }
        }
        if message.role().is_instruction() {
            if begun {
                found.push(Violation::LateInstruction(at));
            }
        } else if !begun {
            begun = true;
            if *message.role() != Role::User {
                found.push(Violation::FirstNotUser);
            }
        }
        let may_be_silent = match message.role() {
            Role::Tool => matches!(message.content(), Content::Text(_)),
            _ => !message.tool_calls().is_empty() && *message.content() == Content::Empty,
        };
        if message.content().is_blank() && !may_be_silent {
            found.push(Violation::Empty(at));
        }
    }
    found.extend(tracker.open.into_iter().map(Violation::Unanswered));
    if !any {
        found.push(Violation::NoMessage);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolCall;

    fn call(ids: &[&str]) -> Message {
        Message::calls("", ids.iter().map(|id| ToolCall::new(id, "t", "{}")).collect())
    }

    fn result(id: &str) -> Message {
        Message::tool_result(&ToolCallId::new(id), "r")
    }

    #[test]
    fn a_valid_request_has_no_violation() {
        let messages =
            [Message::system("s"), Message::user("u"), call(&["a", "b"]), result("b"), result("a")];
        assert_eq!(check_request(&messages), []);
    }

    #[test]
    fn what_an_api_would_refuse_is_named() {
        let id = ToolCallId::new;
        #[track_caller]
        fn check(messages: &[Message], expected: &[Violation]) {
            assert_eq!(check_request(messages), expected);
        }
        check(&[], &[Violation::NoMessage]);
        check(&[Message::assistant("a")], &[Violation::FirstNotUser]);
        check(&[Message::user("u"), result("x")], &[Violation::Orphan(1)]);
        check(&[Message::user("u"), call(&["a"])], &[Violation::Unanswered(id("a"))]);
        check(
            &[Message::user("u"), call(&["a"]), Message::user("v"), result("a")],
            &[Violation::Unanswered(id("a")), Violation::Orphan(3)],
        );
        check(
            &[Message::user("u"), call(&["a"]), result("a"), call(&["a"]), result("a")],
            &[Violation::DuplicateCall(id("a"))],
        );
        check(&[Message::user(" ")], &[Violation::Empty(0)]);
        let silent = Message::tool_result(&id("a"), "");
        check(&[Message::user("u"), call(&["a"]), silent], &[]);
        check(&[Message::user("u"), Message::system("s")], &[Violation::LateInstruction(1)]);
        check(
            &[Message::user("u"), call(&["a"]), Message::system("s"), result("a")],
            &[Violation::LateInstruction(2)],
        );
        check(
            &[Message::user("u"), call(&["a"]), Message::system("s"), Message::assistant("b")],
            &[Violation::LateInstruction(2), Violation::Unanswered(id("a"))],
        );
    }

    #[test]
    fn an_instruction_gives_up_no_call() {
        let developer = Message::from_json(r#"{"role":"developer","content":"d"}"#).unwrap();
        for instruction in [Message::system("s"), developer] {
            let mut tracker = PairingTracker::default();
            let free = |abandoned: &[&str]| Pairing::Free {
                abandoned: abandoned.iter().map(|id| ToolCallId::new(id)).collect(),
            };
            tracker.observe(&call(&["a", "b"]));
            assert_eq!(tracker.observe(&instruction), free(&[]));
            assert_eq!(tracker.observe(&result("b")), Pairing::Answers);
            assert_eq!(tracker.observe(&instruction), free(&[]));
            assert_eq!(tracker.open(), [ToolCallId::new("a")]);
            assert_eq!(tracker.observe(&Message::user("u")), free(&["a"]));
            assert_eq!(tracker.observe(&result("a")), Pairing::Orphan);
        }
    }
}
