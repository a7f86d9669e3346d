//! The model's words on a person's terminal, while it writes them.

use crate::output::text;
use foldback_agent::{CallForm, Purpose, StrategyName};
use foldback_deep_search::DeepSearch;
use foldback_flow::Flow;
use std::borrow::Cow;

/// The purposes for which the model's words may be the answer of a run as they are. A deep search processes what its
/// model writes further, and words that contain calls are not for a person.
pub(super) fn spoken(strategy: &StrategyName, form: CallForm) -> Vec<Purpose> {
    match form {
        CallForm::ExecuteTools => Vec::new(),
        _ if *strategy == DeepSearch::NAME => Vec::new(),
        _ if *strategy == Flow::NAME => vec![Flow::SUMMARY],
        _ => vec![Purpose::REACT, Purpose::ANSWER],
    }
}

/// The model's words on a person's terminal.
#[derive(Default)]
pub(super) struct Speech {
    /// The last text, as it came.
    text: String,
    /// How much of it is written; white space waits for what follows it.
    written: usize,
    /// Whether the text may continue: its line is not ended.
    pub(super) is_open: bool,
    /// The purpose of the last text.
    of: Option<Purpose>,
    /// Whether it was a message without calls.
    is_answer: bool,
}

impl Speech {
    /// Takes more of the text, and returns what is to be written now, if anything. A text that has ended is replaced by
    /// the next.
    pub(super) fn more(&mut self, purpose: &Purpose, piece: &str) -> Option<Cow<'_, str>> {
        if !self.is_open && self.written > 0 {
            *self = Self::default();
        }
        self.text.push_str(piece);
        let seen = piece.trim_end();
        if seen.is_empty() {
            return None;
        }
        if !std::mem::replace(&mut self.is_open, true) {
            self.of = Some(purpose.clone());
        }
        let from = self.written;
        self.written = self.text.len() - (piece.len() - seen.len());
        Some(text::plain(&self.text[from..self.written]))
    }

    /// Whether a text for this purpose replaces the last one: there is one answer, and another only if the first could
    /// not be used.
    pub(super) fn is_anew(&self, purpose: &Purpose) -> bool {
        !self.is_open && self.is_answer && self.of.as_ref() == Some(purpose)
    }

    /// Ends the text. Returns true if there was one.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(&mut self.is_open)
    }

    /// Notes that the message for this purpose is complete, with or without calls.
    pub(super) fn answered(&mut self, purpose: &Purpose, has_calls: bool) {
        if self.of.as_ref() == Some(purpose) {
            self.is_answer = !has_calls;
        }
    }

    /// Whether the last text is this one and is complete on the terminal.
    pub(super) fn is(&self, text: &str) -> bool {
        self.written > 0 && !self.is_open && self.text.trim() == text.trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(speech: &mut Speech, pieces: &[&str]) -> String {
        pieces
            .iter()
            .filter_map(|piece| speech.more(&Purpose::ANSWER, piece).map(Cow::into_owned))
            .collect()
    }

    #[test]
    fn a_text_is_written_as_it_comes_and_once() {
        let mut speech = Speech::default();
        assert!(!speech.is_anew(&Purpose::ANSWER));
        let pieces = ["\n", "It ra", "ins.\r", "\n雨\u{1b}[2J ", " \n", "\n"];
        assert_eq!(said(&mut speech, &pieces), "\nIt rains.\n雨␛[2J");
        assert!(speech.is_open && speech.end() && !speech.end());
        speech.answered(&Purpose::ANSWER, false);
        assert!(speech.is(&pieces.concat()) && speech.is(pieces.concat().trim_end()));
        assert!(!speech.is("It rains."));
        assert!(speech.is_anew(&Purpose::ANSWER) && !speech.is_anew(&Purpose::REACT));
        assert_eq!(said(&mut speech, &["No", "."]), "No.", "another text");
        assert!(speech.end() && speech.is("No."));
        speech.answered(&Purpose::REACT, false);
        speech.answered(&Purpose::ANSWER, true);
        assert!(!speech.is_anew(&Purpose::ANSWER), "calls follow");
    }

    #[test]
    fn what_is_blank_is_no_text() {
        let mut speech = Speech::default();
        assert_eq!(said(&mut speech, &[" ", "\n\n"]), "");
        assert!(!speech.end() && !speech.is(""));
    }
}
