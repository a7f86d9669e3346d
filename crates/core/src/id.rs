//! Typed ids, none of which converts silently into another.

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc};

/// The name of one sub-task, whose messages, blocks and payloads belong together and to no other: 1
/// to 128 characters of `[A-Za-z0-9._:-]`, and not dots alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TodoId(Arc<str>);

impl TodoId {
    /// The greatest length in characters.
    pub const MAX_LEN: usize = 128;

    /// Checks `id` and takes it unchanged.
    ///
    /// # Errors
    /// When it is empty, too long, consists only of dots, or has any other character.
    pub fn new(id: &str) -> Result<Self, IdError> {
        let wrong = |why| Err(IdError { what: "todo id", id: shorten(id), why });
        if id.is_empty() {
            return wrong("it is empty");
        }
        if id.len() > Self::MAX_LEN {
            return wrong("it is longer than 128 characters");
        }
        if !id.bytes().all(is_todo_byte) {
            return wrong("it may contain only A-Z, a-z, 0-9 and . _ : -");
        }
        if id.bytes().all(|b| b == b'.') {
            return wrong("it consists only of dots");
        }
        Ok(Self(id.into()))
    }

    /// Converts an id of another system: unchanged if it is valid, otherwise into a readable part
    /// and a short hash of the whole, so that two different foreign ids stay different.
    #[must_use]
    pub fn from_foreign(id: &str) -> Self {
        if let Ok(id) = Self::new(id) {
            return id;
        }
        let mut readable = String::new();
        for c in id.chars() {
            if readable.len() == 40 {
                break;
            }
            match c {
                c if c.is_ascii() && is_todo_byte(c as u8) => readable.push(c),
                _ if !readable.is_empty() && !readable.ends_with('-') => readable.push('-'),
                _ => {}
            }
        }
        let readable = readable.trim_matches(['-', '.']);
        let hash = BASE32_NOPAD.encode(&blake3::hash(id.as_bytes()).as_bytes()[..5]);
        let readable = if readable.is_empty() { "todo" } else { readable };
        Self(format!("{readable}-{}", hash.to_ascii_lowercase()).into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_todo_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-')
}

/// The name of a tenant, whose todos are in a store of their own: 1 to 32 characters of `a-z`, `0-9` and `-`, the first
/// and the last of which are not `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// The greatest length in characters.
    pub const MAX_LEN: usize = 32;

    /// Checks `id` and takes it unchanged.
    ///
    /// # Errors
    /// When it is empty, too long, has any other character, or begins or ends with `-`.
    pub fn new(id: &str) -> Result<Self, IdError> {
        let wrong = |why| Err(IdError { what: "tenant", id: shorten(id), why });
        if id.is_empty() {
            return wrong("it is empty");
        }
        if id.len() > Self::MAX_LEN {
            return wrong("it is longer than 32 characters");
        }
        if !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return wrong("it may contain only a-z, 0-9 and -");
        }
        if id.starts_with('-') || id.ends_with('-') {
            return wrong("it begins or ends with -");
        }
        Ok(Self(id.into()))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of one closed block, `b_<todo>_<nnn>`: the todo, and the block's number in it,
/// counted from 1 and written with at least three digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlockId {
    todo: TodoId,
    n: u32,
}

impl BlockId {
    /// Names the `n`-th block of `todo`; blocks count from 1.
    #[must_use]
    pub fn new(todo: TodoId, n: u32) -> Self {
        Self { todo, n }
    }

    /// Returns the todo that the block belongs to.
    #[must_use]
    pub fn todo(&self) -> &TodoId {
        &self.todo
    }

    /// Returns the block's number in its todo, from 1.
    #[must_use]
    pub fn n(&self) -> u32 {
        self.n
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b_{}_{:03}", self.todo, self.n)
    }
}

impl FromStr for BlockId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError {
            what: "block id",
            id: shorten(text),
            why: "a block id looks like b_<todo>_<nnn>, for example b_todo001_001",
        };
        let (todo, digits) =
            text.strip_prefix("b_").and_then(|rest| rest.rsplit_once('_')).ok_or_else(wrong)?;
        let n: u32 = digits.parse().map_err(|_| wrong())?;
        // One block has one name: no sign, no other padding.
        if n == 0 || format!("{n:03}") != digits {
            return Err(wrong());
        }
        Ok(Self { todo: TodoId::new(todo).map_err(|_| wrong())?, n })
    }
}

/// The name that a model gave to one tool call. Any text; unique only within its message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolCallId(Arc<str>);

impl ToolCallId {
    /// Takes the id as the model wrote it.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An id that does not have the form of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id:?} is not a {what}: {why}")]
pub struct IdError {
    what: &'static str,
    id: String,
    why: &'static str,
}

/// Returns at most 60 characters of a text that goes into an error message.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

macro_rules! id_as_text {
    ($($id:ident),*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
id_as_text!(TodoId, TenantId, ToolCallId);

macro_rules! id_from_text {
    ($($id:ident),*) => {$(
        impl FromStr for $id {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    )*};
}
id_from_text!(TodoId, TenantId);

macro_rules! id_through_string {
    ($($id:ident),*) => {$(
        impl TryFrom<String> for $id {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> String {
                id.to_string()
            }
        }
    )*};
}
id_through_string!(TodoId, TenantId, BlockId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_ids_have_one_name() {
        let id: BlockId = "b_a_b_012".parse().unwrap();
        assert_eq!((id.todo().as_str(), id.n()), ("a_b", 12));
        assert_eq!(id.to_string(), "b_a_b_012");
        assert_eq!("b_t_1234".parse::<BlockId>().unwrap().to_string(), "b_t_1234");
        for bad in ["b_t_12", "b_t_0012", "b_t_000", "b_t_+12", "b__001", "b_t", "t_001", "b_t_-01"]
        {
            assert!(bad.parse::<BlockId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn s4_todo_ids_cannot_name_a_path() {
        for bad in ["", "..", ".", "a/b", "a\\b", "a\0", "%2e%2e/", "ä", " a", "a\n", "~", "*"] {
            assert!(TodoId::new(bad).is_err(), "{bad:?}");
        }
        assert!(TodoId::new(&"x".repeat(129)).is_err());
        assert!(TodoId::new("conv-26:session.1_a").is_ok());
    }

    /// PG9: the name of a tenant is a folder, a word of SQL and a setting, and none of these means anything else by it.
    #[test]
    fn pg9_tenants_have_plain_names() {
        for bad in ["", ".", "..", "a/b", "Acme", "a_b", "a'b", "a b", "-a", "a-", "租户", "a\n"]
        {
            assert!(TenantId::new(bad).is_err(), "{bad:?}");
        }
        assert!(TenantId::new(&"x".repeat(33)).is_err());
        assert!(TenantId::new("acme-2").is_ok());
    }

    #[test]
    fn foreign_ids_are_mapped_and_stay_apart() {
        assert_eq!(TodoId::from_foreign("plain-1").as_str(), "plain-1");
        let (a, b) = (TodoId::from_foreign("会话/一"), TodoId::from_foreign("会话/二"));
        assert_ne!(a, b);
        for id in ["", "../../etc/passwd", "会话", "a b", &"y".repeat(500)] {
            let mapped = TodoId::from_foreign(id);
            assert!(TodoId::new(mapped.as_str()).is_ok(), "{mapped}");
        }
        assert!(TodoId::from_foreign("my task/7").as_str().starts_with("my-task-7-"));
    }
}
