//! The parts that a search could not examine, as its answer names them.

use crate::omission::{Omission, OmissionPart};
use foldback_core::{BlockId, PayloadRef, SeqNo, SeqRange, TodoId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The parts that were not searched, though they may hold the words of the question: at most [`MOST`](Self::MOST) by
/// name, and the number of the others. Empty if all is well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotSearched {
    /// The parts: blocks, then messages, stored parts, and vectors.
    pub parts: Vec<Unsearched>,
    /// How many parts are not named.
    pub more: u64,
}

/// A part of a todo that was not searched. As JSON it is `{"ref": "store://12-abcd", "why": "damaged"}`, with
/// `"block_id"`, `"messages"` or `"vectors"` in the place of `"ref"`, and with `"todo_id"` if all todos were searched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unsearched {
    /// The todo that it belongs to, if all of them were searched.
    #[serde(rename = "todo_id", skip_serializing_if = "Option::is_none")]
    pub todo: Option<TodoId>,
    /// What it is.
    #[serde(flatten)]
    pub part: UnsearchedPart,
    /// Why it was not searched.
    #[serde(flatten)]
    pub why: WhyUnsearched,
}

/// The kind of a part that was not searched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub enum UnsearchedPart {
    /// A whole block, with all its messages.
    #[serde(rename = "block_id")]
    Block(BlockId),
    /// Messages, the first and the last.
    #[serde(rename = "messages")]
    Messages(SeqRange),
    /// A stored part, or what follows the damage in it.
    #[serde(rename = "ref")]
    Payload(PayloadRef),
    /// The vectors of these messages, so that they were found by their words alone.
    #[serde(rename = "vectors")]
    Vectors(SeqRange),
}

/// Why something was not searched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "why", content = "detail", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyUnsearched {
    /// The stored data differ from what was written.
    Damaged,
    /// It does not exist.
    Missing,
    /// It may be intact but cannot be read now, in the system's words.
    Unreadable(String),
    /// No index on disk holds it yet, and there was no room for it in memory.
    NoRoom,
}

impl NotSearched {
    /// How many parts are named at most.
    pub const MOST: usize = 16;

    /// Returns whether everything was searched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Collects these parts, each once, and joins consecutive ones.
    pub(crate) fn of(mut parts: Vec<Unsearched>) -> Self {
        parts.sort_unstable();
        parts.dedup();
        let mut joined: Vec<Unsearched> = Vec::new();
        for part in parts {
            if !joined.last_mut().is_some_and(|last| last.join(&part)) {
                joined.push(part);
            }
        }
        let more = joined.len().saturating_sub(Self::MOST) as u64;
        joined.truncate(Self::MOST);
        Self { parts: joined, more }
    }
}

impl Unsearched {
    /// Names what is omitted from the index of a todo.
    pub(crate) fn of(todo: &TodoId, omission: Omission) -> Option<Self> {
        let range = |first, last| SeqRange::new(SeqNo(first), SeqNo(last));
        let part = match omission.part {
            OmissionPart::Block => {
                UnsearchedPart::Block(BlockId::new(todo.clone(), omission.block))
            }
            OmissionPart::Messages(first, last) => UnsearchedPart::Messages(range(first, last)?),
            OmissionPart::Vectors(seq) => UnsearchedPart::Vectors(range(seq, seq)?),
            OmissionPart::Payload { text, .. } => {
                UnsearchedPart::Payload(PayloadRef::local(text.n, text.check))
            }
        };
        Some(Self { todo: None, part, why: omission.why })
    }

    /// Names the same when all todos are searched.
    pub(crate) fn in_todo(mut self, todo: &TodoId) -> Self {
        if let UnsearchedPart::Payload(payload) = &mut self.part {
            payload.todo = Some(todo.clone());
        }
        Self { todo: Some(todo.clone()), ..self }
    }

    /// Returns the name of the part: `store://12-abcd`, `b_trip_003`, `messages 3-5`.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.part, &self.todo) {
            (UnsearchedPart::Messages(_) | UnsearchedPart::Vectors(_), Some(todo)) => {
                format!("{} of {todo}", self.part)
            }
            (part, _) => part.to_string(),
        }
    }

    /// Returns the clause after its name: `is damaged`, or for several messages `are damaged`.
    #[must_use]
    pub fn why_said(&self) -> &'static str {
        let is_several = match &self.part {
            UnsearchedPart::Messages(range) => range.len() > 1,
            UnsearchedPart::Vectors(_) => true,
            UnsearchedPart::Block(_) | UnsearchedPart::Payload(_) => false,
        };
        match (&self.why, is_several) {
            (WhyUnsearched::Damaged, false) => "is damaged",
            (WhyUnsearched::Damaged, true) => "are damaged",
            (WhyUnsearched::Missing, false) => "is missing",
            (WhyUnsearched::Missing, true) => "are missing",
            (WhyUnsearched::Unreadable(_), _) => "cannot be read now",
            (WhyUnsearched::NoRoom, _) => "found no room in memory",
        }
    }

    /// Joins another part that follows it, if it does.
    fn join(&mut self, next: &Self) -> bool {
        use UnsearchedPart::{Messages, Vectors};
        if (&self.todo, &self.why) != (&next.todo, &next.why) {
            return false;
        }
        match (&mut self.part, &next.part) {
            (Messages(range), Messages(next)) | (Vectors(range), Vectors(next))
                if next.first() <= range.last().next() =>
            {
                let last = range.last().max(next.last());
                *range = SeqRange::new(range.first(), last).unwrap_or(*range);
                true
            }
            _ => false,
        }
    }
}

impl fmt::Display for UnsearchedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = |range: &SeqRange| match range.len() {
            1 => format!("message {}", range.first()),
            _ => format!("messages {}-{}", range.first(), range.last()),
        };
        match self {
            Self::Block(id) => id.fmt(f),
            Self::Payload(payload) => payload.fmt(f),
            Self::Messages(range) => f.write_str(&messages(range)),
            Self::Vectors(range) => write!(f, "the vectors of {}", messages(range)),
        }
    }
}

/// As a clause: `store://12-abcd is damaged`. The system's words are left out.
impl fmt::Display for Unsearched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.why_said())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(first: u64, last: u64, why: WhyUnsearched) -> Unsearched {
        let range = SeqRange::new(SeqNo(first), SeqNo(last)).unwrap();
        Unsearched { todo: None, part: UnsearchedPart::Messages(range), why }
    }

    #[test]
    fn r4_what_follows_each_other_is_one_and_the_rest_is_counted() {
        let damaged = |first, last| messages(first, last, WhyUnsearched::Damaged);
        let parts = vec![damaged(5, 6), damaged(3, 3), damaged(4, 4), damaged(4, 4), damaged(9, 9)];
        let told = NotSearched::of(parts);
        assert_eq!(told, NotSearched { parts: vec![damaged(3, 6), damaged(9, 9)], more: 0 });
        let parts = vec![damaged(1, 1), messages(2, 2, WhyUnsearched::Missing)];
        assert_eq!(NotSearched::of(parts.clone()).parts, parts);
        let many = (0..20).map(|n| damaged(2 * n, 2 * n)).collect();
        let told = NotSearched::of(many);
        assert_eq!((told.parts.len(), told.more), (NotSearched::MOST, 4));
    }

    #[test]
    fn r4_what_was_not_searched_is_told_as_json() {
        let json = |part: &Unsearched| serde_json::to_value(part).unwrap();
        let told = json(&messages(3, 5, WhyUnsearched::Damaged));
        assert_eq!(told, serde_json::json!({ "messages": [3, 5], "why": "damaged" }));
        let trip = TodoId::new("trip").unwrap();
        let part = UnsearchedPart::Block(BlockId::new(trip.clone(), 3));
        let why = WhyUnsearched::Unreadable("too many open files".to_owned());
        let told = json(&Unsearched { todo: None, part, why }.in_todo(&trip));
        let expected = serde_json::json!({
            "todo_id": "trip", "block_id": "b_trip_003",
            "why": "unreadable", "detail": "too many open files",
        });
        assert_eq!(told, expected);
    }
}
