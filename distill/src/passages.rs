//! Texts cut into the passages on which the table is trained: sentences, and runs of sentences.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;

use crate::random::Random;
use crate::texts::{SOURCES, texts};

/// The number of words at which a longer sentence is cut into parts.
const SENTENCE_WORDS: usize = 50;

/// The most words of a run of sentences, ...
const RUN_WORDS: usize = 110;

/// ... and one of these counts of sentences.
const RUN_SENTENCES: [usize; 5] = [2, 2, 3, 4, 6];

/// Of the characters of a passage at least this share are letters: tables, logs and code are left
/// out.
const LETTERS: f64 = 0.6;

const SEED: u64 = 1;

/// What training reads.
pub(crate) struct Passages {
    /// The passages, none twice.
    pub(crate) texts: Vec<String>,
    /// Of each file its path, its SHA-256, and how many of the passages come from it.
    pub(crate) files: Vec<(&'static str, String, usize)>,
}

/// The passages of all [`SOURCES`] in `folder`.
pub(crate) fn passages(folder: &Path) -> Result<Passages> {
    let mut random = Random::new(SEED);
    let mut seen = HashSet::new();
    let mut found = Passages { texts: Vec::new(), files: Vec::new() };
    for source in &SOURCES {
        let (hash, texts) = texts(folder, source)?;
        let mut passages = Vec::new();
        for text in &texts {
            cut(text, &mut random, &mut passages);
        }
        passages.retain(|passage| {
            words(passage) >= source.words
                && mostly_letters(passage)
                && seen.insert(passage.clone())
        });
        let passages = random.sample(passages, source.most);
        found.files.push((source.path, hash, passages.len()));
        found.texts.extend(passages);
    }
    Ok(found)
}

/// Appends the sentences of `text` and its runs of sentences, one run after the other.
fn cut(text: &str, random: &mut Random, passages: &mut Vec<String>) {
    let sentences: Vec<String> = text.lines().flat_map(sentences).collect();
    let mut rest = sentences.as_slice();
    while rest.len() > 1 {
        let wanted = RUN_SENTENCES[random.below(RUN_SENTENCES.len())];
        let mut total = 0;
        let fits = rest.iter().take_while(|sentence| {
            total += words(sentence);
            total <= RUN_WORDS
        });
        let count = fits.take(wanted).count().max(1);
        if count > 1 {
            passages.push(rest[..count].join(" "));
        }
        rest = &rest[count..];
    }
    passages.extend(sentences);
}

/// The sentences of a line, long ones in parts.
fn sentences(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut sentence: Vec<&str> = Vec::new();
    let mut finish = |sentence: &mut Vec<&str>| {
        found.extend(sentence.chunks(SENTENCE_WORDS).map(|part| part.join(" ")));
        sentence.clear();
    };
    for word in line.split_whitespace() {
        sentence.push(word);
        if word.ends_with(['.', '!', '?']) {
            finish(&mut sentence);
        }
    }
    finish(&mut sentence);
    found
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

fn mostly_letters(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    letters as f64 >= LETTERS * text.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gives_its_sentences_and_runs_of_them() {
        let mut passages = Vec::new();
        cut("It is late. Is it?\nNo! One more line", &mut Random::new(3), &mut passages);
        assert_eq!(
            passages[passages.len() - 4..],
            ["It is late.", "Is it?", "No!", "One more line"]
        );
        let runs = &passages[..passages.len() - 4];
        assert!(!runs.is_empty() && runs[0].starts_with("It is late. Is it?"), "{runs:?}");
    }

    #[test]
    fn long_sentences_are_cut_and_runs_stay_short() {
        let mut passages = Vec::new();
        cut(&"word ".repeat(120), &mut Random::new(1), &mut passages);
        assert!(passages.iter().all(|passage| words(passage) <= RUN_WORDS));
        assert_eq!(passages.iter().filter(|passage| words(passage) == SENTENCE_WORDS).count(), 2);
    }

    #[test]
    fn logs_are_not_mostly_letters() {
        assert!(mostly_letters("The test waits for a second."));
        assert!(mostly_letters("订单已经发货了"));
        assert!(!mostly_letters("-rw-r--r-- 1 0 0 17123 21:40"));
    }
}
