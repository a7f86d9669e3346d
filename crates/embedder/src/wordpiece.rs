//! Splits texts into word pieces, as BERT base uncased does.

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

use crate::vocabulary::Vocabulary;
use crate::word::Word;

/// The tokenizer of BERT base uncased, without the special tokens.
///
/// Control characters are dropped, CJK ideographs are separated, accents are removed, letters are
/// lower-cased, words are cut at white space and at punctuation, and each word is spelt with the
/// longest pieces from left to right. The ids are those of Hugging Face's `tokenizers` for every
/// text, except that a text in which `[SEP]` or another marker is written out is read as the
/// brackets and letters that it is.
///
/// ```
/// let ids = foldback_embedder::WordPiece::new().ids("Café, naïve: 東京!");
/// assert_eq!(ids, [7668, 1010, 15743, 1024, 1879, 1755, 999]);
/// ```
#[derive(Clone, Copy)]
pub struct WordPiece {
    vocabulary: &'static Vocabulary,
}

impl WordPiece {
    /// Returns the tokenizer. The first call in a process builds the vocabulary's index, which
    /// takes about a millisecond.
    #[must_use]
    pub fn new() -> Self {
        Self { vocabulary: Vocabulary::get() }
    }

    /// Returns the ids of the pieces of `text`, in order; 100 for a word that cannot be spelt.
    #[must_use]
    pub fn ids(&self, text: &str) -> Vec<u16> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        self.for_each(text, |id| ids.push(id));
        ids
    }

    /// Passes the id of each piece of `text` to `sink`, in order, without allocating.
    pub fn for_each(&self, text: &str, mut sink: impl FnMut(u16)) {
        let sink = &mut sink;
        let mut word = Word::new();
        let mut rest = text;
        loop {
            // Most text is ASCII, and needs one look at a table for each byte.
            let ascii = rest.bytes().take_while(u8::is_ascii).count();
            for byte in rest.bytes().take(ascii) {
                match ascii_class(byte) {
                    Class::Word => word.push_ascii(byte.to_ascii_lowercase()),
                    Class::Space => word.finish(self.vocabulary, sink),
                    Class::Mark => {
                        word.finish(self.vocabulary, sink);
                        word.push_ascii(byte);
                        word.finish(self.vocabulary, sink);
                    }
                    Class::Dropped => {}
                }
            }
            rest = rest.get(ascii..).unwrap_or_default();
            let Some(first) = rest.chars().next() else { break };
            if is_unified_ideograph(first) {
                word.finish(self.vocabulary, sink);
                word.push(first);
                word.finish(self.vocabulary, sink);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            } else {
                let length = run_length(rest);
                self.read_run(rest.get(..length).unwrap_or_default(), &mut word, sink);
                rest = rest.get(length..).unwrap_or_default();
            }
        }
        word.finish(self.vocabulary, sink);
    }

    /// Reads a run that must be decomposed. The order of the steps is BERT's: clean, separate
    /// ideographs, decompose, drop accents, lower-case, cut.
    fn read_run(&self, run: &str, word: &mut Word, sink: &mut impl FnMut(u16)) {
        run.chars()
            .filter(|&c| !is_dropped(c))
            .map(|c| if c.is_whitespace() { ' ' } else { c })
            .flat_map(|c| {
                let space = is_ideograph(c).then_some(' ');
                space.into_iter().chain([c]).chain(space)
            })
            .nfd()
            .filter(|c| !c.is_mark_nonspacing())
            .flat_map(char::to_lowercase)
            .for_each(|c| {
                if c.is_whitespace() {
                    word.finish(self.vocabulary, sink);
                } else if c.is_ascii_punctuation() || c.is_punctuation() {
                    word.finish(self.vocabulary, sink);
                    word.push(c);
                    word.finish(self.vocabulary, sink);
                } else {
                    word.push(c);
                }
            });
    }
}

impl Default for WordPiece {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for WordPiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WordPiece")
    }
}

enum Class {
    Word,
    Space,
    Mark,
    Dropped,
}

fn ascii_class(byte: u8) -> Class {
    match byte {
        b'\t' | b'\n' | b'\r' | b' ' => Class::Space,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Class::Word,
        b'!'..=b'~' => Class::Mark,
        _ => Class::Dropped,
    }
}

/// Returns where the run ends that begins the text and must be normalised as one. A kept ASCII
/// character and a unified ideograph never decompose, and no accent moves over them; a control
/// character is dropped before accents are ordered, so it does not end a run.
fn run_length(text: &str) -> usize {
    text.find(|c: char| {
        if c.is_ascii() {
            !matches!(ascii_class(c as u8), Class::Dropped)
        } else {
            is_unified_ideograph(c)
        }
    })
    .unwrap_or(text.len())
}

/// Returns whether it is a control, format or private character, but no tab or line end; or the
/// replacement character.
fn is_dropped(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r') && (c == '\u{fffd}' || c.is_other())
}

/// Returns whether a character is separated as a word of its own. The third last range starts 256
/// later than the block it means; that is how the reference has it, and the ids must be the
/// reference's.
fn is_ideograph(c: char) -> bool {
    is_unified_ideograph(c) || matches!(c, '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

/// Returns whether a character is in the part of [`is_ideograph`] that does not decompose.
fn is_unified_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}')
}
