//! A part of a measurement that runs in its own process.

use super::contest;
use super::ladder::{self, Rung};
use super::load::{all_todos, churn, payloads, readers, reopening, single_adds};
use super::workload::Workload;
use foldback_bench::BenchError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A part of a measurement that runs in its own process. As JSON it is the last argument of the command
/// that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Fills a store with a workload, searches it, and adds to it.
    Contest {
        /// The workload's folder.
        workload: PathBuf,
        /// The folder for the store.
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
        /// The folder for the store.
        store: PathBuf,
        /// The folder for the marks.
        marks: PathBuf,
    },
    /// Fills a store up to a step of a ladder, searches it, and appends to it.
    Climb {
        /// The step.
        rung: Rung,
        /// The folder for the store.
        store: PathBuf,
    },
    /// Opens that store with nothing of it in memory.
    ClimbOpen {
        /// The step.
        rung: Rung,
        /// The store's folder.
        store: PathBuf,
    },
    /// Fills a store with a number of todos of talk, builds the index over all of them, and searches
    /// it.
    AllTodos {
        /// The number of todos.
        todos: u32,
        /// The store's folder.
        store: PathBuf,
    },
    /// Opens that store and asks all todos one question.
    AllTodosAsk {
        /// The number of todos in it.
        todos: u32,
        /// The number of the question.
        at: u64,
        /// Whether its files are removed from memory first.
        evicted: bool,
        /// The store's folder.
        store: PathBuf,
    },
    /// Creates and forgets todos, day after day.
    Churn {
        /// The number of days.
        days: u32,
        /// The number of todos that are created each day.
        todos_a_day: u32,
        /// The folder for the store.
        store: PathBuf,
    },
    /// Creates a store, and runs readers and writers on it.
    Readers {
        /// The number of threads that search.
        readers: u32,
        /// The number of threads that record.
        writers: u32,
        /// The number of searches of each reader.
        searches: u64,
        /// The store's folder.
        store: PathBuf,
    },
    /// Adds messages one by one, for comparison with a store that is built in bulk.
    SingleAdds {
        /// The number of blocks that both have before.
        blocks: u32,
        /// The number of messages.
        adds: u32,
        /// The folder for both stores.
        store: PathBuf,
    },
    /// Leaves a store with unindexed blocks open.
    Unindexed {
        /// The number of indexed blocks.
        indexed: u32,
        /// The minimum number of unindexed blocks.
        blocks: u32,
        /// The folder for the store.
        store: PathBuf,
    },
    /// Opens that store, and builds its indexes from nothing.
    Reopened {
        /// The store's folder.
        store: PathBuf,
    },
    /// Stores a payload and reads it.
    Payload {
        /// Its size.
        megabytes: u32,
        /// The folder for the store.
        store: PathBuf,
    },
    /// Appends some messages to the store of a ladder, between two marks.
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
    /// When the workload is not valid, a folder cannot be used, or the memory fails.
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
            Self::Churn { days, todos_a_day, store } => {
                value(&churn::measure(*days, *todos_a_day, store)?)
            }
            Self::Readers { readers, writers, searches, store } => {
                value(&readers::measure(*readers, *writers, *searches, store)?)
            }
            Self::SingleAdds { blocks, adds, store } => {
                value(&single_adds::measure(*blocks, *adds, store)?)
            }
            Self::Unindexed { indexed, blocks, store } => {
                value(&reopening::leave(*indexed, *blocks, store)?)
            }
            Self::Reopened { store } => value(&reopening::measure(store)?),
            Self::Payload { megabytes, store } => value(&payloads::measure(*megabytes, store)?),
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

/// The names of the marks: the first when counting begins, the second when it ends.
pub(super) const MARKS: [&str; 2] = ["counting-begins", "counting-ends"];

/// Runs `work` between two marks, which a tracer of the process sees.
pub(super) fn between_marks(
    dir: &Path,
    work: impl FnOnce() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let mark = |name: &str| {
        let path = dir.join(name);
        File::create(&path).map(drop).map_err(|source| BenchError::Io {
            what: format!("the mark {} could not be created", path.display()),
            source,
        })
    };
    let [begin, end] = MARKS;
    mark(begin)?;
    work()?;
    mark(end)
}
