//! The errors of a memory.

mod failure;
mod kind;

pub(crate) use failure::Failure;
pub use kind::ErrorKind;

use foldback_core::ContextError;
use foldback_kv::Contended;

/// An error of a [`Memory`](crate::Memory) or a [`Session`](crate::Session): a sentence that names what was
/// wrong and what was expected, and a [kind](Self::kind) to match on. Its `source` is the error of the
/// system or the engine, if the sentence does not already contain it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Failure>);

impl Error {
    /// Returns the kind of this error. Kinds stay the same from version to version.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::of(&self.0)
    }

    /// Returns what went wrong, followed by what its sources add: the reason that the system gave.
    #[must_use]
    pub fn sentence(&self) -> String {
        foldback_core::error_text(self)
    }

    /// Returns what went wrong, in detail.
    pub(crate) fn failure(&self) -> &Failure {
        &self.0
    }

    pub(crate) fn into_failure(self) -> Failure {
        *self.0
    }
}

impl Contended for Error {
    fn is_conflict(&self) -> bool {
        match self.failure() {
            Failure::Kv(error) => error.is_conflict(),
            Failure::Blocks(error) => error.is_conflict(),
            _ => false,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self(Box::new(failure))
    }
}

/// The errors of the parts of a memory.
macro_rules! from_parts {
    ($($part:ty),* $(,)?) => {$(
        impl From<$part> for Error {
            fn from(error: $part) -> Self {
                Failure::from(error).into()
            }
        }
    )*};
}

from_parts! {
    foldback_kv::Error,
    foldback_blockstore::Error,
    foldback_backend_store::Error,
    foldback_disclosure::Error,
    foldback_chunker::Error,
    foldback_transcript::Error,
    foldback_core::EmbedError,
    foldback_core::IdError,
    foldback_core::MessageError,
    foldback_core::TodoListError,
}

impl From<Error> for ContextError {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), source: Some(Box::new(error)) }
    }
}
