//! Breaks stores on purpose, and compares what is left with what was acknowledged.
//!
//! A child process [works](work) on a store and says each thing once it is durable. It is ended at random, at a
//! [named point](kill), by a [power cut](power_cut) or by [failing system calls](fault), or its files are
//! [damaged](flip) afterwards. Then [`Acknowledged::check`] opens the store: everything that was acknowledged is there
//! word for word, nothing that was forgotten is, nothing else is, and `doctor` finds nothing.
//!
//! What several processes see of a store beside each other is [recorded and judged](history). Histories of processes
//! that fail and end are [simulated](simulation) without files: a seed determines all that happens in them.
//!
//! Every trial is determined by its seed. `cargo run -p xtask -- torture --minutes N` runs all kinds for a time; a failure
//! names the seed that repeats it.
//!
//! It is **not** linked into any program that ships: it is beside the floors, as the tests are.

mod acknowledged;
mod report;

pub mod fault;
pub mod flip;
pub mod history;
pub mod kill;
pub mod power_cut;
pub mod simulation;
pub mod work;

pub use acknowledged::Acknowledged;
pub use report::{Failure, Report};

/// What keeps a trial from being made at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a folder or a process of the trial itself.
    #[error("could not {doing}: {source}")]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
    /// A store failed before it was broken.
    #[error(transparent)]
    Memory(#[from] foldback::Error),
    /// `strace` is missing, or its output is not what was expected.
    #[error("strace: {0}")]
    Strace(String),
    /// A child on a whole store ended with an error.
    #[error("a child failed: {0}")]
    Child(String),
}

/// Names what was tried.
pub(crate) fn doing(doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { doing, source }
}
