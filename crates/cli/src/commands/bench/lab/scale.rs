//! `foldback bench scale`: what stores in a database cost as they grow, and what a second node adds.

use crate::cli::Globals;
use crate::commands::bench::{Outputs, print};
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::Args;
use foldback_kv::{Engine, Truth};
use foldback_lab::index::{Again, BLOCKS_EACH, Scale as Measurement, Task};
use std::ffi::OsString;

/// Measure stores in a database: as they grow, and with two nodes
///
/// Needs --engine postgres, and a role that may create schemas: each store is in a schema of its own, foldback_bench_...,
/// which is removed at the end; after a killed run, drop it. Climbs two ladders, of blocks in one todo and of todos of a few blocks, and reports at
/// each step the times of an append, beside a commit of the server's own, and of a search; opening and the first search
/// of a node with an empty folder; the bytes of each table; files and connections of a node. Below are the slopes of
/// what grows.
///
/// With --nodes, measures one process beside two on the same server, with 1, 2, 4 ... threads each: appends and searches
/// per second, the cores in use, and what the server waits for. Where the server is on this machine, let --node-command
/// limit the processors of a node: two nodes can only do more than one while the machine has room for them.
#[derive(Args)]
pub(crate) struct Scale {
    /// Measure one node beside two, with up to this many threads each
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=64),
          conflicts_with_all = ["blocks", "todos", "blocks_each"])]
    nodes: Option<u32>,

    /// How long the nodes of each step work, in seconds
    #[arg(long, value_name = "N", requires = "nodes", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=3_600))]
    seconds: u32,

    /// Start each process through this command, which runs its arguments: one that limits their processors, for example,
    /// so that a node is smaller than the machine of the server
    #[arg(long, value_name = "COMMAND", requires = "nodes")]
    node_command: Option<String>,

    /// The number of blocks of one todo in the last step of the first ladder; 0 for no such ladder
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    blocks: u32,

    /// The number of todos in the last step of the second ladder; 0 for no such ladder
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    todos: u32,

    /// The number of blocks of each todo in the second ladder
    #[arg(long, value_name = "N", default_value_t = BLOCKS_EACH, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    blocks_each: u32,

    /// What one node does, in a process of its own
    #[arg(long, value_name = "JSON", hide = true)]
    part: Option<String>,

    #[command(flatten)]
    outputs: Outputs,
}

impl Scale {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if globals.store.is_some() || globals.engine() != Engine::Postgres {
            let what = "bench scale measures stores of its own in a database: give --engine postgres, and no --store";
            return Err(CliError::Usage(what.to_owned()));
        }
        if globals.tenant().is_some() {
            let what = "bench scale measures stores of no tenant: give no --tenant, and unset FOLDBACK_TENANT";
            return Err(CliError::Usage(what.to_owned()));
        }
        let Truth::Server(server) = globals.truth()? else { return Ok(Outcome::Done) };
        if let Some(part) = &self.part {
            let task: Task = serde_json::from_str(part)
                .map_err(|error| CliError::Usage(format!("--part {part}: {error}")))?;
            out.json(&task.run(&server)?)?;
            return Ok(Outcome::Done);
        }
        let program = std::env::current_exe().map_err(|source| CliError::Io {
            what: "the path of this program could not be determined".to_owned(),
            source,
        })?;
        let around = self.node_command.iter().flat_map(|command| command.split_whitespace());
        let mut words: Vec<OsString> = around.map(OsString::from).collect();
        words.push(program.into());
        words.extend(["--engine", "postgres", "bench", "scale", "--part"].map(OsString::from));
        let again =
            Again::new(words.remove(0), words).with_env("FOLDBACK_POSTGRES_URL", server.url());
        let measurement = match self.nodes {
            Some(threads) => Measurement::Nodes { threads, seconds: self.seconds },
            None => {
                let Self { blocks, todos, blocks_each, .. } = self;
                Measurement::Growth { blocks, todos, blocks_each }
            }
        };
        let measured = measurement.measure(&server, &again, |line| out.note(line))?;
        measured.sheets.first().map_or(Ok(()), |sheet| self.outputs.write_csv(sheet))?;
        self.outputs.write_page(|| Ok(measured.page()))?;
        if out.is_json() {
            out.json(&measured.json)?;
            return Ok(Outcome::Done);
        }
        measured.sheets.iter().try_for_each(|sheet| print(sheet, out))?;
        out.line("")?;
        out.line(&measured.note)?;
        Ok(Outcome::Done)
    }
}
