//! Tables that fit the terminal.

use super::{Output, text};
use crate::error::CliError;
use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width,
    presets,
};

/// A table without lines: a bold head, columns two spaces apart, numbers on the right. Long texts
/// wrap inside their column; names are not broken while there is room for them. In a pipe no word of a name is broken: if
/// one has no room, each row is one line.
pub(crate) struct Table<'a> {
    grid: Grid,
    columns: Vec<Column<'a>>,
    /// The columns that the longest word of a name takes.
    longest_word: usize,
}

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column<'a> {
    /// A name: as wide as it needs.
    Name(&'a str),
    /// A number: as wide as it needs, on the right.
    Number(&'a str),
    /// A text, which takes the width that the others leave.
    Text(&'a str),
}

impl<'a> Column<'a> {
    fn title(self) -> &'a str {
        match self {
            Self::Name(title) | Self::Number(title) | Self::Text(title) => title,
        }
    }
}

/// A longer name is cut, so that one of 128 characters leaves room for the rest.
const NAME_WIDTH: u16 = 40;

impl<'a> Table<'a> {
    pub(crate) fn new(out: &Output, columns: &[Column<'a>]) -> Self {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        grid.force_no_tty().enforce_styling().style_text_only();
        grid.set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(out.width()).unwrap_or(u16::MAX));
        if columns.iter().any(|column| !column.title().is_empty()) {
            let head = columns
                .iter()
                .map(|column| Cell::new(column.title()).add_attribute(Attribute::Bold));
            grid.set_header(head.collect::<Vec<_>>());
        }
        Self { grid, columns: columns.to_vec(), longest_word: 0 }
    }

    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> =
            cells.into_iter().map(|cell| text::plain(cell.as_ref()).into_owned()).collect();
        for (column, cell) in self.columns.iter().zip(&cells) {
            if matches!(column, Column::Name(_)) {
                let words = cell.split_whitespace().map(text::columns);
                self.longest_word = words.fold(self.longest_word, usize::max);
            }
        }
        self.grid.add_row(cells.into_iter().map(Cell::new_owned).collect::<Vec<_>>());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// Prints the table, each line without trailing spaces.
    pub(crate) fn print(mut self, out: &Output) -> Result<(), CliError> {
        let names = self.columns.iter().filter(|column| matches!(column, Column::Name(_))).count();
        // Several long names share the available width.
        let most = u16::try_from(out.width() / (names + 1)).unwrap_or(NAME_WIDTH).max(16);
        let most = most.max(NAME_WIDTH.min(most * 2));
        let is_in_lines = !out.is_bounded() && self.longest_word > usize::from(most);
        if is_in_lines {
            self.grid.set_content_arrangement(ContentArrangement::Disabled);
        }
        let last = self.columns.len().saturating_sub(1);
        for (index, column) in self.columns.iter().enumerate() {
            let Some(grid) = self.grid.column_mut(index) else { continue };
            grid.set_padding((0, if index == last { 0 } else { 2 }));
            match column {
                Column::Name(_) if !is_in_lines => {
                    grid.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(most + 2)));
                }
                Column::Number(_) => {
                    grid.set_cell_alignment(CellAlignment::Right);
                    grid.set_constraint(ColumnConstraint::ContentWidth);
                }
                Column::Name(_) | Column::Text(_) => {}
            }
        }
        for line in self.grid.lines() {
            out.line(line.trim_end())?;
        }
        Ok(())
    }
}
