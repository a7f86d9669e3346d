//! `foldback trajectories`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, warn};
use crate::run::{RunFolder, Runs};
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
/// trajectories of all runs are written, oldest first; one that cannot be read is named and skipped, and the exit code
/// is 1. A run that has not ended yet has none.
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
            match run.and_then(|(folder, record)| Ok((self.trajectory(&folder)?, record))) {
                Ok((Some(line), _)) => out.json_bytes(&line)?,
                Ok((None, record)) => {
                    // When all runs are asked for, those without a trajectory are left out.
                    clean &= is_all;
                    let (id, state) = (&record.id, record.state.name());
                    out.note(format_args!("the run {id} is {state}, and has no trajectory yet"));
                }
                // The other runs do not depend on it.
                Err(error) if is_all => {
                    clean = false;
                    warn(globals, format_args!("skipped: {}", error.sentence()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Outcome::clean_if(clean))
    }

    /// The trajectory of a run as it is printed; `None` if it has none yet.
    fn trajectory(&self, folder: &RunFolder) -> Result<Option<Vec<u8>>, CliError> {
        let path = folder.trajectory();
        let failed = |why: String| CliError::Usage(format!("{}: {why}", path.display()));
        match std::fs::read(&path) {
            Ok(lines) => self.printed(lines).map_err(failed).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => {
                let what = format!("{} could not be read", path.display());
                Err(CliError::Io { what, source })
            }
        }
    }

    /// Trajectories as they are printed: as they are, or flat.
    fn printed(&self, nested: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut flat = Vec::new();
        for run in read_trajectories(&*nested) {
            for run in run.map_err(|error| error.to_string())?.flattened() {
                let written = write_trajectory(&run, &mut flat);
                written.map_err(|error| format!("it could not be written: {error}"))?;
            }
        }
        Ok(if self.flat { flat } else { nested })
    }
}
