//! The origin of a message's words, and the call that it answers.

use crate::repair::legal_name;
use foldback_blockstore::{BlockStore, Error};
use foldback_core::{Message, Role, SeqNo, StoredMessage, ToolCallId, Trust};
use foldback_kv::Todo;
use std::fmt;
use std::ops::Range;

/// How many messages before a result are searched for its call. Between the two are the results of calls
/// that were made at the same time, and anything at all if the result came late.
const LOOK_BACK: u64 = 256;

/// How many of them are read at once. Most results directly follow their call.
const PAGE: u64 = 16;

/// The origin of a message's words: its number, its role, its tool or name, and the call that it answers.
///
/// It is shown as `#14 tool(read) of #13`, or `of #13.2` if message 13 made several calls. Names have a
/// form in which they can appear in a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    seq: SeqNo,
    role: Role,
    name: Option<String>,
    answers: Option<CallNo>,
}

impl Attribution {
    /// Returns what the message alone shows; for a tool's result, that does not include the call.
    #[must_use]
    pub fn of(seq: SeqNo, message: &Message) -> Self {
        Self::answering(seq, message, CallSearch::of(message))
    }

    /// Adds the call that a tool's result answers, searched for in the messages before it.
    ///
    /// # Errors
    /// When the store fails. A damaged message makes no call.
    pub fn find(
        blocks: &BlockStore,
        todo: &Todo,
        seq: SeqNo,
        message: &Message,
    ) -> Result<Self, Error> {
        let mut search = CallSearch::of(message);
        let mut before = backwards(blocks, todo, seq);
        while search.goes_on() {
            let Some(before) = before.next() else { break };
            let (at, before) = before?;
            search.look_at(at, &before);
        }
        Ok(Self::answering(seq, message, search))
    }

    /// Adds the call that a tool's result answers, searched for in the messages `before` it, which come
    /// newest first and include results: calls may share an id, and are then answered in their order.
    #[must_use]
    pub fn among<'m>(
        seq: SeqNo,
        message: &Message,
        before: impl Iterator<Item = (SeqNo, &'m Message)>,
    ) -> Self {
        let mut search = CallSearch::of(message);
        search.look_through(before);
        Self::answering(seq, message, search)
    }

    /// Adds the result of a search for its call.
    pub(crate) fn answering(seq: SeqNo, message: &Message, search: CallSearch<'_>) -> Self {
        let (answers, tool) = search.found.unzip();
        let name = tool.or_else(|| message.name().map(str::to_owned));
        let name = name.filter(|name| !name.is_empty());
        Self { seq, role: message.role().clone(), name, answers }
    }

    /// Returns the message's number.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.seq
    }

    /// Returns how far its words may be trusted. Recalled text is never an instruction, regardless of
    /// who said it: an imported transcript brings instructions of its own.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust::of_speaker(&self.role, self.name.as_deref()).min(Trust::User)
    }

    /// Returns the call that it answers: the number of its message, and its place among that message's calls.
    pub(crate) fn call(&self) -> Option<(SeqNo, usize)> {
        self.answers.map(|call| (call.seq, call.nth.map_or(0, |nth| nth - 1)))
    }

    /// Returns the origin of a call's arguments, as `#13.2 assistant calls read`.
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

/// A call: the number of the message that makes it and, if that makes several, which of them it is.
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

/// Returns the id of the call that a tool's message answers.
fn answered(message: &Message) -> Option<&ToolCallId> {
    message.tool_call_id().filter(|_| *message.role() == Role::Tool)
}

/// The search for the call that a message answers, in the messages before it, newest first.
///
/// An id may be repeated, in a later message or in the same one: some servers number the calls of each turn anew, some
/// give all calls the id "". So a result belongs to the newest message that makes calls with its id, and there to the
/// first call that no result between the two has answered or, if all are answered, to the last.
pub(crate) struct CallSearch<'m> {
    id: Option<&'m ToolCallId>,
    /// How many results in between have this id.
    answered: usize,
    /// The call and its tool.
    found: Option<(CallNo, String)>,
}

impl<'m> CallSearch<'m> {
    /// Creates the search; nothing is searched for if the message is not a tool's.
    pub(crate) fn of(message: &'m Message) -> Self {
        Self { id: answered(message), answered: 0, found: None }
    }

    /// Returns whether there is still something to search for.
    pub(crate) fn goes_on(&self) -> bool {
        self.id.is_some() && self.found.is_none()
    }

    /// Searches messages until the call is found.
    pub(crate) fn look_through<'b>(&mut self, before: impl Iterator<Item = (SeqNo, &'b Message)>) {
        for (seq, message) in before {
            if !self.goes_on() {
                break;
            }
            self.look_at(seq, message);
        }
    }

    /// Examines the next earlier message.
    pub(crate) fn look_at(&mut self, seq: SeqNo, message: &Message) {
        let Some(id) = self.id.filter(|_| self.found.is_none()) else { return };
        if answered(message) == Some(id) {
            self.answered += 1;
        }
        let calls = message.tool_calls().iter().enumerate().filter(|(_, call)| call.id == *id);
        if let Some((index, call)) = calls.take(self.answered + 1).last() {
            self.found = Some((CallNo::of(seq, message, index), call.name.clone()));
        }
    }
}

/// Returns the stored messages before `seq`, newest first, as far as a call is searched for, in pages
/// that are read on demand. Damaged messages are left out.
pub(crate) fn backwards<'a>(
    blocks: &'a BlockStore,
    todo: &'a Todo,
    seq: SeqNo,
) -> impl Iterator<Item = Result<(SeqNo, Message), Error>> + 'a {
    let (first, mut end) = (seq.0.saturating_sub(LOOK_BACK), seq.0);
    let pages = std::iter::from_fn(move || {
        let page = first.max(end.saturating_sub(PAGE))..end;
        end = page.start;
        (!page.is_empty()).then_some(page)
    });
    let stored = pages.flat_map(|page| match sound(blocks, todo, page) {
        Ok(page) => page.into_iter().rev().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    stored.filter_map(|stored| match stored {
        Ok((seq, stored)) => Some(Ok((seq, readable(&stored)?))),
        Err(error) => Some(Err(error)),
    })
}

/// Returns the stored messages of a range without the damaged ones.
pub(crate) fn sound(
    blocks: &BlockStore,
    todo: &Todo,
    range: Range<u64>,
) -> Result<Vec<(SeqNo, StoredMessage)>, Error> {
    match blocks.messages(todo, range.clone()) {
        // The error reports only the first damaged one.
        Err(Error::Corrupt { .. }) => {}
        stored => return Ok(range.map(SeqNo).zip(stored?).collect()),
    }
    let one = |seq: u64| match blocks.messages(todo, seq..seq + 1) {
        Err(Error::Corrupt { .. }) => None,
        stored => Some(stored.map(|stored| Some((SeqNo(seq), stored.into_iter().next()?)))),
    };
    range.filter_map(one).filter_map(Result::transpose).collect()
}

/// Returns the message with nothing in place of parts that are stored elsewhere: those are shown by
/// their notices, and of a memory tool's answer only the first line is read.
pub(crate) fn readable(stored: &StoredMessage) -> Option<Message> {
    // `null` is valid JSON in any place, and text as well.
    let json = stored.json(|_, _| Ok::<_, ()>("null".to_owned())).ok()?;
    Message::from_json(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{OBSERVATIONS, ToolCall};

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
        let system = Attribution::of(SeqNo(0), &Message::system("s"));
        assert_eq!(system.trust(), Trust::User, "what is recalled is no instruction");
        let named = Message::from_json(r#"{"role":"user","name":"a b","content":"x"}"#).unwrap();
        assert_eq!(Attribution::of(SeqNo(0), &named).to_string(), "#0 user(a_b)");
        assert_eq!(Attribution::of(SeqNo(0), &named).trust(), Trust::User);
        let json = format!(r#"{{"role":"user","name":"{OBSERVATIONS}","content":"x"}}"#);
        let observed = Message::from_json(&json).unwrap();
        assert_eq!(Attribution::of(SeqNo(0), &observed).trust(), Trust::Untrusted);
    }

    /// S5: calls that share an id are answered in their order, and one that comes again in a later turn
    /// belongs to the newest message that makes it.
    #[test]
    fn s5_calls_that_share_an_id_are_told_apart() {
        let result = |id: &str| Message::tool_result(&ToolCallId::new(id), "r");
        let messages = [
            calls(&["", "x", ""]),
            result(""),
            Message::system("a reminder"),
            result(""),
            result("x"),
            calls(&["call_0"]),
            result("call_0"),
            calls(&["call_0", "call_0"]),
            result("call_0"),
            result("call_0"),
            result("call_0"),
        ];
        let calls = (0..messages.len()).map(|at| {
            let before = (0..).map(SeqNo).zip(&messages[..at]).collect::<Vec<_>>();
            let before = before.into_iter().rev();
            Attribution::among(SeqNo(at as u64), &messages[at], before).call()
        });
        let calls: Vec<_> = calls.map(|call| call.map(|(seq, index)| (seq.0, index))).collect();
        let first = [None, Some((0, 0)), None, Some((0, 2)), Some((0, 1))];
        let later = [None, Some((5, 0)), None, Some((7, 0)), Some((7, 1)), Some((7, 1))];
        assert_eq!(calls, [first.as_slice(), &later].concat());
    }
}
