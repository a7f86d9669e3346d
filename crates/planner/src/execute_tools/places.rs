//! From bytes to lines and columns.

use crate::Position;

/// Finds the places of bytes; those that ascend cost one walk through the text together.
pub(super) struct Places<'a> {
    text: &'a str,
    last: Position,
}

impl<'a> Places<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, last: Position::START }
    }

    /// The place of a byte where a character begins.
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
