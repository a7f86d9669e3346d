//! What can go wrong, cut by what the caller can do about it.

use foldback_core::PayloadRef;
use std::{io, path::PathBuf};

/// The error of every function in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such payload, or it belongs to another todo: the two are told alike.
    #[error("nothing is stored under {reference} in this todo; use a reference as it was shown")]
    NotFound {
        /// What was asked for.
        reference: String,
    },
    /// The number exists in this todo, but the check after it is another one: the reference was
    /// mistyped or made up.
    #[error("{reference} has a wrong check; payload {} of this todo is {meant}", meant.n)]
    WrongCheck {
        /// What was asked for.
        reference: PayloadRef,
        /// The reference with that number.
        meant: PayloadRef,
    },
    /// More was asked for than the payload holds.
    #[error("{asked} was asked for, and the payload has {has}")]
    BadRange {
        /// What was asked for, for example `line 900`.
        asked: String,
        /// What there is, for example `120 lines`.
        has: String,
    },
    /// The pattern is no regular expression, or one that is too costly.
    #[error("the pattern {pattern:?} cannot be used: {why}")]
    BadPattern {
        /// The pattern, shortened.
        pattern: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// A payload is larger than this store takes.
    #[error("a payload of {bytes} bytes or more is larger than this store takes: {most} bytes")]
    TooLarge {
        /// Its size, as far as it was read.
        bytes: u64,
        /// The greatest size.
        most: u64,
    },
    /// What is stored of one payload is damaged. Every other payload stays readable.
    #[error("payload {n} is damaged: {what}")]
    Corrupt {
        /// Its number in its todo.
        n: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A file or folder of the store is not what this store makes, such as a link.
    #[error("{} is not used: {what}", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        what: &'static str,
    },
    /// The disk refused.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The reader that a payload came from, or the writer that it went to, failed.
    #[error("could not {doing} while a payload was passed on: {source}")]
    Stream {
        /// `read` or `write`.
        doing: &'static str,
        /// Its own error.
        source: io::Error,
    },
    /// A setting that makes no sense.
    #[error("a setting of the payload store is wrong: {what}")]
    Config {
        /// Which, and what was expected.
        what: String,
    },
    /// The transactional store failed.
    #[error(transparent)]
    Kv(#[from] foldback_kv::Error),
}

impl Error {
    /// Whether the payload is damaged by being gone: its record, its file, or its bytes.
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

/// What is said of a payload whose file is gone, and of one whose bytes are.
pub(crate) const NO_FILE: &str = "its file is missing";
pub(crate) const NO_BYTES: &str = "its bytes are missing";

/// What went wrong inside one payload's stored bytes, before it is known which payload it is.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The disk refused.
    Io(io::Error),
    /// The bytes are not what was written.
    Damaged(String),
}

impl Fault {
    pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T, Self> {
        Err(Self::Damaged(what.into()))
    }

    /// Says which payload it was.
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
            io::ErrorKind::UnexpectedEof => Self::Damaged("its file is cut short".to_owned()),
            _ => Self::Io(error),
        }
    }
}
