//! Phrases of a language with spaces between its words, matched word by word.

use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// A list of phrases, separated by `/`. In a phrase, `.` asks for one of `. ! , ;` after the word before it, and `?` for
/// a question mark in the tail of the text.
pub(crate) struct Phrases {
    list: &'static str,
    /// The words after the first one, by the first one; built on first use.
    by_first_word: OnceLock<FxHashMap<&'static str, Vec<Vec<&'static str>>>>,
}

impl Phrases {
    pub(crate) const fn of(list: &'static str) -> Self {
        Self { list, by_first_word: OnceLock::new() }
    }

    /// Returns whether one of them occurs anywhere in `words`. `asks`: whether the text has a question mark.
    pub(crate) fn are_in(&self, words: &[Word], asks: bool) -> bool {
        (0..words.len()).any(|at| self.are_at(words, at, asks))
    }

    /// Returns whether `words` begin with one of them.
    pub(crate) fn begin(&self, words: &[Word], asks: bool) -> bool {
        self.are_at(words, 0, asks)
    }

    fn are_at(&self, words: &[Word], at: usize, asks: bool) -> bool {
        let by_first_word = self.by_first_word.get_or_init(|| self.parsed());
        let first = words.get(at).map_or("", |word| word.text.as_str());
        let Some(phrases) = by_first_word.get(first) else { return false };
        phrases.iter().any(|rest| {
            let mut here = at;
            rest.iter().all(|part| match *part {
                "." => words.get(here).is_some_and(|word| word.is_marked),
                "?" => asks,
                part => {
                    here += 1;
                    words.get(here).is_some_and(|word| word.text == part)
                }
            })
        })
    }

    fn parsed(&self) -> FxHashMap<&'static str, Vec<Vec<&'static str>>> {
        let mut by_first_word: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for phrase in self.list.split('/') {
            let mut words = phrase.split_whitespace();
            if let Some(first) = words.next() {
                by_first_word.entry(first).or_default().push(words.collect());
            }
        }
        by_first_word
    }
}

/// A word in lower case.
pub(crate) struct Word {
    pub(crate) text: String,
    /// Whether one of `. ! , ;` follows it.
    is_marked: bool,
}

impl Word {
    /// Returns the words of a text, in their order.
    pub(crate) fn all_of(text: &str) -> Vec<Self> {
        let mut words: Vec<Self> = Vec::new();
        let mut open = false;
        for c in text.chars() {
            let c = if c == '\u{2019}' { '\'' } else { c };
            if c.is_alphanumeric() || (c == '\'' && open) {
                if !open {
                    words.push(Self { text: String::new(), is_marked: false });
                }
                open = true;
                if let Some(word) = words.last_mut() {
                    word.text.extend(c.to_lowercase());
                }
            } else {
                if open
                    && matches!(c, '.' | '!' | ',' | ';')
                    && let Some(word) = words.last_mut()
                {
                    word.is_marked = true;
                }
                open = false;
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_matched_word_by_word() {
        static PHRASES: Phrases = Phrases::of("all set / great . / help you with ? / bye");
        for (text, is_in, begins) in [
            ("All set.", true, true),
            ("We are all set", true, false),
            ("Small settings", false, false),
            ("Great! See you", true, true),
            ("A great hotel", false, false),
            ("goodbye", false, false),
            ("", false, false),
        ] {
            let words = Word::all_of(text);
            let found = (PHRASES.are_in(&words, false), PHRASES.begin(&words, false));
            assert_eq!(found, (is_in, begins), "{text:?}");
        }
        let words = Word::all_of("what I can help you with");
        assert!(PHRASES.are_in(&words, true) && !PHRASES.are_in(&words, false));
    }
}
