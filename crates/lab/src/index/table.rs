//! Tables with one row for each step.

use foldback_bench::Sheet;

/// A column: its head, and what it says of a step.
pub(super) type Column<T> = (&'static str, fn(&T) -> String);

/// A row for each step.
pub(super) fn table<T>(title: &str, columns: &[&[Column<T>]], steps: &[T]) -> Sheet {
    let columns = || columns.iter().copied().flatten();
    let heads: Vec<&str> = columns().map(|(head, _)| *head).collect();
    let mut sheet = Sheet::new(title, &[], &heads);
    for step in steps {
        sheet.row(columns().map(|(_, of)| of(step)));
    }
    sheet
}
