//! The crate's error, divided by what the caller can do about it.

use foldback_core::PayloadRef;
use std::{io, path::PathBuf};

/// The error that every function of this crate returns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such payload, or it belongs to another todo: the error does not distinguish the two.
    #[error("nothing is stored under {reference} in this todo; use a reference as it was shown")]
    NotFound {
        /// The requested reference.
        reference: String,
    },
    /// The number exists in this todo, but with a different check: the reference was mistyped or
    /// made up.
    #[error("{reference} has a wrong check; payload {} of this todo is {meant}", meant.n)]
    WrongCheck {
        /// The requested reference.
        reference: PayloadRef,
        /// The reference with that number.
        meant: PayloadRef,
    },
    /// The request goes beyond the payload.
    #[error("{asked} was requested, but the payload has {has}")]
    BadRange {
        /// The request, for example `line 900`.
        asked: String,
        /// What there is, for example `120 lines`.
        has: String,
    },
    /// The pattern is not a valid regular expression, or is too costly.
    #[error("the pattern {pattern:?} cannot be used: {why}")]
    BadPattern {
        /// The pattern, shortened.
        pattern: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// A payload is larger than this store accepts.
    #[error("a payload of {bytes} bytes or more exceeds this store's limit of {most} bytes")]
    TooLarge {
        /// Its size, as far as it was read.
        bytes: u64,
        /// The maximum size.
        most: u64,
    },
    /// The stored data of one payload is damaged. All other payloads stay readable.
    #[error("payload {n} is damaged: {what}")]
    Corrupt {
        /// Its number in its todo.
        n: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A file or folder is not of a kind that this store creates: a link, for example.
    #[error("{} is not used: {what}", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        what: &'static str,
    },
    /// A disk operation failed.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The reader that a payload came from, or the writer that it went to, failed.
    #[error("could not {doing} while transferring a payload: {source}")]
    Stream {
        /// `read` or `write`.
        doing: &'static str,
        /// The error of the reader or writer.
        source: io::Error,
    },
    /// A setting is invalid.
    #[error("a setting of the payload store is invalid: {what}")]
    Config {
        /// The setting, and what was expected.
        what: String,
    },
    /// The transactional store failed.
    #[error(transparent)]
    Kv(#[from] foldback_kv::Error),
}

impl Error {
    /// Returns whether the damage is that the payload's record, file or bytes are missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Corrupt { what, .. } => what == NO_FILE || what == NO_BYTES,
            _ => false,
        }
    }

    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { doing, path: path.into(), source }
    }
}

/// The details for a payload whose file is missing, and for one whose bytes are.
pub(crate) const NO_FILE: &str = "its file is missing";
pub(crate) const NO_BYTES: &str = "its bytes are missing";

/// A fault in one payload's stored bytes, before it is known which payload it is.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A disk operation failed.
    Io(io::Error),
    /// The bytes are not those that were written.
    Damaged(String),
}

impl Fault {
    pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T, Self> {
        Err(Self::Damaged(what.into()))
    }

    /// Adds which payload it was.
    pub(crate) fn of(self, n: u64, path: impl Into<PathBuf>) -> Error {
        match self {
            Self::Io(source) => Error::io("read", path, source),
            Self::Damaged(what) => Error::Corrupt { n, what },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("its file is truncated".to_owned()),
            _ => Self::Io(error),
        }
    }
}
