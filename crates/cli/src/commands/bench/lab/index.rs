//! `foldback bench index`: how quick the store is, beside others and as it grows.

use super::refuse_stores;
use crate::cli::Globals;
use crate::commands::bench::{Outputs, print};
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::Args;
use foldback_lab::index::{
    ALL_TODOS_NOTE, Again, LADDER_NOTE, Part, all_todos_sheet, all_todos_step, all_todos_steps,
    climb, contest, contest_page, ladder_counts, ladder_page, ladder_sheet, ladder_times, rungs,
};
use serde::Serialize;
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Measure how quick the store is, and how its cost grows
///
/// Climbs two ladders: 10, 100, 1,000 ... blocks in one todo, then as many todos of a few blocks; times
/// beside counts of syncs, files, bytes, descriptors and memory. Stores are made in the folder for
/// temporary files (TMPDIR), which should lie on the disk that is meant. No graph over vectors is
/// built: where a todo has so many that one is due, it takes minutes, and searches scan until then.
///
/// With --all-todos, grows a store of todos of a hundred messages each, in English and in Chinese, from
/// 100 todos to --max, and measures the search over all of them: its index made from nothing, its times
/// warm and from a process of its own, and what it finds of the exact answer.
///
/// With --workload, runs the workload W1 that other stores are measured by: the same files, operations
/// and keys. Vectors are given, so that no embedder is measured. Searches read the blocks that they
/// find.
#[derive(Args)]
pub(crate) struct Index {
    /// Measure the search over all todos
    #[arg(long, conflicts_with = "workload")]
    all_todos: bool,

    /// A folder with a workload: meta.json, blocks.jsonl, vectors.f32, queries.jsonl, qvectors.f32
    #[arg(long, value_name = "DIR", conflicts_with = "max")]
    workload: Option<PathBuf>,

    /// Append the result as a line of JSON, beside those of other stores
    #[arg(long, value_name = "R.jsonl", requires = "workload")]
    out: Option<PathBuf>,

    /// The last step of the ladders
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    max: u32,

    /// A part of the measurement, which has this process to itself
    #[arg(long, value_name = "JSON", hide = true, exclusive = true)]
    part: Option<String>,

    #[command(flatten)]
    outputs: Outputs,
}

impl Index {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        refuse_stores(
            globals,
            "bench index measures stores of its own, with the default engine and embedder",
        )?;
        if let Some(part) = &self.part {
            let part: Part = serde_json::from_str(part)
                .map_err(|error| CliError::Usage(format!("--part {part}: {error}")))?;
            out.json(&part.run()?)?;
            return Ok(Outcome::Done);
        }
        let program = std::env::current_exe().map_err(|source| CliError::Io {
            what: "this program was not found again".to_owned(),
            source,
        })?;
        let again = Again::new(program, ["bench", "index", "--part"]);
        match &self.workload {
            Some(workload) => self.contest(workload, &again, out),
            None if self.all_todos => self.all_todos(&again, out),
            None => self.climb(&again, out),
        }?;
        Ok(Outcome::Done)
    }

    fn contest(&self, workload: &Path, again: &Again, out: &Output) -> Result<(), CliError> {
        let standing = contest(workload, again)?;
        if let Some(path) = &self.out {
            append(path, &standing)?;
        }
        let sheet = standing.sheet();
        self.outputs.write_csv(&sheet)?;
        self.outputs.write_page(|| Ok(contest_page(&standing)))?;
        if out.is_json() { out.json(&standing) } else { print(&sheet, out) }
    }

    fn all_todos(&self, again: &Again, out: &Output) -> Result<(), CliError> {
        let dir = tempfile::tempdir().map_err(|source| CliError::Io {
            what: "a temporary folder could not be made".to_owned(),
            source,
        })?;
        let steps = all_todos_steps(self.max);
        let mut progress = out.progress("growing", steps.len() as u64);
        let mut measured = Vec::with_capacity(steps.len());
        for todos in steps {
            measured.push(all_todos_step(todos, &dir.path().join("store"), again)?);
            progress.advance(1);
        }
        drop(progress);
        let sheet = all_todos_sheet(&measured);
        self.outputs.write_csv(&sheet)?;
        if out.is_json() {
            return out.json(&json!({ "steps": measured }));
        }
        print(&sheet, out)?;
        out.line("")?;
        out.line(ALL_TODOS_NOTE)
    }

    fn climb(&self, again: &Again, out: &Output) -> Result<(), CliError> {
        let rungs = rungs(self.max);
        let mut progress = out.progress("climbing", rungs.len() as u64);
        let mut steps = Vec::with_capacity(rungs.len());
        for rung in rungs {
            steps.push(climb(rung, again)?);
            progress.advance(1);
        }
        drop(progress);
        self.outputs.write_csv(&ladder_sheet(&steps))?;
        self.outputs.write_page(|| ladder_page(&steps))?;
        if out.is_json() {
            return out.json(&json!({ "graph": false, "steps": steps }));
        }
        print(&ladder_times(&steps), out)?;
        print(&ladder_counts(&steps), out)?;
        out.line("")?;
        out.line(LADDER_NOTE)
    }
}

/// Appends a line of JSON to a file.
fn append(path: &Path, line: &impl Serialize) -> Result<(), CliError> {
    let failed =
        |source| CliError::Io { what: format!("{} could not be written", path.display()), source };
    let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
    text.push('\n');
    let mut file = File::options().create(true).append(true).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
