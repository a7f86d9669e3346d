//! The places of a question's terms in a text.

use super::{Analyzer, composed, composing, is_unspaced, pieces, readable};
use foldback_core::is_json_like;
use rustc_hash::{FxHashMap, FxHashSet};

/// A run without spaces is examined in windows of this many characters, each beginning halfway
/// through the one before.
const WINDOW: usize = 12;

/// Finds the terms that a block or a passage was found by, as a search compares them: in any form
/// of their words, whatever their case, width, accents or script.
///
/// ```
/// use foldback_blockstore::Finder;
///
/// let mut finder = Finder::new([("directori", 2.0), ("gone", 0.5)]);
/// assert_eq!(finder.weigh("All DIRECTORIES are gone."), 2.5);
/// assert_eq!(finder.find("the directory is gone"), Some(4));
/// assert_eq!(finder.find("nothing of this"), None);
/// ```
pub struct Finder {
    analyzer: Analyzer,
    weights: FxHashMap<Box<str>, f32>,
}

impl Finder {
    /// Looks for analysed terms, each with its weight.
    pub fn new<'t>(terms: impl IntoIterator<Item = (&'t str, f32)>) -> Self {
        let weights = terms.into_iter().map(|(term, weight)| (term.into(), weight)).collect();
        Self { analyzer: Analyzer::new(), weights }
    }

    /// Returns the weight of the terms that `text` holds; each counts once.
    pub fn weigh(&mut self, text: &str) -> f32 {
        let mut held: FxHashSet<Box<str>> = FxHashSet::default();
        let mut sum = 0.0;
        for (_, piece) in pieces(&composed(&readable(text, is_json_like(text)))) {
            self.held(piece, |term, weight| {
                if held.insert(term.into()) {
                    sum += weight;
                }
            });
        }
        sum
    }

    /// Returns the byte of `text` at which the heaviest piece begins: a token, or a part of a run
    /// without spaces. `None` when `text` holds none of the terms.
    pub fn find(&mut self, text: &str) -> Option<usize> {
        let text = &*readable(text, is_json_like(text));
        let composed = composed(text);
        let mut best: Option<(f32, usize)> = None;
        for (start, piece) in pieces(&composed) {
            for (at, window) in windows(piece) {
                let mut sum = 0.0;
                self.held(window, |_, weight| sum += weight);
                if sum > best.map_or(0.0, |(most, _)| most) {
                    best = Some((sum, start + at));
                }
            }
        }
        best.map(|(_, at)| original(text, at))
    }

    /// Hands the terms that a piece holds to `sink`, each with its weight.
    fn held(&mut self, piece: &str, mut sink: impl FnMut(&str, f32)) {
        let Self { analyzer, weights } = self;
        analyzer.piece_terms(piece, &mut |term, _| {
            if let Some(weight) = weights.get(term) {
                sink(term, *weight);
            }
        });
    }
}

/// Returns a whole token; for a run without spaces, overlapping parts.
fn windows(piece: &str) -> Vec<(usize, &str)> {
    if !piece.starts_with(is_unspaced) {
        return vec![(0, piece)];
    }
    let starts: Vec<usize> = piece.char_indices().map(|(at, _)| at).collect();
    let end = |place: usize| starts.get(place).copied().unwrap_or(piece.len());
    let places = (0..starts.len()).step_by(WINDOW / 2);
    let window = |place: usize| Some((end(place), piece.get(end(place)..end(place + WINDOW))?));
    places.filter_map(window).collect()
}

/// Returns the byte of `text` that became the byte `at` of its [`composed`] form.
fn original(text: &str, at: usize) -> usize {
    if text.is_ascii() {
        return at;
    }
    let bounds: Vec<usize> = text.char_indices().map(|(bound, _)| bound).collect();
    let composed_len = |end: usize| {
        let before = text.get(..end).unwrap_or_default();
        composing(before).map(char::len_utf8).sum::<usize>()
    };
    let behind = bounds.partition_point(|bound| composed_len(*bound) <= at);
    behind.checked_sub(1).and_then(|place| bounds.get(place)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the finder of a question's terms.
    fn asking(question: &str) -> Finder {
        let terms = Analyzer::new().question(question, 100);
        Finder::new(terms.iter().map(|(term, _)| (term.as_str(), 1.0)))
    }

    #[track_caller]
    fn check(question: &str, text: &str, expected: &str) {
        let at = asking(question).find(text).unwrap_or_else(|| panic!("{question} in {text}"));
        assert!(text[at..].starts_with(expected), "{question}: {}", &text[at..]);
    }

    #[test]
    fn bs7_words_are_found_in_every_form() {
        check("directory", "all the DIRECTORIES are gone", "DIRECTORIES");
        check("happily connected", "2 nodes, connecting", "connecting");
        check("cafe senorita", "un señor, une Café", "Café");
        check("ERROR991", "全角: ＥＲＲＯＲ９９１ 全角", "ＥＲＲＯＲ");
        check("quokka", "the \u{1b}[31mquokka\u{1b}[0m", "quokka");
        check("needle-77", "İİİİ ﷺ ﷺ needle-77 İİ", "needle-77");
        check("Müller", r#"{"owner": "M\u00fcller"}"#, r"M\u00fc");
        check("会议", r#"{"title": "\u4f1a\u8bae"}"#, r"\u4f1a");
        check("deadline", r#"["\u4f1a\ud83d\ude00\u8bae Agenda\ndeadline"]"#, "deadline");
        check("main_loop.rs", "at /srv/src/main_loop.rs:42", "srv/src");
        assert_eq!(asking("quokka").find("no animal"), None);
        assert_eq!(asking("quokka").find(""), None);
    }

    #[test]
    fn bs7_of_a_run_without_spaces_the_part_is_found() {
        let before = "很长的一行没有空格".repeat(40);
        let text = format!("{before}船闸租約過期{before}");
        let at = asking("船闸租约过期").find(&text).unwrap();
        let off = at.abs_diff(before.len());
        assert!(off <= WINDOW * 3, "{off} bytes from it");
        check("データベース接続", "記録: ﾃﾞｰﾀﾍﾞｰｽ接続", "ﾃﾞｰﾀﾍﾞｰｽ");
    }

    #[test]
    fn bs7_each_term_counts_once() {
        let mut finder = Finder::new([("leas", 2.0), ("quay", 1.0)]);
        assert_eq!(finder.weigh("leases, leased: a lease"), 2.0);
        assert_eq!(finder.weigh("the Quay's lease at the quay"), 3.0);
        assert_eq!(finder.weigh("租约"), 0.0);
    }

    proptest! {
        #[test]
        fn bs7_what_is_found_is_inside_the_text_and_where_it_weighs(
            text in "([a-c]{1,3}|文件夹|é|İ|ﷺ|\u{1b}\\[3m| |ｶﾞ){0,30}",
        ) {
            let mut finder = Finder::new([("ab", 1.0), ("文件", 2.0), ("a", 0.5), ("がが", 1.0)]);
            match finder.find(&text) {
                Some(at) => prop_assert!(text.is_char_boundary(at) && finder.weigh(&text) > 0.0),
                None => prop_assert_eq!(finder.weigh(&text), 0.0),
            }
        }
    }
}
