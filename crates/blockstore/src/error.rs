//! Errors of the truth and of its search.

use crate::Head;
use foldback_core::TodoId;
use foldback_kv::{Contended, Key};
use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer came first. Read the todo's open tail again and repeat with its head.
    #[error(
        "todo {todo} has moved on: another writer came first ({expected} messages then, {found} now)"
    )]
    Conflict {
        /// The todo.
        todo: TodoId,
        /// The number of messages that the commit was built on.
        expected: u64,
        /// The number of messages that the store holds.
        found: u64,
    },
    /// A record of the truth is damaged or missing. Others stay readable.
    #[error("the record {key} of todo {todo} is damaged: {detail}")]
    Corrupt {
        /// The todo.
        todo: TodoId,
        /// The record.
        key: Key,
        /// What is wrong with it.
        detail: String,
    },
    /// A commit that would break the truth: no part of it was written.
    #[error("the commit to todo {todo} was refused: {why}")]
    Refused {
        /// The todo.
        todo: TodoId,
        /// What was wrong and what was expected.
        why: String,
    },
    /// The configuration is invalid.
    #[error("the configuration of the indexes is wrong: {0}")]
    Config(String),
    /// The underlying store failed.
    #[error(transparent)]
    Kv(foldback_kv::Error),
    /// A derived index could not be written or removed. The truth is untouched, and searches go on
    /// without the index.
    #[error("the index at {} could not be {doing}: {detail}", path.display())]
    Index {
        /// The index's file or folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The message of the system or the engine.
        detail: String,
    },
}

impl Contended for Error {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

impl Error {
    pub(crate) fn conflict(todo: &TodoId, expected: Head, found: Head) -> Self {
        let (expected, found) = (expected.messages, found.messages);
        Self::Conflict { todo: todo.clone(), expected, found }
    }

    /// Returns the store's error with the todo's name in place of its number.
    pub(crate) fn of(todo: &TodoId, error: foldback_kv::Error) -> Self {
        match error {
            foldback_kv::Error::Conflict { expected, found, .. } => {
                Self::conflict(todo, Head::from_number(expected), Head::from_number(found))
            }
            foldback_kv::Error::Corrupt { key, detail } => {
                Self::Corrupt { todo: todo.clone(), key, detail }
            }
            other => Self::Kv(other),
        }
    }
}
