//! Which of the pairs are taught, cut into rows.

use std::collections::{HashMap, HashSet};

use crate::matrix::{Matrix, dot};
use crate::parallel::{Language, Pair, SOURCES};
use crate::random::Random;
use crate::training::unit_sums;
use crate::units::{Cutter, is_letter};

/// The most characters of an English text, and of a translated one.
const ENGLISH: usize = 700;
const TRANSLATED: usize = 450;

/// The share of letters of these scripts in what is not white space.
const LETTERS: f64 = 0.3;

/// The translations of one English text that are kept.
const TRANSLATIONS: usize = 2;

/// Pairs that the first rows find less alike are taken for mistakes.
const ALIKE: f32 = 0.05;

const SEED: u64 = 7;

/// A pair as it is taught.
pub(crate) struct Lesson {
    /// Its place in [`SOURCES`].
    pub(crate) source: usize,
    pub(crate) english: Vec<u16>,
    pub(crate) translated: Vec<u16>,
}

impl Lesson {
    pub(crate) fn language(&self) -> Language {
        SOURCES[self.source].language
    }
}

/// The pairs that are fit to be taught, in a random order. `rows` are the first rows, English ones in
/// front.
pub(crate) fn lessons(mut pairs: Vec<Pair>, cutter: &Cutter<'_>, rows: &Matrix) -> Vec<Lesson> {
    Random::new(SEED).shuffle(&mut pairs);
    let mut seen = HashSet::new();
    let mut translations: HashMap<String, usize> = HashMap::new();
    pairs.retain(|pair| {
        if !is_fit(pair) || !seen.insert(pair.translated.clone()) {
            return false;
        }
        let count = translations.entry(pair.english.clone()).or_default();
        *count += 1;
        *count <= TRANSLATIONS
    });
    let cut = |pair: Pair| Lesson {
        source: pair.source,
        english: cutter.rows(&pair.english),
        translated: cutter.rows(&pair.translated),
    };
    pairs.into_iter().map(cut).filter(|lesson| is_alike(lesson, rows)).collect()
}

fn is_fit(pair: &Pair) -> bool {
    let (english, translated) = (pair.english.chars().count(), pair.translated.chars().count());
    let letters = pair.translated.chars().filter(|&c| is_letter(c)).count();
    let black = pair.translated.chars().filter(|&c| c != ' ').count();
    (4..=ENGLISH).contains(&english)
        && translated <= TRANSLATED
        && letters >= 2
        && letters as f64 >= LETTERS * black as f64
}

fn is_alike(lesson: &Lesson, rows: &Matrix) -> bool {
    let bags = [lesson.english.as_slice(), lesson.translated.as_slice()];
    let (sums, _) = unit_sums(bags.into_iter(), rows);
    lesson.english.len() >= 2 && dot(sums.row(0), sums.row(1)) > ALIKE
}

/// How many lessons there are of each of [`SOURCES`].
pub(crate) fn counts(lessons: &[Lesson]) -> Vec<usize> {
    let mut counts = vec![0; SOURCES.len()];
    lessons.iter().for_each(|lesson| counts[lesson.source] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(english: &str, translated: &str) -> Pair {
        Pair { source: 0, english: english.to_owned(), translated: translated.to_owned() }
    }

    #[test]
    fn only_texts_are_fit() {
        assert!(is_fit(&pair("The port.", "端口。")));
        assert!(!is_fit(&pair("The", "端口。")));
        assert!(!is_fit(&pair("The port.", "港")));
        assert!(!is_fit(&pair("Set the port.", "foldback --port 端口")));
        assert!(!is_fit(&pair("The port.", &"端口".repeat(226))));
        assert!(!is_fit(&pair(&"port ".repeat(141), "端口。")));
    }

    #[test]
    fn a_text_is_taught_once_and_its_translations_twice() {
        let units = ["端口", "포트", "開く"].map(str::to_owned);
        let cutter = Cutter::new(&units, 30_522);
        // All rows are alike, but for that of 開く.
        let mut rows = Matrix { width: 1, values: vec![1.0; 30_525] };
        rows.values[30_524] = -1.0;
        let pairs = vec![
            pair("The port.", "端口。"),
            pair("A port.", "端口。"),
            pair("One port.", "포트 하나"),
            pair("One port.", "포트 한 개"),
            pair("One port.", "포트 1개"),
            pair("Open it.", "開く"),
        ];
        let taught = lessons(pairs, &cutter, &rows);
        let count = |unit: u16| taught.iter().filter(|l| l.translated.contains(&unit)).count();
        assert_eq!([count(30_522), count(30_523), count(30_524)], [1, 2, 0]);
    }
}
