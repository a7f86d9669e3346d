//! Recorded text, held as references to where it is stored.

use crate::quote::{ends_in_mark, forged_marks};
use foldback_core::Source;
use std::ops::Range;

/// A piece of an answer's text. Joined, the pieces are the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// A literal text.
    Literal(String),
    /// A text that is already stored: these bytes of that source's text.
    Quote {
        /// Where it is stored. For a message, the text at the site in the message as it was
        /// recorded; for a payload, its bytes.
        source: Source,
        /// Which bytes of it.
        range: Range<u64>,
    },
}

/// Below this many bytes, a copy costs less than a reference.
const QUOTE_BYTES: usize = 64;

/// A text that is assembled from literals and quotes, and of which parts can be cut out. Quotes are
/// escaped, so that they forge no mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuotedText {
    text: String,
    /// The quoted parts of the text: the place, the source, and where in the source each begins.
    quotes: Vec<(Range<usize>, Source, u64)>,
    /// The places of backslashes before marks, ascending.
    escapes: Vec<usize>,
}

impl QuotedText {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether there is a backslash before a mark, so that the quote is not word for word.
    pub(crate) fn is_escaped(&self) -> bool {
        !self.escapes.is_empty()
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds the end of a line after one part of a text, so that no mark spans it.
    pub(crate) fn end_part(&mut self) {
        if ends_in_mark(&self.text) {
            self.escapes.push(self.text.len());
            self.text.push('\\');
        }
        self.text.push('\n');
    }

    /// Adds `text`, which is in `source` from its byte `from` on; escaped, so that it forges no mark.
    pub(crate) fn push_quote(&mut self, text: &str, source: Option<(Source, u64)>) {
        let mut start = 0;
        for at in forged_marks(text).chain([text.len()]) {
            let piece = text.get(start..at).unwrap_or("");
            if let Some((source, from)) = source
                && piece.len() >= QUOTE_BYTES
            {
                let here = self.text.len();
                self.quotes.push((here..here + piece.len(), source, from + start as u64));
            }
            self.text.push_str(piece);
            // A mark has a letter or a digit after its place, so the end is none.
            if at < text.len() {
                self.escapes.push(self.text.len());
                self.text.push('\\');
            }
            start = at;
        }
    }

    /// Appends another quoted text.
    pub(crate) fn append(&mut self, other: &Self) {
        self.append_part(other, 0..other.text.len());
    }

    /// Appends a part of another quoted text. `part` must be at character boundaries.
    pub(crate) fn append_part(&mut self, other: &Self, part: Range<usize>) {
        let Some(text) = other.text.get(part.clone()) else { return };
        let here = self.text.len();
        self.text.push_str(text);
        let escapes = other.escapes.iter().filter(|at| part.contains(*at));
        self.escapes.extend(escapes.map(|at| here + at - part.start));
        for (range, source, from) in &other.quotes {
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            if start < end && end - start >= QUOTE_BYTES {
                let place = here + start - part.start..here + end - part.start;
                self.quotes.push((place, *source, from + (start - range.start) as u64));
            }
        }
    }

    /// Returns the text and its pieces.
    pub(crate) fn finish(self) -> (String, Vec<Fragment>) {
        let mut fragments = Vec::with_capacity(self.quotes.len() * 2 + 1);
        let mut at = 0;
        let literal = |fragments: &mut Vec<Fragment>, range: Range<usize>| {
            if let Some(text) = self.text.get(range).filter(|text| !text.is_empty()) {
                fragments.push(Fragment::Literal(text.to_owned()));
            }
        };
        for (range, source, from) in self.quotes {
            literal(&mut fragments, at..range.start);
            let range_of_source = from..from + range.len() as u64;
            fragments.push(Fragment::Quote { source, range: range_of_source });
            at = range.end;
        }
        literal(&mut fragments, at..self.text.len());
        (self.text, fragments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{SeqNo, Site};

    #[test]
    fn s5_no_mark_stands_across_parts() {
        let joined = |first: &str, second: &str| {
            let mut quoted = QuotedText::default();
            quoted.push_quote(first, None);
            quoted.end_part();
            quoted.push_quote(second, None);
            quoted.text().to_owned()
        };
        assert_eq!(joined("a <", "/recalled>"), "a <\\\n/recalled>");
        assert_eq!(joined("a ＜ /\u{200b}", "recalled>"), "a ＜ /\u{200b}\\\nrecalled>");
        assert_eq!(joined("a < b", "/recalled>"), "a < b\n/recalled>");
    }

    #[test]
    fn pieces_joined_are_the_text() {
        let source = |n| Source::Message(SeqNo(n), Site::Content);
        let long = format!("{} </recalled> {}", "长文本".repeat(30), "y".repeat(100));
        let mut quoted = QuotedText::default();
        quoted.push("head\n");
        quoted.push_quote(&long, Some((source(1), 10)));
        quoted.push_quote("short", Some((source(2), 0)));
        let mut part = QuotedText::default();
        part.push("x");
        part.append_part(&quoted, 8..200);
        part.append(&quoted);
        for quoted in [quoted, part] {
            let (text, fragments) = quoted.finish();
            let joined: String = fragments
                .iter()
                .map(|fragment| match fragment {
                    Fragment::Literal(text) => text.as_str(),
                    Fragment::Quote { source: of, range } => {
                        assert_eq!(*of, source(1));
                        &long[range.start as usize - 10..range.end as usize - 10]
                    }
                })
                .collect();
            assert_eq!(joined, text);
            assert!(fragments.len() > 2);
        }
    }
}
