//! A cache of the stems of words: a conversation uses few words often, and stemming costs more than
//! all the rest of the work on a word.

use crate::terms::{Term, hash, is_stop_word};
use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// How many words a thread remembers before it starts over; about one megabyte.
const REMEMBERED: usize = 16_384;

/// A longer word is rare, and not worth the memory.
const LONGEST: usize = 32;

thread_local! {
    static STEMS: RefCell<Stems> = RefCell::new(Stems {
        stemmer: Stemmer::create(Algorithm::English),
        known: FxHashMap::default(),
    });
}

struct Stems {
    stemmer: Stemmer,
    known: FxHashMap<Box<str>, Stem>,
}

/// The data kept about a word in lower case.
#[derive(Clone, Copy)]
pub(crate) struct Stem {
    /// The hash of its stem.
    pub(crate) term: Term,
    /// Whether it says nothing about a topic.
    pub(crate) is_stop_word: bool,
}

impl Stem {
    /// Returns the stem of an English word; any other word is its own.
    pub(crate) fn of(word: &str) -> Self {
        STEMS.with_borrow_mut(|stems| stems.of(word))
    }
}

impl Stems {
    fn of(&mut self, word: &str) -> Stem {
        if let Some(stem) = self.known.get(word) {
            return *stem;
        }
        // The English rules know ASCII only.
        let term = if word.is_ascii() { hash(&self.stemmer.stem(word)) } else { hash(word) };
        let stem = Stem { term, is_stop_word: is_stop_word(word) };
        if word.len() <= LONGEST {
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.known.insert(word.into(), stem);
        }
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_was_computed() {
        let mut stems =
            Stems { stemmer: Stemmer::create(Algorithm::English), known: FxHashMap::default() };
        for _ in 0..2 {
            for (word, stem, is_stop) in [
                ("booking", "book", false),
                ("the", "the", true),
                ("größe", "größe", false),
                ("机票", "机票", false),
                ("知道", "知道", true),
            ] {
                let found = stems.of(word);
                assert_eq!((found.term, found.is_stop_word), (hash(stem), is_stop), "{word}");
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut stems =
            Stems { stemmer: Stemmer::create(Algorithm::English), known: FxHashMap::default() };
        for n in 0..2 * REMEMBERED {
            stems.of(&n.to_string());
        }
        stems.of(&"x".repeat(LONGEST + 1));
        assert!(stems.known.len() <= REMEMBERED);
    }
}
