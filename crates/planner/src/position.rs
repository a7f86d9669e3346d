//! Positions in a text, tracked while walking through it.

use crate::{Findings, Position, StepId};
use std::collections::BTreeMap;
use std::fmt;

impl Position {
    /// Returns the position of the beginning of a text.
    pub const START: Self = Self { offset: 0, line: 1, column: 1 };

    /// Returns the position of a byte; inside a character, the position of that character.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let mut at = Self::START;
        for c in text.chars() {
            if at.offset + c.len_utf8() > offset {
                break;
            }
            at.pass(c);
        }
        at
    }

    /// Advances past one character.
    pub(crate) fn pass(&mut self, c: char) {
        self.offset += c.len_utf8();
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }
}

impl Findings {
    /// Returns the findings, in which those about a step without a position of their own have the
    /// step's position.
    #[must_use]
    pub fn placed(self, places: &BTreeMap<StepId, Position>) -> Self {
        let place = |step: Option<StepId>| places.get(&step?).copied();
        self.into_iter()
            .map(|mut finding| {
                finding.at = finding.at.or_else(|| place(finding.step));
                finding
            })
            .collect()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
