//! Generated conversations, the same on every run: word frequencies fall as in natural language.

use foldback_core::Message;

/// The number of words in the vocabulary.
const WORDS: f64 = 20_000.0;

/// A generator that gives the same numbers each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns a word: two open syllables for the most frequent ones, else three.
    fn word(&mut self, text: &mut String) {
        const CONSONANTS: [char; 17] =
            ['b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z'];
        const VOWELS: [char; 5] = ['a', 'e', 'i', 'o', 'u'];
        let share = self.below(1 << 40) as f64 / (1_u64 << 40) as f64;
        let rank = (WORDS.powf(share) - 1.0) as usize;
        let (mut at, syllables) = match rank < 400 {
            true => (rank * 79 % 85_usize.pow(2), 2),
            false => (rank * 7_919 % 85_usize.pow(3), 3),
        };
        for _ in 0..syllables {
            text.push(CONSONANTS[at % 17]);
            text.push(VOWELS[at / 17 % 5]);
            at /= 85;
        }
    }

    /// Returns this many words.
    pub(super) fn text(&mut self, words: usize) -> String {
        let mut text = String::with_capacity(words * 7);
        for at in 0..words {
            if at > 0 {
                text.push(' ');
            }
            self.word(&mut text);
        }
        text
    }

    /// Returns the message at this index: the user asks, the assistant answers.
    pub(super) fn message(&mut self, before: u64) -> Message {
        let words = 10 + self.below(40) as usize;
        let text = self.text(words);
        match before.is_multiple_of(2) {
            true => Message::user(&text),
            false => Message::assistant(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_same_seed_gives_the_same_words_and_some_are_frequent() {
        let (mut one, mut same, mut other) = (Random::new(5), Random::new(5), Random::new(6));
        let text = one.text(5_000);
        assert_eq!(text, same.text(5_000));
        assert_ne!(text, other.text(5_000));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        text.split(' ').for_each(|word| *counts.entry(word).or_default() += 1);
        let most = counts.values().max().unwrap();
        assert!(*most > 50 && counts.len() > 1_000, "{most} of {}", counts.len());
    }
}
