//! The findings of a check of a store.

use std::fmt;
use std::path::PathBuf;

use crate::{Key, Lost};

/// One piece of damage, as [`Kv::check`](crate::Kv::check) reports it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Finding {
    /// A record whose version or checksum is wrong.
    Record {
        /// The key under which the engine holds it.
        key: Key,
        /// What is wrong.
        detail: String,
    },
    /// The head of a todo whose version or checksum is wrong.
    Head {
        /// The todo.
        todo: u32,
        /// What is wrong.
        detail: String,
    },
    /// The engine's own structures are damaged.
    Engine {
        /// The engine's message.
        detail: String,
    },
    /// Acknowledged commits are gone.
    Lost(Lost),
    /// The engine's log is damaged before its end, so acknowledged commits are gone.
    Log {
        /// The log's file.
        path: PathBuf,
        /// Where it is damaged, and what follows the damage.
        detail: String,
    },
}

/// Returns whether the engine's own structures are sound. If they are not, a write may damage what is still whole.
#[must_use]
pub fn is_sound(findings: &[Finding]) -> bool {
    !findings.iter().any(|found| matches!(found, Finding::Engine { .. }))
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { key, detail } => write!(f, "the record {key} is damaged: {detail}"),
            Self::Head { todo, detail } => {
                write!(f, "the head of todo {todo} is damaged: {detail}")
            }
            Self::Engine { detail } => write!(f, "the engine reports: {detail}"),
            Self::Lost(lost) => write!(f, "the store has lost writes: {lost}"),
            Self::Log { path, detail } => {
                write!(f, "the log {} is damaged: {detail}", path.display())
            }
        }
    }
}
