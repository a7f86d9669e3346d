//! Tables with one row for each step.

use foldback_bench::Sheet;

/// A column: its heading, and its value for a step.
pub(super) type Column<T> = (&'static str, fn(&T) -> String);

/// Returns a table with a row for each step.
pub(super) fn table<T>(title: &str, columns: &[&[Column<T>]], steps: &[T]) -> Sheet {
    let columns = || columns.iter().copied().flatten();
    let heads: Vec<&str> = columns().map(|(head, _)| *head).collect();
    let mut sheet = Sheet::new(title, &[], &heads);
    for step in steps {
        sheet.row(columns().map(|(_, of)| of(step)));
    }
    sheet
}
