//! Why no plan could be read from a text.

use crate::Position;

/// Why no plan could be read from a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Nothing in the text is a plan.
    #[error("there is no plan in the text; expected {expected}")]
    NoPlan {
        /// What a plan looks like.
        expected: &'static str,
    },
    /// The text breaks the rules of its form.
    #[error("{at}: found {found}, expected {expected}")]
    Syntax {
        /// The position.
        at: Position,
        /// What was found there.
        found: String,
        /// What was expected there.
        expected: String,
    },
    /// The text is truncated.
    #[error("the text is incomplete: it ends at {at}, inside {open}")]
    Truncated {
        /// The end of the text.
        at: Position,
        /// What was open there.
        open: String,
    },
    /// The text is nested too deeply.
    #[error("{at}: nested deeper than {most} levels")]
    TooDeep {
        /// The position at which the limit was exceeded.
        at: Position,
        /// The limit.
        most: usize,
    },
}
