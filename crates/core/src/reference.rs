//! The full name of something recorded: a block or a payload of a certain todo.

use crate::{BlockId, Check, PayloadRef, TodoId};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The full name of a block or a payload: `b_<todo>_<nnn>` or `store://<todo>/<n>-<check>`. It means the same wherever
/// it is read. The short forms have a meaning only in their own todo, where [`parse_in`](Self::parse_in) accepts them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Reference {
    /// A closed block.
    Block(BlockId),
    /// A large text that is stored outside the conversation.
    Payload {
        /// The todo that it belongs to.
        todo: TodoId,
        /// Its number there, from 1.
        n: u64,
        /// A few characters of its hash.
        check: Check,
    },
}

impl Reference {
    /// Parses a reference that is used in the todo `own`: in addition to the full names, it accepts `b_<nnn>`,
    /// `store://<n>-<check>`, and payloads without their scheme, which models drop.
    ///
    /// ```
    /// use foldback_core::{Reference, TodoId};
    ///
    /// let own = TodoId::new("report")?;
    /// assert_eq!(Reference::parse_in(&own, "b_003")?.to_string(), "b_report_003");
    /// let payload = Reference::parse_in(&own, "store://2-k4qd")?;
    /// assert_eq!(payload.to_string(), "store://report/2-k4qd");
    /// assert_eq!(Reference::parse_in(&own, "b_draft_001")?.todo().as_str(), "draft");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the text has none of these forms.
    pub fn parse_in(own: &TodoId, text: &str) -> Result<Self, ReferenceError> {
        if let Some(n) = short_block(text) {
            return Ok(Self::Block(BlockId::new(own.clone(), n)));
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Block(id));
        }
        let payload = text.parse::<PayloadRef>();
        let payload = payload.or_else(|_| format!("{}{text}", PayloadRef::SCHEME).parse());
        match payload {
            Ok(PayloadRef { todo, n, check }) => {
                Ok(Self::Payload { todo: todo.unwrap_or_else(|| own.clone()), n, check })
            }
            Err(_) => Err(ReferenceError(text.chars().take(60).collect())),
        }
    }

    /// Returns the todo that owns the block or payload.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        match self {
            Self::Block(id) => id.todo(),
            Self::Payload { todo, .. } => todo,
        }
    }
}

/// Returns the number in `b_<nnn>`, which names a block of the todo in which it is used.
fn short_block(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("b_")?;
    let n: u32 = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    // One block has one name: no other padding.
    (n > 0 && format!("{n:03}") == digits).then_some(n)
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(id) => id.fmt(f),
            Self::Payload { todo, n, check } => {
                PayloadRef { todo: Some(todo.clone()), n: *n, check: *check }.fmt(f)
            }
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    /// Parses a full name.
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Block(id));
        }
        match text.parse() {
            Ok(PayloadRef { todo: Some(todo), n, check }) => Ok(Self::Payload { todo, n, check }),
            _ => Err(ReferenceError(text.chars().take(60).collect())),
        }
    }
}

impl TryFrom<String> for Reference {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        text.parse()
    }
}

impl From<Reference> for String {
    fn from(reference: Reference) -> Self {
        reference.to_string()
    }
}

impl From<BlockId> for Reference {
    fn from(id: BlockId) -> Self {
        Self::Block(id)
    }
}

/// A text that names neither a block nor a payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a reference: a block looks like b_<todo>_<nnn>, a stored part like store://<n>-<check>"
)]
pub struct ReferenceError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_in_their_todo() {
        let own = TodoId::new("t1").unwrap();
        #[track_caller]
        fn check(own: &TodoId, text: &str, expected: &str) {
            let read = Reference::parse_in(own, text).map_or("-".to_owned(), |r| r.to_string());
            assert_eq!(read, expected, "{text:?}");
        }
        for (text, full) in [
            ("b_003", "b_t1_003"),
            ("b_1234", "b_t1_1234"),
            ("b_t1_003", "b_t1_003"),
            ("b_t2_003", "b_t2_003"),
            ("store://7-abcd", "store://t1/7-abcd"),
            ("7-abcd", "store://t1/7-abcd"),
            ("store://t2/7-abcd", "store://t2/7-abcd"),
            ("t2/7-abcd", "store://t2/7-abcd"),
        ] {
            check(&own, text, full);
        }
        for bad in [
            "",
            "b_",
            "b_3",
            "b_000",
            "b_+03",
            "b_0000003",
            "b_0123",
            "003",
            "b_99999999999",
            "7-ABCD",
            "store://0-abcd",
            "store://../7-abcd",
            "第三块",
            "b_t1_003 ",
            "*",
        ] {
            check(&own, bad, "-");
        }
    }

    #[test]
    fn a_full_name_is_read_as_it_is_written() {
        for text in ["b_a_b_012", "store://a_b/7-abcd"] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
            let json = serde_json::to_string(&text.parse::<Reference>().unwrap()).unwrap();
            assert_eq!(serde_json::from_str::<Reference>(&json).unwrap().to_string(), text);
        }
        // The short forms have no meaning of their own.
        for short in ["b_012", "store://7-abcd", "7-abcd"] {
            assert!(short.parse::<Reference>().is_err(), "{short}");
        }
    }
}
