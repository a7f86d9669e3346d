//! A table of results: printed by a command, or written as CSV.

use crate::BenchError;
use foldback_core::thousands;

/// Returns a number with what it counts: `1 conversation`, `1,234 conversations`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(n))
}

/// A table with a title. Every row has a cell for each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// What the table shows, in a few words.
    pub title: String,
    /// The column headings; those after the first `names` are for numbers.
    pub columns: Vec<String>,
    /// The number of leading columns that hold names.
    pub names: usize,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Returns a table without rows.
    #[must_use]
    pub fn new(title: &str, names: &[&str], numbers: &[&str]) -> Self {
        let columns = names.iter().chain(numbers).map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), columns, names: names.len(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the table as CSV, headings first.
    ///
    /// # Errors
    /// When the number of cells in a row differs from the number of columns.
    pub fn csv(&self) -> Result<Vec<u8>, BenchError> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        writer.into_inner().map_err(|error| BenchError::Csv(error.into_error().into()))
    }
}

/// Returns the name of a file as tables show it: the last part of its path, without its extensions.
pub(crate) fn short_name(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.strip_suffix(".zst").unwrap_or(name);
    name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json")).unwrap_or(name)
}
