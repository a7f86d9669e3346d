//! A part of a measurement that has a process to itself.

use super::all_todos;
use super::contest;
use super::ladder::{self, Rung};
use super::workload::Workload;
use foldback_bench::BenchError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A part of a measurement that has a process to itself. As JSON it is the last argument of the
/// command that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Fills a store with a workload, searches it, and adds to it.
    Contest {
        /// The workload's folder.
        workload: PathBuf,
        /// Where the store is made.
        store: PathBuf,
    },
    /// Opens that store with nothing of it in memory.
    ContestOpen {
        /// The workload's folder.
        workload: PathBuf,
        /// The store's folder.
        store: PathBuf,
    },
    /// Adds some blocks to a new store, between two marks.
    ContestAdds {
        /// The workload's folder.
        workload: PathBuf,
        /// Where the store is made.
        store: PathBuf,
        /// The folder for the marks.
        marks: PathBuf,
    },
    /// Fills a store up to a step of a ladder, searches it, and appends to it.
    Climb {
        /// The step.
        rung: Rung,
        /// Where the store is made.
        store: PathBuf,
    },
    /// Opens that store with nothing of it in memory.
    ClimbOpen {
        /// The step.
        rung: Rung,
        /// The store's folder.
        store: PathBuf,
    },
    /// Fills a store with so many todos of talk, makes the index over all of them, and searches it.
    AllTodos {
        /// How many todos.
        todos: u32,
        /// The store's folder.
        store: PathBuf,
    },
    /// Opens that store and asks all todos one question.
    AllTodosAsk {
        /// How many todos it holds.
        todos: u32,
        /// Which question.
        at: u64,
        /// Whether its files are taken out of memory first.
        evicted: bool,
        /// The store's folder.
        store: PathBuf,
    },
    /// Appends some messages to that store, between two marks.
    ClimbAppends {
        /// The step.
        rung: Rung,
        /// The store's folder.
        store: PathBuf,
        /// The folder for the marks.
        marks: PathBuf,
    },
}

impl Part {
    /// Runs the part, in this process.
    ///
    /// # Errors
    /// When the workload is none, a folder cannot be used, or the memory fails.
    pub fn run(&self) -> Result<Value, BenchError> {
        match self {
            Self::Contest { workload, store } => {
                value(&contest::measure(&Workload::read(workload)?, store)?)
            }
            Self::ContestOpen { workload, store } => {
                value(&contest::open(&Workload::read(workload)?, store)?)
            }
            Self::ContestAdds { workload, store, marks } => {
                value(&contest::adds(&Workload::read(workload)?, store, marks)?)
            }
            Self::Climb { rung, store } => value(&ladder::measure(*rung, store)?),
            Self::ClimbOpen { rung, store } => value(&ladder::open(*rung, store)?),
            Self::AllTodos { todos, store } => value(&all_todos::measure(*todos, store)?),
            Self::AllTodosAsk { todos, at, evicted, store } => {
                value(&all_todos::ask(*todos, *at, *evicted, store)?)
            }
            Self::ClimbAppends { rung, store, marks } => {
                value(&ladder::appends(*rung, store, marks)?)
            }
        }
    }
}

fn value<T: Serialize>(result: &T) -> Result<Value, BenchError> {
    serde_json::to_value(result)
        .map_err(|error| BenchError::Input(format!("a result could not be written: {error}")))
}

/// What marks are called: the first when counting begins, the second when it ends.
pub(super) const MARKS: [&str; 2] = ["counting-begins", "counting-ends"];

/// Runs `work` between two marks, which whoever traces the process sees.
pub(super) fn between_marks(
    dir: &Path,
    work: impl FnOnce() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let mark = |name: &str| {
        let path = dir.join(name);
        File::create(&path).map(drop).map_err(|source| BenchError::Io {
            what: format!("the mark {} could not be made", path.display()),
            source,
        })
    };
    let [begin, end] = MARKS;
    mark(begin)?;
    work()?;
    mark(end)
}
