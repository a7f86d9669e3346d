//! A store under load: todos that come and go, readers beside writers, single adds, a killed writer, large
//! payloads, and the search over all todos.

pub(super) mod all_todos;
pub(super) mod churn;
pub(super) mod payloads;
pub(super) mod readers;
pub(super) mod reopening;
pub(super) mod single_adds;

use super::again::Again;
use super::table::{Column, table};
use foldback_bench::report::{Page, Section};
use foldback_bench::{BenchError, Sheet};
use serde::Serialize;
use serde_json::{Value, json};

/// A measurement of a store under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The search over all todos, as their number grows to `max`.
    AllTodos,
    /// A number of simulated days, on each of which `max` todos are created and as many forgotten.
    Churn {
        /// The number of days.
        days: u32,
    },
    /// Up to `max` readers beside writers.
    Readers,
    /// Up to `max` messages that are added one by one, compared with the same store built in bulk.
    SingleAdds,
    /// A store whose process ended with up to `max` unindexed blocks.
    Reopening,
    /// Payloads of up to `max` megabytes.
    Payloads,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The tables; the first has a row for each step.
    pub sheets: Vec<Sheet>,
    /// The same figures, with all digits.
    pub json: Value,
    /// A note on the figures.
    pub note: String,
}

impl Load {
    /// Returns the steps up to `max`, or up to the measurement's own end; none if `max` is below the
    /// first.
    #[must_use]
    pub fn steps(self, max: Option<u32>) -> Vec<u32> {
        let powers = |from: u32, most: u32| {
            let steps = (0..6).map(move |power| from.saturating_mul(10_u32.pow(power)));
            steps.filter(|step| *step <= max.unwrap_or(most)).collect()
        };
        let those = |steps: &[u32]| {
            steps.iter().copied().filter(|step| max.is_none_or(|max| *step <= max)).collect()
        };
        match self {
            Self::AllTodos | Self::Reopening => powers(100, 10_000),
            Self::Payloads => powers(1, 1_000),
            Self::Churn { .. } => vec![max.unwrap_or(churn::TODOS_A_DAY)],
            Self::Readers => those(&readers::READERS),
            Self::SingleAdds => those(&single_adds::ADDS),
        }
    }

    /// Measures the steps, in separate stores in the system's folder for temporary files; `told` is
    /// called after each.
    ///
    /// # Errors
    /// When no store can be created there, or the memory fails.
    pub fn measure(
        self,
        steps: &[u32],
        again: &Again,
        told: impl FnMut(),
    ) -> Result<Measured, BenchError> {
        let dir = tempfile::tempdir().map_err(|source| BenchError::Io {
            what: "no store could be created in the folder for temporary files".to_owned(),
            source,
        })?;
        let store = dir.path();
        match self {
            Self::AllTodos => {
                let rows = each(steps, told, |step| all_todos::step(step, store, again))?;
                Ok(Measured::of(all_todos::TITLE, &all_todos::COLUMNS, &rows, all_todos::NOTE))
            }
            Self::Churn { days } => {
                let rows = each(steps, told, |step| churn::step(days, step, store, again))?;
                Ok(churn::measured(&rows))
            }
            Self::Readers => {
                let rows = each(steps, told, |step| readers::step(step, store, again))?;
                Ok(Measured::of(readers::TITLE, &readers::COLUMNS, &rows.concat(), readers::NOTE))
            }
            Self::SingleAdds => {
                let rows = each(steps, told, |step| single_adds::step(step, store, again))?;
                Ok(Measured::of(
                    single_adds::TITLE,
                    &single_adds::COLUMNS,
                    &rows,
                    single_adds::NOTE,
                ))
            }
            Self::Reopening => {
                let rows = each(steps, told, |step| reopening::step(step, store, again))?;
                Ok(Measured::of(reopening::TITLE, &reopening::COLUMNS, &rows, reopening::NOTE))
            }
            Self::Payloads => {
                let rows = each(steps, told, |step| payloads::step(step, store, again))?;
                Ok(Measured::of(payloads::TITLE, &payloads::COLUMNS, &rows, payloads::NOTE))
            }
        }
    }
}

/// Runs the steps one after the other.
fn each<T>(
    steps: &[u32],
    mut told: impl FnMut(),
    take: impl Fn(u32) -> Result<T, BenchError>,
) -> Result<Vec<T>, BenchError> {
    let take = |step: &u32| take(*step).inspect(|_| told());
    steps.iter().map(take).collect()
}

/// Returns the error for a failed part of the memory.
fn failed(error: impl Into<foldback::Error>) -> BenchError {
    BenchError::Memory(error.into())
}

impl Measured {
    fn of<T: Serialize>(title: &str, columns: &[Column<T>], steps: &[T], note: &str) -> Self {
        let sheets = vec![table(title, &[columns], steps)];
        Self { sheets, json: json!({ "steps": steps }), note: note.to_owned() }
    }

    /// Returns the tables as a page.
    #[must_use]
    pub fn page(&self) -> Page {
        let title = self.sheets.first().map_or("Load", |sheet| &sheet.title);
        let mut page = Page::new(title, "The times, sizes and rates of a store under load.");
        let section = Section::new("Figures").note(&self.note);
        page.section(self.sheets.iter().fold(section, Section::sheet));
        page
    }
}
