//! `foldback bench`: the measurements, one command each, and what they have in common.

mod gateway;
#[cfg(feature = "lab")]
mod lab;
#[cfg(not(feature = "lab"))]
#[path = "no_lab.rs"]
mod lab;
mod named_settings;
mod retrieval;
mod savings;
mod segmentation;

use super::import::tell_skipped;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::outfile;
use crate::output::Output;
use crate::output::table::{Column, Table};
use crate::sources::Sources;
use clap::{Args, Subcommand};
use foldback_bench::report::Page;
use foldback_bench::{BenchError, Case, Sheet};
use std::path::{Path, PathBuf};

/// The shortest prefix that a provider caches, in tokens, unless a setting says otherwise.
const LEAST_CACHED: u64 = 1_024;

/// Measure what foldback saves, finds and costs, on your own conversations
///
/// The same input gives the same figures, except for times.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    which: Which,
}

#[derive(Subcommand)]
enum Which {
    Savings(savings::Savings),
    Gateway(gateway::Gateway),
    Retrieval(retrieval::Retrieval),
    Segmentation(segmentation::Segmentation),
    #[command(flatten)]
    Lab(lab::Lab),
}

impl Bench {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self.which {
            Which::Savings(savings) => savings.run(globals, out),
            Which::Gateway(gateway) => gateway.run(globals, out),
            Which::Retrieval(retrieval) => retrieval.run(globals, out),
            Which::Segmentation(segmentation) => segmentation.run(globals, out),
            Which::Lab(lab) => lab.run(globals, out),
        }
    }
}

/// The conversations that a measurement is made on.
#[derive(Args)]
pub(crate) struct Inputs {
    /// Files of conversations (see `foldback import --help`), plain or .zst, folders of such files,
    /// or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Report damaged lines and files that hold no conversation, and continue after them
    #[arg(long)]
    lenient: bool,
}

impl Inputs {
    /// All conversations, in the order of the input.
    pub(crate) fn cases(&self, out: &Output) -> Result<Vec<Case>, CliError> {
        let sources = Sources::new(&self.files)?.lenient(self.lenient);
        let survey = sources.survey(out)?;
        tell_skipped(out, &survey)?;
        let mut cases = Vec::new();
        for sourced in survey.conversations() {
            let sourced = sourced?;
            cases.push(Case::new(sourced.id(), sourced.file, sourced.conversation));
        }
        Ok(cases)
    }
}

/// The files for the results, besides stdout.
#[derive(Args)]
pub(crate) struct Outputs {
    /// Write the figures as CSV: a line for each conversation or setting
    #[arg(long, value_name = "OUT.csv")]
    csv: Option<PathBuf>,

    /// Write a page with charts: a self-contained HTML file
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
}

impl Outputs {
    /// Writes the CSV file, if one was asked for.
    pub(crate) fn write_csv(&self, sheet: &Sheet) -> Result<(), CliError> {
        self.csv.as_ref().map_or(Ok(()), |path| write_csv(path, sheet))
    }

    /// Writes the page, if one was asked for.
    pub(crate) fn write_page(
        &self,
        page: impl FnOnce() -> Result<Page, BenchError>,
    ) -> Result<(), CliError> {
        let Some(path) = &self.report else { return Ok(()) };
        write(path, page()?.html().as_bytes())
    }
}

/// Writes a table as CSV.
pub(crate) fn write_csv(path: &Path, sheet: &Sheet) -> Result<(), CliError> {
    write(path, &sheet.csv()?)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let failed =
        |source| CliError::Io { what: format!("{} could not be written", path.display()), source };
    outfile::write(path, |file| file.write_all(bytes).map_err(failed))
}

/// Prints a table with its title.
pub(crate) fn print(sheet: &Sheet, out: &Output) -> Result<(), CliError> {
    out.line("")?;
    out.line(&sheet.title)?;
    let columns: Vec<Column<'_>> = sheet
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| match at < sheet.names {
            true => Column::Name(column),
            false => Column::Number(column),
        })
        .collect();
    let mut table = Table::new(out, &columns);
    for row in &sheet.rows {
        table.row(row);
    }
    table.print(out)
}
