//! What was done, written down before and after, so that a killed run goes on without doing anything
//! twice.

mod file;
mod memory;
mod past;

pub use file::FileJournal;
pub use memory::MemoryJournal;
pub(crate) use past::{Past, PastPlan};

use crate::{Decision, Spending};
use foldback_planner::{Step, StepId, StepResult};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where a run is written down.
///
/// A record that was appended survives the end of the process; one that was synced survives the end of
/// the machine. An executor syncs before each effectful call and at the end of a run, so a power cut
/// may make an outcome unknown, and never makes an unknown call look like none. Calls of read-only and
/// idempotent tools since the last sync may be lost with it and made again; where one of them was given
/// what another such call brought, that may differ now, and the idempotency key with it.
pub trait Journal: Send + Sync {
    /// Adds a record to a run's.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError>;

    /// Makes everything that was appended durable.
    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>>;

    /// The records of a run so far, in the order they were appended.
    ///
    /// # Errors
    /// When they cannot be read.
    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError>;
}

/// A thing that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The run was given steps: its plan, a part of it, or what a new plan added.
    Steps {
        /// The steps, as they were given.
        steps: Vec<Step>,
        /// Whether the plan they belong to was still being written.
        open: bool,
    },
    /// An anchor was answered by a new plan.
    Replanned {
        /// The anchor.
        step: StepId,
    },
    /// A call was decided on.
    Decided {
        /// The step that makes it.
        step: StepId,
        /// The call's idempotency key.
        key: String,
        /// What was decided.
        #[serde(flatten)]
        decision: Decision,
    },
    /// A call is about to be made.
    Began {
        /// The step that makes it.
        step: StepId,
        /// The call's idempotency key.
        key: String,
        /// The tool.
        function: String,
        /// The arguments it is called with.
        arguments: String,
    },
    /// A call has ended.
    Ended {
        /// The step that made it.
        step: StepId,
        /// The call's idempotency key.
        key: String,
        /// How many attempts were made; none where the run was cancelled before the call was made.
        attempts: u32,
        /// What became of it.
        result: StepResult,
        /// What was spent by way of the [host](crate::Host) that it was lent, where it was anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spending>,
    },
    /// Something that whoever drives the run wants to find again, such as a model's answer.
    Note {
        /// What it is, in one word: `planner`.
        kind: String,
        /// Its text.
        body: String,
    },
}

/// Why a journal could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file system refused.
    #[error("cannot {action} the journal {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process, or another part of this one, has it open.
    #[error("the journal {path} is in use by another run; wait for it to end or use another file")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A line before the last is damaged.
    #[error("line {line} of the journal {path} is damaged: {why}; nothing after it can be trusted")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// It is not a journal, or one of another version.
    #[error("{path} is not a journal of version {expected}: its first line is {found:?}")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that is read here.
        expected: u32,
        /// What the first line says.
        found: String,
    },
    /// It failed before; what it holds since then is not known.
    #[error("the journal {path} failed to be written before, and takes no more records")]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// What a run noted for itself is not as this version writes it.
    #[error("what run {run:?} noted as {kind} cannot be read: {why}; begin a run of another name")]
    Note {
        /// The run.
        run: String,
        /// What it was noted as.
        kind: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A record could not be put into words.
    #[error("a record cannot be written: {0}")]
    Record(#[from] serde_json::Error),
}
