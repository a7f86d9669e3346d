//! Names of the large texts that are stored outside a conversation.

use crate::TodoId;
use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Four base32 characters of the content's BLAKE3 hash: enough to recognise a reference that was
/// mistyped or made up. It does not prove the content; the stored hash does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Check([u8; 4]);

impl Check {
    /// Returns the check of a content with this BLAKE3 hash.
    #[must_use]
    pub fn of_hash(hash: &blake3::Hash) -> Self {
        let text = BASE32_NOPAD.encode(&hash.as_bytes()[..3]).to_ascii_lowercase();
        let mut check = *b"aaaa";
        for (to, from) in check.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self(check)
    }

    /// Returns the check of this content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self::of_hash(&blake3::hash(content))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&b| write!(f, "{}", b as char))
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({self})")
    }
}

/// The name of one payload: `store://<todo>/<n>-<check>`, or inside its own todo
/// `store://<n>-<check>`. `n` counts per todo, from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PayloadRef {
    /// The todo, if the reference names one.
    pub todo: Option<TodoId>,
    /// The number in the todo, from 1.
    pub n: u64,
    /// A few characters of the content's hash.
    pub check: Check,
}

impl PayloadRef {
    /// The beginning of every reference.
    pub const SCHEME: &'static str = "store://";

    /// Returns whether a text is the name of a stored part and nothing else: `store://2-k4qd`, or some lines of it:
    /// `store://2-k4qd#lines=10-40`.
    #[must_use]
    pub fn is_alone(text: &str) -> bool {
        let text = text.trim();
        text.split('#').next().is_some_and(|name| name.parse::<Self>().is_ok())
    }

    /// Creates a reference for use inside its own todo.
    #[must_use]
    pub fn local(n: u64, check: Check) -> Self {
        Self { todo: None, n, check }
    }
}

impl fmt::Display for PayloadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::SCHEME)?;
        if let Some(todo) = &self.todo {
            write!(f, "{todo}/")?;
        }
        write!(f, "{}-{}", self.n, self.check)
    }
}

impl FromStr for PayloadRef {
    type Err = PayloadRefError;

    fn from_str(text: &str) -> Result<Self, PayloadRefError> {
        let wrong = || PayloadRefError(text.chars().take(60).collect());
        let rest = text.strip_prefix(Self::SCHEME).ok_or_else(wrong)?;
        let (todo, name) = match rest.split_once('/') {
            Some((todo, name)) => (Some(TodoId::new(todo).map_err(|_| wrong())?), name),
            None => (None, rest),
        };
        let (digits, check) = name.split_once('-').ok_or_else(wrong)?;
        let n: u64 = digits.parse().map_err(|_| wrong())?;
        if n == 0 || n.to_string() != digits {
            return Err(wrong());
        }
        let check: [u8; 4] = check.as_bytes().try_into().map_err(|_| wrong())?;
        if !check.iter().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7')) {
            return Err(wrong());
        }
        Ok(Self { todo, n, check: Check(check) })
    }
}

impl TryFrom<String> for PayloadRef {
    type Error = PayloadRefError;

    fn try_from(text: String) -> Result<Self, PayloadRefError> {
        text.parse()
    }
}

impl From<PayloadRef> for String {
    fn from(payload: PayloadRef) -> String {
        payload.to_string()
    }
}

/// A text that is not a payload reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a payload reference: one looks like store://<n>-<check>, for example store://3-k4qd"
)]
pub struct PayloadRefError(String);

/// The kind of a payload, detected from its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadKind {
    /// Prose or anything else that is valid UTF-8.
    Text,
    /// One JSON value.
    Json,
    /// Lines that a program wrote while it ran.
    Log,
    /// Source code.
    Code,
    /// Bytes that are not valid UTF-8.
    Binary,
}

impl fmt::Display for PayloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "JSON",
            Self::Log => "log",
            Self::Code => "code",
            Self::Binary => "binary",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_one_form() {
        let check = Check::of(b"hello");
        let local = PayloadRef::local(7, check);
        assert_eq!(local.to_string().parse::<PayloadRef>().unwrap(), local);
        let far = PayloadRef { todo: Some(TodoId::new("t-1").unwrap()), ..local };
        assert_eq!(far.to_string(), format!("store://t-1/7-{check}"));
        assert_eq!(far.to_string().parse::<PayloadRef>().unwrap(), far);
        for bad in [
            "store://0-abcd",
            "store://07-abcd",
            "store://7-ABCD",
            "store://7-abc",
            "store://7-abc1",
            "store://../7-abcd",
            "store://a/b/7-abcd",
            "http://7-abcd",
            "store://7",
            "7-abcd",
            "store://+7-abcd",
            "store://7-abcd ",
        ] {
            assert!(bad.parse::<PayloadRef>().is_err(), "{bad}");
        }
    }
}
