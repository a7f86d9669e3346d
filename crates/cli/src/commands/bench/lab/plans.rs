//! `foldback bench plans`.

use super::refuse_stores;
use crate::cli::Globals;
use crate::commands::bench::{Outputs, print};
use crate::error::{CliError, Outcome};
use crate::outfile;
use crate::output::Output;
use clap::Args;
use foldback_lab::plans::{Config, Dags, LeftOut, PeerRun, Recorded, measure};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Measure how plans run, and what a single plan saves over working step by step
///
/// Each recorded plan is written in OnePlan JSON and, if possible, in <execute_tools>; it is read
/// back, checked, and run by the real executor with stand-ins for the plan's tools: each knows the
/// arguments that it has to receive. With a simulated clock, the makespan is compared with the
/// critical path. The agent's loop and a single plan are run with scripted models that know the
/// right calls, for model calls of 0.5, 1, 2 and 4 times a tool's time. Mistakes are introduced
/// into the plans, and their outcomes counted. In wall-clock time, the executor's own overhead is
/// measured.
///
/// Without a FILE, all of this is done only with plans generated from a seed.
#[derive(Args)]
#[command(after_long_help = "\
FILE: plans of NESTFUL (gold_calls with references such as $var1.path$), turns of BFCL's
conversations (gold calls as text; they change a state, so each waits for the one before it), tasks
of LLMCompiler's sets (no plan is given: as many searches as ParallelQA names branches, and one
calculation that waits for them; tasks that name no branches are skipped and counted).

JSON: {\"plans\", \"steps\", \"makespan_over_critical_path\" (of the plan that lost most),
\"llm_calls_react\", \"llm_calls_one_plan\", \"tokens_react\", \"tokens_one_plan\", \"speedup\" (if a
model call takes as long as a tool's)} over the recorded plans, or over the generated ones if there
are none; \"sets\", \"overhead\", \"tokens_by_calls\", \"streaming\", \"mutations\", \"placeholders\",
\"peer\", \"left_out\".

Compared with another scheduler:
  foldback bench plans --dags dags.json plans/
  python3 crates/lab/peers/llmcompiler.py CHECKOUT dags.json llmcompiler.json
  foldback bench plans --peer llmcompiler.json plans/")]
pub(crate) struct Plans {
    /// Files of plans, plain or .zst, folders of such files, or - for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The size of the largest generated plans, in steps
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max: u32,

    /// The seed for generated plans, tool times and mistakes
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,

    /// Write plans for another scheduler, and measure nothing
    #[arg(long, value_name = "DAGS.json", conflicts_with_all = ["peer", "csv", "report"])]
    dags: Option<PathBuf>,

    /// Compare with the figures of another scheduler: what crates/lab/peers/llmcompiler.py wrote
    /// for the plans of --dags with the same FILEs and seed
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,

    #[command(flatten)]
    outputs: Outputs,
}

impl Plans {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        refuse_stores(globals, "bench plans uses no store and no embedder")?;
        let mut recorded = Recorded::default();
        for path in &self.files {
            match path.as_os_str() == "-" {
                true => recorded.add("standard input", std::io::stdin())?,
                false => recorded.add_path(path)?,
            }
        }
        let LeftOut { without_plan, without_calls } = recorded.left_out;
        for (count, what) in [
            (without_plan, "tasks name neither a plan nor branches"),
            (without_calls, "turns or plans have no call"),
        ] {
            if count > 0 {
                out.note(format!("{count} {what}; skipped"));
            }
        }
        if let Some(path) = &self.dags {
            let dags = Dags::of(&recorded.plans, self.seed);
            write_json(path, &dags)?;
            if out.is_json() {
                out.json(&serde_json::json!({ "dags": dags.dags.len() }))?;
            }
            return Ok(Outcome::Done);
        }
        let peer = self.peer.as_deref().map(read_peer).transpose()?;
        let config = Config { seed: self.seed, most: self.max as usize, peer };
        let found = measure(&recorded, &config)?;
        self.outputs.write_csv(&found.sheet_of_each())?;
        self.outputs.write_page(|| found.page())?;
        if out.is_json() {
            out.json(&found)?;
        } else {
            found.sheets().iter().try_for_each(|sheet| print(sheet, out))?;
        }
        Ok(Outcome::Done)
    }
}

fn read_peer(path: &Path) -> Result<PeerRun, CliError> {
    let failed =
        |source| CliError::Io { what: format!("{} could not be read", path.display()), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| {
        CliError::Usage(format!(
            "{}: {error}; expected the output of crates/lab/peers/llmcompiler.py",
            path.display()
        ))
    })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), CliError> {
    let failed =
        |source| CliError::Io { what: format!("{} could not be written", path.display()), source };
    let mut text = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    outfile::write(path, |file| file.write_all(&text).map_err(failed))
}
