//! What a message says, prepared for the cues: each cue asks about its beginning or its end.

use crate::cjk_cues as cjk;
use crate::phrases::{Phrases, Word};
use crate::terms::{content_words, is_cjk};
use foldback_core::script::is_kana;
use foldback_core::{first_chars, last_chars};

/// How many characters at the beginning and at the end are looked at.
const ENDS: usize = 160;

/// In how many characters words of content are counted: as many as are told apart stand in fewer.
const COUNTED: usize = 800;

/// What a message says (not what it calls), without the space around it.
pub(crate) struct Reading<'a> {
    text: &'a str,
    /// The first and the last characters.
    head: &'a str,
    tail: &'a str,
    head_words: Vec<Word>,
    tail_words: Vec<Word>,
    has_question_mark: bool,
    /// Where head or tail hold Chinese, Japanese or Korean.
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

    /// Whether a question mark stands in the tail.
    pub(crate) fn has_question_mark(&self) -> bool {
        self.has_question_mark
    }

    /// Whether it begins with one of these phrases.
    pub(crate) fn begins(&self, phrases: &Phrases) -> bool {
        phrases.begin(&self.head_words, self.has_question_mark)
    }

    /// Whether one of these phrases stands in the head.
    pub(crate) fn head_says(&self, phrases: &Phrases) -> bool {
        phrases.are_in(&self.head_words, self.has_question_mark)
    }

    /// Whether one of these phrases stands in the tail.
    pub(crate) fn tail_says(&self, phrases: &Phrases) -> bool {
        phrases.are_in(&self.tail_words, self.has_question_mark)
    }

    /// Whether it begins with one of these CJK phrases.
    pub(crate) fn begins_cjk(&self, phrases: &str) -> bool {
        self.cjk.is_some() && phrases.split('|').any(|phrase| self.head.starts_with(phrase))
    }

    /// Whether one of these CJK phrases stands in the head.
    pub(crate) fn head_says_cjk(&self, phrases: &str) -> bool {
        self.cjk.is_some() && phrases.split('|').any(|phrase| self.head.contains(phrase))
    }

    /// Whether one of these CJK phrases stands in the tail.
    pub(crate) fn tail_says_cjk(&self, phrases: &str) -> bool {
        self.cjk.is_some() && phrases.split('|').any(|phrase| self.tail.contains(phrase))
    }

    /// Whether one of these CJK phrases stands before the marks at the end.
    pub(crate) fn ends_cjk(&self, phrases: &str) -> bool {
        self.cjk.as_ref().is_some_and(|cjk| ends_with(cjk.said, phrases))
    }

    /// Whether it turns to another subject in so many words, as only CJK lists have them. Who turns
    /// to another subject takes nothing up and does not point back.
    pub(crate) fn turns_cjk(&self) -> bool {
        self.cjk.as_ref().is_some_and(|cjk| cjk.turns)
    }

    /// Whether it is no more than "and that one?" in a CJK language: it lives from what was asked
    /// before.
    pub(crate) fn is_elliptic_cjk(&self) -> bool {
        self.cjk.as_ref().is_some_and(|cjk| cjk.is_elliptic)
    }

    /// How many words the head has. Where words are not parted, two Chinese characters or syllables
    /// of Korean are about one, and three letters of kana.
    pub(crate) fn words_of_head(&self) -> usize {
        let of = |word: &Word| {
            let cjk = word.text.chars().filter(|c| is_cjk(*c)).count();
            let kana = word.text.chars().filter(|c| is_kana(*c)).count();
            if cjk < 2 { 1 } else { ((cjk - kana) * 3 + kana * 2) / 6 }
        };
        self.head_words.iter().map(of).sum()
    }

    /// How many words of content the tail has, about.
    pub(crate) fn content_of_tail(&self) -> usize {
        content_words(self.tail)
    }

    /// How many words of content it has in its first 800 characters, about.
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
