//! From bytes to lines and columns.

use crate::Position;

/// Finds the line and column of bytes. Ascending offsets cost a single walk through the text
/// altogether.
pub(super) struct Places<'a> {
    text: &'a str,
    last: Position,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: Position::START }
    }

    /// Returns the place of a byte at which a character begins.
    pub(super) fn of(&mut self, at: usize) -> Position {
        if at < self.last.offset {
            self.last = Position::START;
        }
        for c in self.text[self.last.offset..at].chars() {
            self.last.pass(c);
        }
        self.last
    }
}
