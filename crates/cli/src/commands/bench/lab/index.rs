//! `foldback bench index`: how fast the store is, compared with others and as it grows.

use super::refuse_stores;
use crate::cli::Globals;
use crate::commands::bench::{Outputs, print};
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::Args;
use foldback_lab::index::{
    Again, LADDER_NOTE, Load, Part, climb, contest, contest_page, growth, growth_sheet,
    ladder_counts, ladder_page, ladder_sheet, ladder_times, rungs,
};
use serde::Serialize;
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Measure how fast the store is, and how its cost grows
///
/// Climbs two ladders: 10, 100, 1,000 ... blocks in one todo, then as many todos of a few blocks; reports times and
/// counts of syncs, files, bytes, descriptors and memory. Stores are created in the folder for temporary files
/// (TMPDIR), which should be on the disk to be measured. No graph over vectors is built: for a todo large enough to
/// need one, that takes minutes, and searches scan until then.
///
/// Below the figures are the slopes of what grows with blocks and with todos, with 95 % bounds.
///
/// With --churn DAYS, simulates that many days, on each of which --max todos (1,000) are created, as many forgotten,
/// and the store compacted: files, bytes and memory at each day's end, their slopes, and a check of the whole store.
///
/// With --readers, up to --max (16) readers search alongside 0, 1 and 4 writers. With --single-adds, up to --max
/// (10,000) messages are added one by one, and searches in the todo are compared with one that was built in bulk. With
/// --reopen, a process ends with up to --max (10,000) blocks that no index holds, and the next one opens its store.
/// With --large-payloads, payloads of up to --max (1,000) megabytes are stored and read.
///
/// With --all-todos, grows a store of todos of a hundred messages each, in English and in Chinese, from 100 todos to
/// --max, and measures the search over all of them: building its index from scratch, its times warm and from a separate
/// process, and its recall against the exact answer.
///
/// With --workload, runs the workload W1 that other stores are measured with: the same files, operations and keys.
/// Vectors are given, so that no embedder is measured. Searches read the blocks that they find.
#[derive(Args)]
pub(crate) struct Index {
    /// Measure the search over all todos
    #[arg(long, group = "load", conflicts_with = "workload")]
    all_todos: bool,

    /// Measure what todos leave behind that come and go over this many days
    #[arg(long, value_name = "DAYS", group = "load", conflicts_with = "workload",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    churn: Option<u32>,

    /// Measure searches alongside writers
    #[arg(long, group = "load", conflicts_with = "workload")]
    readers: bool,

    /// Measure searches after messages were added one by one
    #[arg(long, group = "load", conflicts_with = "workload")]
    single_adds: bool,

    /// Measure opening a store whose process was killed
    #[arg(long, group = "load", conflicts_with = "workload")]
    reopen: bool,

    /// Measure storing and reading large payloads
    #[arg(long, group = "load", conflicts_with = "workload")]
    large_payloads: bool,

    /// A folder with a workload: meta.json, blocks.jsonl, vectors.f32, queries.jsonl, qvectors.f32
    #[arg(long, value_name = "DIR", conflicts_with = "max")]
    workload: Option<PathBuf>,

    /// Append the result as a line of JSON, beside those of other stores
    #[arg(long, value_name = "R.jsonl", requires = "workload")]
    out: Option<PathBuf>,

    /// The size of the last step; 10,000 for the ladders
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max: Option<u32>,

    /// One part of the measurement, which runs in a process of its own
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
            what: "the path of this program could not be determined".to_owned(),
            source,
        })?;
        let again = Again::new(program, ["bench", "index", "--part"]);
        match (&self.workload, self.load()) {
            (Some(workload), _) => self.contest(workload, &again, out),
            (None, Some(load)) => self.under(load, &again, out),
            (None, None) => self.climb(&again, out),
        }?;
        Ok(Outcome::Done)
    }

    fn load(&self) -> Option<Load> {
        let asked = [
            (self.all_todos, Load::AllTodos),
            (self.readers, Load::Readers),
            (self.single_adds, Load::SingleAdds),
            (self.reopen, Load::Reopening),
            (self.large_payloads, Load::Payloads),
        ];
        let churn = self.churn.map(|days| Load::Churn { days });
        churn.or_else(|| asked.into_iter().find_map(|(is_asked, load)| is_asked.then_some(load)))
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

    fn under(&self, load: Load, again: &Again, out: &Output) -> Result<(), CliError> {
        let steps = self.some_steps(load.steps(self.max))?;
        let mut progress = out.progress("measuring", steps.len() as u64);
        let measured = load.measure(&steps, again, || progress.advance(1))?;
        drop(progress);
        measured.sheets.first().map_or(Ok(()), |sheet| self.outputs.write_csv(sheet))?;
        self.outputs.write_page(|| Ok(measured.page()))?;
        if out.is_json() {
            return out.json(&measured.json);
        }
        measured.sheets.iter().try_for_each(|sheet| print(sheet, out))?;
        out.line("")?;
        out.line(&measured.note)
    }

    /// Refuses a `--max` that leaves no step.
    fn some_steps<T>(&self, steps: Vec<T>) -> Result<Vec<T>, CliError> {
        match self.max {
            Some(max) if steps.is_empty() => {
                Err(CliError::Usage(format!("--max {max} ends before the first step")))
            }
            _ => Ok(steps),
        }
    }

    fn climb(&self, again: &Again, out: &Output) -> Result<(), CliError> {
        let rungs = self.some_steps(rungs(self.max.unwrap_or(10_000)))?;
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
            let slopes = growth(&steps);
            return out.json(&json!({ "graph": false, "steps": steps, "slopes": slopes }));
        }
        print(&ladder_times(&steps), out)?;
        print(&ladder_counts(&steps), out)?;
        print(&growth_sheet(&growth(&steps)), out)?;
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
