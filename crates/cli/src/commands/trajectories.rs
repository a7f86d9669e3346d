//! `foldback trajectories`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::run::Runs;
use clap::{Args, Subcommand};
use foldback_agent::trajectory::{read_trajectories, write_trajectory};
use foldback_core::TodoId;
use std::io;

/// Export what runs of the agent did, as records for reading, evaluation and training
#[derive(Subcommand)]
pub(crate) enum Trajectories {
    Export(Export),
}

/// Write the trajectories of runs as JSON Lines, one run a line
///
/// The keys are fixed: situation, strategy, plan, calls, results, timing, tokens, rewards, outcome. The work of a
/// sub-agent is a trajectory with the same keys, and rewards and an outcome of its own, within the call that started it
/// (calls[].tool.sub_agents); `calls` and `tokens` of the run are those of its own agent. Without a name, the
/// trajectories of all runs are written, oldest first. A run that has not ended yet has none.
#[derive(Args)]
pub(crate) struct Export {
    /// The runs; `foldback sessions` lists them
    #[arg(value_name = "ID")]
    runs: Vec<TodoId>,

    /// Write a line for each agent instead of nesting: each sub-agent's after the one that started it, with its call in
    /// situation.parent: {"todo", "turn", "step"}
    #[arg(long)]
    flat: bool,
}

impl Trajectories {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self {
            Self::Export(export) => export.run(globals, out),
        }
    }
}

impl Export {
    fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let runs = Runs::of(globals)?;
        let is_all = self.runs.is_empty();
        let found = match is_all {
            true => runs.list()?,
            false => self.runs.iter().map(|id| runs.open(id)).collect(),
        };
        let mut clean = true;
        for run in found {
            let (folder, record) = run?;
            let path = folder.trajectory();
            match std::fs::read(&path) {
                Ok(line) if self.flat => out.json_bytes(&flat(&line)?)?,
                Ok(line) => out.json_bytes(&line)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // When all runs are asked for, those without a trajectory are left out.
                    clean &= is_all;
                    let (id, state) = (&record.id, record.state.name());
                    out.note(format_args!("the run {id} is {state}, and has no trajectory yet"));
                }
                Err(source) => {
                    let what = format!("{} could not be read", path.display());
                    return Err(CliError::Io { what, source });
                }
            }
        }
        Ok(Outcome::clean_if(clean))
    }
}

/// The nested trajectories, a line each.
fn flat(nested: &[u8]) -> Result<Vec<u8>, CliError> {
    let mut lines = Vec::new();
    for run in read_trajectories(nested) {
        let run = run.map_err(|error| CliError::Usage(error.to_string()))?;
        for run in run.flattened() {
            write_trajectory(&run, &mut lines).map_err(|source| CliError::Io {
                what: "a trajectory could not be written".to_owned(),
                source,
            })?;
        }
    }
    Ok(lines)
}
