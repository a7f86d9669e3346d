//! Breaks stores on purpose, and compares what is left with what was acknowledged.
//!
//! A child process [works](work) on a store and reports each change once it is durable. It is ended at random, at a
//! [named point](kill), by a [power cut](power_cut) or by [failing system calls](fault), or its files are
//! [damaged](flip) afterwards. Then [`Acknowledged::check`] opens the store: everything that was acknowledged must be
//! there word for word, nothing that was forgotten, and nothing else, and `doctor` must find nothing.
//!
//! What several concurrent processes see of a store is [recorded and judged](history); with the feature `postgres`, also
//! on two machines that share a server, which is killed meanwhile. Histories of processes that
//! fail and end are [simulated](simulation) without files: a seed determines everything that happens in them.
//!
//! Every trial is determined by its seed. `cargo run -p xtask -- torture --minutes N` runs all kinds for a time; a
//! failure reports the seed that repeats it.
//!
//! It is **not** linked into any program that ships: it is outside the floors, like the tests.

mod acknowledged;
mod place;
mod report;

pub mod fault;
pub mod flip;
pub mod history;
pub mod kill;
#[cfg(feature = "postgres")]
pub mod machines;
pub mod power_cut;
pub mod simulation;
pub mod work;

pub use acknowledged::Acknowledged;
pub use place::Place;
pub use report::{Failure, Report};

/// The error that prevents a trial.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file, a folder or a process of the trial itself failed.
    #[error("could not {doing}: {source}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A store failed before it was broken.
    #[error(transparent)]
    Memory(#[from] foldback::Error),
    /// `strace` is missing, or its output is unexpected.
    #[error("strace: {0}")]
    Strace(String),
    /// No PostgreSQL server is installed here.
    #[error("no PostgreSQL server is installed")]
    Server,
    /// A child on an undamaged store ended with an error.
    #[error("a child failed: {0}")]
    Child(String),
}

/// Adds the operation that failed to an error.
pub(crate) fn doing(doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { doing, source }
}
