//! What a recall tool answers.

use crate::cut::one_line;
use crate::quoted_text::{Fragment, QuotedText};

/// What a tool answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the model reads. Its first line is the note.
    pub text: String,
    /// The same text in pieces, so that a store keeps references instead of bodies: joined, they
    /// are the text.
    pub fragments: Vec<Fragment>,
    /// What was consulted, in one line.
    pub note: String,
    /// Whether the call failed.
    pub is_error: bool,
}

impl Answer {
    /// An answer that says what was wrong and what to do.
    pub(crate) fn error(tool: &str, message: &str) -> Self {
        let mut quoted = QuotedText::default();
        quoted.push(&format!("[{tool}: error] {message}"));
        Self { is_error: true, ..Self::of(quoted) }
    }

    /// The answer of this text, whose first line is the note.
    pub(crate) fn of(quoted: QuotedText) -> Self {
        let (text, fragments) = quoted.finish();
        let note = recall_note(&text);
        Self { text, fragments, note, is_error: false }
    }
}

/// The line that stands for an answer once it is folded: its first.
#[must_use]
pub fn recall_note(text: &str) -> String {
    one_line(text.lines().next().unwrap_or_default(), 300)
}
