//! The text of a message, prepared for the cues: each cue looks at its beginning or its end.

use crate::cjk_cues as cjk;
use crate::phrases::{Phrases, Word};
use crate::terms::{content_words, is_cjk};
use foldback_core::script::is_kana;
use foldback_core::{first_chars, last_chars};

/// How many characters at the beginning and at the end are examined.
const ENDS: usize = 160;

/// The number of characters in which words of content are counted: the count saturates within
/// fewer.
const COUNTED: usize = 800;

/// The text of a message (not its calls), without the surrounding space.
pub(crate) struct Reading<'a> {
    text: &'a str,
    /// The first and the last characters.
    head: &'a str,
    tail: &'a str,
    head_words: Vec<Word>,
    tail_words: Vec<Word>,
    has_question_mark: bool,
    /// Whether head or tail hold Chinese, Japanese or Korean.
    cjk: Option<CjkReading<'a>>,
}

struct CjkReading<'a> {
    /// The tail without the marks at its end.
    said: &'a str,
    turns: bool,
    is_elliptic: bool,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let text = text.trim();
        let (head, tail) = (first_chars(text, ENDS), last_chars(text, ENDS));
        Self {
            text,
            head,
            tail,
            head_words: Word::all_of(head),
            tail_words: Word::all_of(tail),
            has_question_mark: tail.contains(['?', '？']),
            cjk: head.chars().chain(tail.chars()).any(is_cjk).then(|| CjkReading::of(head, tail)),
        }
    }

    /// Returns whether there is a question mark in the tail.
    pub(crate) fn has_question_mark(&self) -> bool {
        self.has_question_mark
    }

    /// Returns whether it begins with one of these phrases.
    pub(crate) fn begins(&self, phrases: &Phrases) -> bool {
        phrases.begin(&self.head_words, self.has_question_mark)
    }

    /// Returns whether one of these phrases is in the head.
    pub(crate) fn head_says(&self, phrases: &Phrases) -> bool {
        phrases.are_in(&self.head_words, self.has_question_mark)
    }

    /// Returns whether one of these phrases is in the tail.
    pub(crate) fn tail_says(&self, phrases: &Phrases) -> bool {
        phrases.are_in(&self.tail_words, self.has_question_mark)
    }

    /// Returns whether it begins with one of these CJK phrases.
    pub(crate) fn begins_cjk(&self, phrases: &str) -> bool {
        self.cjk.is_some() && phrases.split('|').any(|phrase| self.head.starts_with(phrase))
    }

    /// Returns whether one of these CJK phrases is in the head.
    pub(crate) fn head_says_cjk(&self, phrases: &str) -> bool {
        self.cjk.is_some() && phrases.split('|').any(|phrase| self.head.contains(phrase))
    }

    /// Returns whether one of these CJK phrases is in the tail.
    pub(crate) fn tail_says_cjk(&self, phrases: &str) -> bool {
        self.cjk.is_some() && phrases.split('|').any(|phrase| self.tail.contains(phrase))
    }

    /// Returns whether one of these CJK phrases is before the marks at the end.
    pub(crate) fn ends_cjk(&self, phrases: &str) -> bool {
        self.cjk.as_ref().is_some_and(|cjk| ends_with(cjk.said, phrases))
    }

    /// Returns whether it turns to another subject explicitly, as only CJK lists can detect. Such a
    /// message takes nothing up and does not point back.
    pub(crate) fn turns_cjk(&self) -> bool {
        self.cjk.as_ref().is_some_and(|cjk| cjk.turns)
    }

    /// Returns whether it is no more than "and that one?" in a CJK language: it depends on what was
    /// asked before.
    pub(crate) fn is_elliptic_cjk(&self) -> bool {
        self.cjk.as_ref().is_some_and(|cjk| cjk.is_elliptic)
    }

    /// Returns how many words the head has. In scripts without separated words, two Chinese
    /// characters or syllables of Korean are about one, and so are three letters of kana.
    pub(crate) fn words_of_head(&self) -> usize {
        let of = |word: &Word| {
            let cjk = word.text.chars().filter(|c| is_cjk(*c)).count();
            let kana = word.text.chars().filter(|c| is_kana(*c)).count();
            if cjk < 2 { 1 } else { ((cjk - kana) * 3 + kana * 2) / 6 }
        };
        self.head_words.iter().map(of).sum()
    }

    /// Returns about how many words of content the tail has.
    pub(crate) fn content_of_tail(&self) -> usize {
        content_words(self.tail)
    }

    /// Returns about how many words of content it has in its first 800 characters.
    pub(crate) fn content(&self) -> usize {
        content_words(first_chars(self.text, COUNTED))
    }
}

impl<'a> CjkReading<'a> {
    fn of(head: &str, tail: &'a str) -> Self {
        const LONGEST_ELLIPSIS: usize = 10;
        let said = tail.trim_end_matches(|c: char| !c.is_alphanumeric());
        let short = head.chars().filter(|c| is_cjk(*c)).count() <= LONGEST_ELLIPSIS;
        Self {
            said,
            turns: cjk::TURNS.split('|').any(|phrase| head.starts_with(phrase))
                || cjk::TURNS_WITHIN.split('|').any(|phrase| head.contains(phrase)),
            is_elliptic: short && ends_with(said, cjk::ELLIPTIC),
        }
    }
}

fn ends_with(said: &str, phrases: &str) -> bool {
    phrases.split('|').any(|phrase| said.ends_with(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_tails_are_cut_between_characters() {
        let text = "好".repeat(400);
        let reading = Reading::of(&text);
        assert_eq!(reading.head.chars().count(), ENDS);
        assert_eq!(reading.tail.chars().count(), ENDS);
        assert_eq!(Reading::of("short").tail, "short");
    }
}
