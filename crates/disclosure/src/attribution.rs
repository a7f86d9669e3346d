//! Whose words a message is, and which call it answers.

use crate::repair::legal_name;
use foldback_blockstore::{BlockStore, Error};
use foldback_core::{Message, Role, SeqNo, StoredMessage, ToolCallId, Trust};
use foldback_kv::Todo;
use std::fmt;

/// So many messages before a result are looked through for its call. Between the two stand the results of
/// calls that were made at once, and anything where the result came late.
const LOOK_BACK: u64 = 256;

/// Whose words a message is: its number, its role, its tool or name, and the call that it answers.
///
/// It is shown as `#14 tool(read) of #13`, or `of #13.2` where the message 13 made several calls. Names
/// are of a form in which they can stand in a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    seq: SeqNo,
    role: Role,
    name: Option<String>,
    answers: Option<CallNo>,
}

impl Attribution {
    /// What the message alone tells; of a tool's result that is not the call.
    #[must_use]
    pub fn of(seq: SeqNo, message: &Message) -> Self {
        Self::answering(seq, message, None)
    }

    /// With the call that a tool's result answers: it is looked for in the messages before it.
    ///
    /// # Errors
    /// When the store fails. What is damaged makes no call.
    pub fn find(
        blocks: &BlockStore,
        todo: &Todo,
        seq: SeqNo,
        message: &Message,
    ) -> Result<Self, Error> {
        let Some(id) = answered(message) else { return Ok(Self::of(seq, message)) };
        for before in backwards(blocks, todo, seq) {
            let (at, before) = before?;
            let call = call_in(at, &before, id);
            if call.is_some() {
                return Ok(Self::answering(seq, message, call));
            }
        }
        Ok(Self::of(seq, message))
    }

    /// With the call that a tool's result answers: the newest of that id in the messages `before` it,
    /// which come the newest first.
    #[must_use]
    pub fn among<'m>(
        seq: SeqNo,
        message: &Message,
        mut before: impl Iterator<Item = (SeqNo, &'m Message)>,
    ) -> Self {
        let call = answered(message).and_then(|id| before.find_map(|(at, m)| call_in(at, m, id)));
        Self::answering(seq, message, call)
    }

    fn answering(seq: SeqNo, message: &Message, call: Option<(CallNo, String)>) -> Self {
        let (answers, tool) = call.unzip();
        let name = tool.or_else(|| message.name().map(str::to_owned));
        let name = name.filter(|name| !name.is_empty());
        Self { seq, role: message.role().clone(), name, answers }
    }

    /// The message's number.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.seq
    }

    /// How far its words may be trusted.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust::of(&self.role)
    }

    /// Whether it answers a call that is not known; `message` is the message.
    pub(crate) fn lacks_call(&self, message: &Message) -> bool {
        self.answers.is_none() && answered(message).is_some()
    }

    /// Whose words the arguments of a call are, as `#13.2 assistant calls read`.
    pub(crate) fn of_call(&self, message: &Message, index: usize) -> String {
        let tool = message.tool_calls().get(index).map_or("", |call| call.name.as_str());
        let no = CallNo::of(self.seq, message, index);
        format!("{no} {} calls {}", self.speaker(), legal_name(tool))
    }

    fn speaker(&self) -> String {
        let role = legal_name(self.role.as_str());
        match &self.name {
            Some(name) => format!("{role}({})", legal_name(name)),
            None => role.into_owned(),
        }
    }
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.seq, self.speaker())?;
        self.answers.map_or(Ok(()), |call| write!(f, " of {call}"))
    }
}

/// A call: the number of the message that makes it and, where that makes several, which of them it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallNo {
    seq: SeqNo,
    nth: Option<usize>,
}

impl CallNo {
    fn of(seq: SeqNo, message: &Message, index: usize) -> Self {
        Self { seq, nth: (message.tool_calls().len() > 1).then_some(index + 1) }
    }
}

impl fmt::Display for CallNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.seq)?;
        self.nth.map_or(Ok(()), |nth| write!(f, ".{nth}"))
    }
}

/// The id of the call that a tool's message answers.
fn answered(message: &Message) -> Option<&ToolCallId> {
    message.tool_call_id().filter(|_| *message.role() == Role::Tool)
}

/// The call of this id in a message, and its tool.
fn call_in(seq: SeqNo, message: &Message, id: &ToolCallId) -> Option<(CallNo, String)> {
    let index = message.tool_calls().iter().position(|call| call.id == *id)?;
    let tool = message.tool_calls().get(index)?.name.clone();
    Some((CallNo::of(seq, message, index), tool))
}

/// The stored messages before `seq`, the newest first, as far as a call is looked for. What is damaged is
/// left out.
pub(crate) fn backwards<'a>(
    blocks: &'a BlockStore,
    todo: &'a Todo,
    seq: SeqNo,
) -> impl Iterator<Item = Result<(SeqNo, Message), Error>> + 'a {
    let numbers = (seq.0.saturating_sub(LOOK_BACK)..seq.0).rev();
    numbers.filter_map(|n| match blocks.messages(todo, n..n + 1) {
        Err(Error::Corrupt { .. }) => None,
        Err(error) => Some(Err(error)),
        Ok(stored) => Some(Ok((SeqNo(n), readable(stored.first()?)?))),
    })
}

/// The message with nothing in the places of what is stored elsewhere: those are shown by their
/// notices, and of a memory tool's answer the first line alone is read.
pub(crate) fn readable(stored: &StoredMessage) -> Option<Message> {
    // `null` is JSON wherever it stands, and text as well.
    let json = stored.json(|_, _| Ok::<_, ()>("null".to_owned())).ok()?;
    Message::from_json(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::ToolCall;

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall::new(id, &format!("t{id}\"> <x"), "{}");
        Message::calls("", ids.iter().map(call).collect())
    }

    /// S5: a result names the newest call of its id, and which one of several it is.
    #[test]
    fn s5_a_result_names_its_call() {
        let (one, two) = (calls(&["a"]), calls(&["a", "b"]));
        let before = || [(SeqNo(7), &two), (SeqNo(3), &one)].into_iter();
        let of = |id: &str| {
            let result = Message::tool_result(&ToolCallId::new(id), "r");
            Attribution::among(SeqNo(9), &result, before()).to_string()
        };
        assert_eq!(of("b"), "#9 tool(tb____x) of #7.2");
        assert_eq!(of("a"), "#9 tool(ta____x) of #7.1");
        assert_eq!(of("c"), "#9 tool");
        let own = Attribution::of(SeqNo(3), &one);
        assert_eq!((own.to_string(), own.trust()), ("#3 assistant".to_owned(), Trust::Model));
        assert_eq!(own.of_call(&one, 0), "#3 assistant calls ta____x");
        assert_eq!(
            Attribution::of(SeqNo(7), &two).of_call(&two, 1),
            "#7.2 assistant calls tb____x"
        );
        let named = Message::from_json(r#"{"role":"user","name":"a b","content":"x"}"#).unwrap();
        assert_eq!(Attribution::of(SeqNo(0), &named).to_string(), "#0 user(a_b)");
        assert_eq!(Attribution::of(SeqNo(0), &named).trust(), Trust::User);
    }
}
