//! The journal: each call is recorded before and after it is made, so that a killed run resumes without
//! doing anything twice.

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
use std::borrow::Cow;
use std::path::PathBuf;

/// A journal of runs.
///
/// A record that was appended survives the end of the process; one that was synced survives a power cut.
/// An executor syncs before each effectful call and at the end of a run, so a power cut may make an
/// outcome unknown, but never hides a call that was made. Calls of read-only and idempotent tools since
/// the last sync may be lost and repeated; if one of them was given the result of another such call, that
/// may differ now, and the idempotency key with it.
pub trait Journal: Send + Sync {
    /// Appends a record to those of a run.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError>;

    /// Makes all appended records durable.
    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Returns the records of a run so far, in the order in which they were appended.
    ///
    /// # Errors
    /// When they cannot be read.
    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError>;

    /// Returns the form in which this journal keeps a text. A resumed run compares the texts of its request and of its
    /// messages in this form: a journal that must not hold everything changes them.
    fn kept<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(text)
    }
}

/// An event in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The run was given steps: its plan, a part of it, or the additions of a new plan.
    Steps {
        /// The steps, as they were given.
        steps: Vec<Step>,
        /// Whether the plan that they belong to was still being written.
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
        /// The decision.
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
        /// The arguments.
        arguments: String,
    },
    /// A call has ended.
    Ended {
        /// The step that made it.
        step: StepId,
        /// The call's idempotency key.
        key: String,
        /// The number of attempts; 0 if the run was cancelled before the call was made.
        attempts: u32,
        /// The result.
        result: StepResult,
        /// What was spent through the [log](crate::RunLog) that it was lent, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spending>,
    },
    /// A note that the driver of the run wants to find again, such as a model's answer.
    Note {
        /// Its kind, in one word: `planner`.
        kind: String,
        /// Its text.
        body: String,
    },
}

/// The reason why a journal could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file system refused.
    #[error("cannot {action} the journal {path}: {source}")]
    Io {
        /// The action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
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
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The file is not a journal, or is one of another version.
    #[error("{path} is not a journal of version {expected}: its first line is {found:?}")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that is read here.
        expected: u32,
        /// The first line.
        found: String,
    },
    /// It failed before; its contents since then are unknown.
    #[error("an earlier write to the journal {path} failed, so it accepts no more records")]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// A note of a run is not in this version's form.
    #[error("the {kind} note of run {run:?} cannot be read: {why}; begin a run under another name")]
    Note {
        /// The run.
        run: String,
        /// The kind of the note.
        kind: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A record could not be serialised.
    #[error("a record cannot be written: {0}")]
    Record(#[from] serde_json::Error),
}
