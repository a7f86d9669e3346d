//! Stores in a database: how their cost grows, and what a second node adds.
//!
//! Each store has a schema of its own, which is removed when it has been measured. All that a node does happens in a
//! process of its own ([`Task`]), with a folder of its own.

mod climb;
mod nodes;
mod schema;
mod step;

use super::again::Again;
use super::ladder::Rung;
use super::load::Measured;
use foldback_bench::BenchError;
use foldback_kv::Server;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

pub use nodes::NodeLoad;

/// A measurement of stores in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Two ladders: up to this many blocks in one todo, and up to this many todos of a few blocks each.
    Growth {
        /// The number of blocks at the top of the first ladder, at least 10.
        blocks: u32,
        /// The number of todos at the top of the second, at least 10.
        todos: u32,
        /// The number of blocks in each of these todos.
        blocks_each: u32,
    },
    /// One node beside two, with 1, 2, 4 ... threads on each.
    Nodes {
        /// The number of threads of a node in the last step.
        threads: u32,
        /// How long the nodes of each step work.
        seconds: u32,
    },
}

impl Scale {
    /// Measures on the database at `server`; `told` is called with a line on each step when it is done.
    ///
    /// # Errors
    /// When the database cannot be used, its role may create no schema, or the memory fails.
    pub fn measure(
        self,
        server: &Server,
        again: &Again,
        mut told: impl FnMut(&str),
    ) -> Result<Measured, BenchError> {
        match self {
            Self::Growth { blocks, todos, blocks_each } => {
                let powers = |most: u32| {
                    (1..10).map(|power| 10_u32.pow(power)).take_while(move |step| *step <= most)
                };
                let blocks = powers(blocks).map(|blocks_each| Rung { todos: 1, blocks_each });
                let todos = powers(todos).map(|todos| Rung { todos, blocks_each });
                let mut steps = Vec::new();
                for rung in blocks.chain(todos) {
                    let step = climb::climb(rung, server, again)?;
                    told(&step.line());
                    steps.push(step);
                }
                Ok(step::measured(&steps))
            }
            Self::Nodes { threads, seconds } => {
                nodes::measure(threads, seconds, server, again, told)
            }
        }
    }
}

/// What a node does in a process of its own. As JSON it is the last argument of the command that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Fills the store in a schema.
    Fill {
        /// How many todos and blocks.
        rung: Rung,
        /// The schema.
        schema: String,
        /// The node's folder.
        store: PathBuf,
    },
    /// Searches it and appends to it.
    Use {
        /// How many todos and blocks it has.
        rung: Rung,
        /// The schema.
        schema: String,
        /// The node's folder.
        store: PathBuf,
    },
    /// Opens it with an empty folder and searches it.
    Cold {
        /// How many todos and blocks it has.
        rung: Rung,
        /// The schema.
        schema: String,
        /// The node's folder.
        store: PathBuf,
    },
    /// Appends or searches with several threads for some seconds.
    Work {
        /// The number of the node, from 0.
        node: u32,
        /// What it does.
        load: NodeLoad,
        /// The schema.
        schema: String,
        /// The node's folder.
        store: PathBuf,
    },
}

impl Task {
    /// Does it, in this process, on the database at `server`.
    ///
    /// # Errors
    /// When the database cannot be used or the memory fails.
    pub fn run(&self, server: &Server) -> Result<Value, BenchError> {
        let result = match self {
            Self::Fill { rung, schema, store } => {
                serde_json::to_value(climb::fill(*rung, &server.in_schema(schema), store)?)
            }
            Self::Use { rung, schema, store } => {
                serde_json::to_value(climb::work(*rung, &server.in_schema(schema), store)?)
            }
            Self::Cold { rung, schema, store } => {
                serde_json::to_value(climb::cold(*rung, &server.in_schema(schema), store)?)
            }
            Self::Work { node, load, schema, store } => {
                serde_json::to_value(nodes::work(*node, *load, &server.in_schema(schema), store)?)
            }
        };
        result.map_err(|error| BenchError::Input(format!("a result cannot be written: {error}")))
    }
}
