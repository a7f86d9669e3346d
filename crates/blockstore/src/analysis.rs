//! Texts into terms, the same for what is stored and for what is asked.
//!
//! - A word is lower-cased and, when it is made of ASCII letters, brought to its English stem.
//! - A word with accents gives a second term without them.
//! - A token of code (a path, `snake_case`, `CamelCase`, a dotted name, an id, an error code)
//!   gives itself whole, the ends of a path, and its parts.
//! - Writing without spaces between words (Chinese, Japanese, Thai, Lao, Burmese, Khmer), and Korean,
//!   gives characters and pairs ([`unspaced`]). Measured against a dictionary, pairs need no 150 ms
//!   of loading, treat both scripts of Chinese alike, and find names that no dictionary holds.
//!
//! The control sequences of terminals are passed over: a coloured word is the word.
//!
//! Everything is indexed, stop words too: what is common weighs little by its frequency. From a
//! question, though, function words are taken out as long as others remain. People ask in other
//! function words than they tell in: on LoCoMo "what", "did" and "does" were rare enough to cost two
//! points of recall at 10.

mod finder;
mod han;
mod hangul;
mod token;
mod unspaced;

pub use finder::Finder;

use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use token::{
    begins_word, humps, is_inner_link, is_link, is_name, is_path_link, is_plain_word, is_unspaced,
    is_word, may_be_list, number_start, segment_starts, token_end,
};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};
use unspaced::Unspaced;

/// A token is cut behind this many bytes, in texts and in questions alike.
const MAX_TOKEN_BYTES: usize = 160;

/// How many stems one analyzer remembers.
const MAX_STEMS: usize = 8_192;

/// How many segments of a path its longest end has: `/a/b/c/d.rs` is found by `b/c/d.rs`.
const PATH_ENDS: usize = 4;

/// What a term of a question is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A word, a part of a token, a number, a character or a pair of them.
    Plain,
    /// A whole token that names one thing: a path, an id, an identifier of code, an error code.
    Name,
    /// A word in capitals. It is a name, an error code say, unless all words are written so.
    Shouted,
    /// A function word.
    Common,
}

/// Function words of English, ascending, as they are before stemming. "I", "my", "we" and "you" are
/// not among them: who asks about themselves told it in these words.
const COMMON: [&str; 77] = [
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "doing", "done", "for", "from", "had", "has", "have", "having", "he",
    "her", "hers", "him", "his", "how", "if", "in", "into", "is", "it", "its", "many", "may",
    "might", "much", "must", "of", "on", "or", "shall", "she", "should", "so", "some", "than",
    "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this", "those",
    "to", "was", "were", "what", "when", "where", "which", "while", "who", "whom", "whose", "why",
    "will", "with", "would",
];

/// Turns texts into terms. Making one costs nothing; using one again saves stemming.
pub(crate) struct Analyzer {
    stemmer: Stemmer,
    stems: FxHashMap<Box<str>, Box<str>>,
    lower: String,
    unspaced: Unspaced,
}

impl Analyzer {
    pub(crate) fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            stems: FxHashMap::default(),
            lower: String::new(),
            unspaced: Unspaced::default(),
        }
    }

    /// Hands the terms of `text` to `sink`, in order, repeated as often as they stand there.
    pub(crate) fn terms(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        self.terms_with_form(text, &mut |term, _| sink(term));
    }

    /// The distinct terms of a question, in order, at most `limit`.
    pub(crate) fn question(&mut self, text: &str, limit: usize) -> Vec<(String, Form)> {
        let mut found: Vec<(String, Form)> = Vec::new();
        let mut places: FxHashMap<String, usize> = FxHashMap::default();
        let typed_in_capitals = is_typed_in_capitals(text);
        self.terms_with_form(text, &mut |term, form| {
            let form = if form == Form::Shouted {
                if typed_in_capitals { Form::Plain } else { Form::Name }
            } else {
                form
            };
            if let Some(&place) = places.get(term) {
                if let Some(known) = found.get_mut(place)
                    && (form == Form::Name || known.1 == Form::Common)
                {
                    known.1 = form;
                }
            } else if found.len() < limit {
                places.insert(term.to_owned(), found.len());
                found.push((term.to_owned(), form));
            }
        });
        if found.iter().any(|(_, form)| *form != Form::Common) {
            found.retain(|(_, form)| *form != Form::Common);
        }
        found
    }

    fn terms_with_form(&mut self, text: &str, sink: &mut impl FnMut(&str, Form)) {
        for (_, piece) in pieces(&composed(text)) {
            self.piece_terms(piece, sink);
        }
    }

    fn piece_terms(&mut self, piece: &str, sink: &mut impl FnMut(&str, Form)) {
        if piece.starts_with(is_unspaced) {
            self.unspaced.terms(piece, sink);
        } else {
            self.token_terms(piece, sink);
        }
    }

    fn token_terms(&mut self, token: &str, sink: &mut impl FnMut(&str, Form)) {
        // Of a long path the end is found too: the file that it names.
        let last = token.rfind(is_path_link).filter(|_| token.len() > MAX_TOKEN_BYTES);
        if let Some(file) = last.and_then(|last| token.get(last..)) {
            self.token_terms(file.trim_start_matches(is_path_link), sink);
        }
        let token = cut(token, MAX_TOKEN_BYTES);
        if is_plain_word(token) {
            let form = if is_common(token) {
                Form::Common
            } else if is_shouted(token) {
                Form::Shouted
            } else {
                Form::Plain
            };
            self.word_terms(token, form, sink);
            return;
        }
        if let Some(start) = number_start(token) {
            let (words, number) = token.split_at(start);
            if words.contains(is_word) {
                self.token_terms(words.trim_end_matches(is_link), sink);
            }
            number_terms(number, sink);
            return;
        }
        let form = if is_name(token) { Form::Name } else { Form::Plain };
        let whole = token.to_lowercase().replace('\\', "/").replace('\u{2019}', "'");
        sink(&whole, form);
        // The ends of a path, so that it is found by less than its whole.
        let starts = segment_starts(&whole);
        let longest = starts.len().saturating_sub(PATH_ENDS).max(1);
        for &start in starts.get(longest..starts.len().saturating_sub(1)).unwrap_or_default() {
            sink(&whole[start..], Form::Plain);
        }
        let segments: Vec<&str> = token.split(is_path_link).filter(|s| !s.is_empty()).collect();
        for segment in &segments {
            if segments.len() > 1 && !is_plain_word(segment) {
                let form = if is_name(segment) { Form::Name } else { Form::Plain };
                sink(&segment.to_lowercase(), form);
            }
            let parts: Vec<&str> =
                segment.split(is_inner_link).filter(|part| !part.is_empty()).collect();
            for part in &parts {
                let humps = humps(part);
                // A token without links is its own only part, and stands there already.
                if segments.len() + parts.len() > 2 || humps.len() < 2 {
                    if is_plain_word(part) {
                        self.word_terms(part, Form::Plain, sink);
                    } else if parts.len() > 1 {
                        sink(&part.to_lowercase(), Form::Plain);
                    }
                }
                if humps.len() > 1 {
                    for hump in humps.iter().filter(|hump| hump.chars().count() > 1) {
                        self.word_terms(hump, Form::Plain, sink);
                    }
                }
            }
        }
    }

    fn word_terms(&mut self, word: &str, form: Form, sink: &mut impl FnMut(&str, Form)) {
        if word.is_ascii() {
            self.stem(word, form, sink);
            return;
        }
        let lower = word.to_lowercase().replace('\u{2019}', "'");
        if lower.is_ascii() {
            self.stem(&lower, form, sink);
            return;
        }
        sink(&lower, form);
        if let Some(folded) = folded(&lower) {
            self.stem(&folded, Form::Plain, sink);
        }
    }

    /// The stem of an ASCII word.
    fn stem(&mut self, word: &str, form: Form, sink: &mut impl FnMut(&str, Form)) {
        self.lower.clear();
        self.lower.push_str(word);
        self.lower.make_ascii_lowercase();
        if let Some(stem) = self.stems.get(self.lower.as_str()) {
            sink(stem, form);
            return;
        }
        let stem = self.stemmer.stem(&self.lower);
        let stem: &str = if stem.is_empty() { &self.lower } else { &stem };
        sink(stem, form);
        if self.stems.len() < MAX_STEMS {
            self.stems.insert(self.lower.as_str().into(), stem.into());
        }
    }
}

/// The terms of a number that is written with commas: the whole, and its groups where they may be
/// numbers of their own.
fn number_terms(number: &str, sink: &mut impl FnMut(&str, Form)) {
    let whole = number.to_lowercase();
    let form = if is_name(number) { Form::Name } else { Form::Plain };
    sink(&whole.replace(',', ""), form);
    if may_be_list(&whole) {
        whole.split(',').for_each(|group| sink(group, Form::Plain));
    }
}

/// Full-width letters, ligatures and decomposed accents in their usual form, without what is not
/// seen.
fn composed(text: &str) -> Cow<'_, str> {
    let is_composed = || is_nfkc_quick(text.chars()) == IsNormalized::Yes;
    if text.is_ascii() || (is_composed() && !text.contains(is_unseen)) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(composing(text).collect())
    }
}

/// The characters of the [`composed`] form.
fn composing(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !is_unseen(*c)).nfkc()
}

/// Whether `c` only chooses how its neighbours look: variation selectors, the frame of a keycap,
/// joiners and soft hyphens.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}')
}

/// The tokens of a text and its runs without spaces, each with the byte where it begins.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let c = rest.chars().next()?;
            let len = if is_unspaced(c) {
                rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len())
            } else if begins_word(c) {
                token_end(rest)
            } else {
                at += escape_sequence(rest).unwrap_or(c.len_utf8());
                continue;
            };
            let start = at;
            at += len;
            return Some((start, &rest[..len]));
        }
    })
}

/// The length of the control sequence at the beginning of `text`, such as a terminal's colour
/// (ECMA-48: `ESC [`, parameters, and a final byte).
fn escape_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c| !matches!(c, '\u{20}'..='\u{3f}'))?;
    matches!(parameters.as_bytes().get(end), Some(0x40..=0x7e)).then_some(2 + end + 1)
}

/// The word without accents, where that makes it ASCII.
fn folded(lower: &str) -> Option<String> {
    let mut out = String::with_capacity(lower.len());
    for c in lower.nfd().filter(|&c| !is_combining_mark(c)) {
        match c {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'þ' => out.push_str("th"),
            'ı' => out.push('i'),
            c if c.is_ascii() => out.push(c),
            _ => return None,
        }
    }
    (!out.is_empty()).then_some(out)
}

fn is_common(word: &str) -> bool {
    // No function word is longer than seven letters.
    let mut lower = [0u8; 7];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    COMMON.binary_search_by(|common| common.as_bytes().cmp(lower)).is_ok()
}

/// Whether a plain word is written like an error code or a constant: ECONNREFUSED.
fn is_shouted(word: &str) -> bool {
    word.len() >= 4 && word.bytes().all(|b| b.is_ascii_uppercase())
}

/// Whether a question of several words is written in capitals throughout, so that they tell nothing.
fn is_typed_in_capitals(question: &str) -> bool {
    let words = question.split(|c: char| !c.is_alphabetic()).filter(|word| word.is_ascii());
    let words = || words.clone().filter(|word| !word.is_empty());
    // Chinese, Japanese and Korean have no capitals: what stands in them is written so on purpose.
    !question.contains(|c: char| c.is_lowercase() || is_unspaced(c))
        && (words().count() > 2 || words().any(is_common))
}

/// At most `bytes` bytes of `text`, whole characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut terms = Vec::new();
        Analyzer::new().terms(text, &mut |term| terms.push(term.to_owned()));
        assert_eq!(terms.join(" "), expected, "{text}");
    }

    #[track_caller]
    fn check_names(question: &str, expected: &[&str]) {
        let terms = Analyzer::new().question(question, 100);
        let names: Vec<_> =
            terms.iter().filter(|t| t.1 == Form::Name).map(|t| t.0.as_str()).collect();
        assert_eq!(names, expected, "{question}");
    }

    #[test]
    fn words_are_lower_case_stems() {
        check(
            "The runners were running, Alice's dogs don't!",
            "the runner were run alic dog don't",
        );
        check("", "");
        check(" \n\t -- ... ", "");
    }

    #[test]
    fn accents_give_a_second_form() {
        check("Café Müller", "café cafe müller muller");
        check("cafe\u{301}", "café cafe");
        check("ＡＢＣ ｄｅｆ", "abc def");
        check("Привет Größe", "привет größe gross");
    }

    #[test]
    fn tokens_of_code_are_found_whole_and_in_parts() {
        check("snake_case_name", "snake_case_name snake case name");
        check("parseHTTPHeader", "parsehttpheader pars http header");
        check("std::io::Error", "std::io::error io::error std io error");
        check(
            "/srv/src/foo/main_loop.rs:42",
            "srv/src/foo/main_loop.rs:42 src/foo/main_loop.rs:42 foo/main_loop.rs:42 \
             main_loop.rs:42 srv src foo main_loop.rs main loop rs 42",
        );
        check("C:\\tmp\\a.txt", "c:/tmp/a.txt tmp/a.txt c tmp a.txt a txt");
        check("E0502", "e0502 0502");
        check("v1.2.3", "v1.2.3 v1 2 3");
        check("1,000 items, 2", "1000 item 2");
        check("-1,000,000.50", "1000000.50");
        check("98214477,98214478", "98214477 98214478");
        check("1,000,98214478", "1000 98214478");
        check("1234,567", "1234 567");
        check("C++ and C#", "c++ c and c# c");
        check("end.Next", "end.next end next");
        check("a@b.org", "a@b.org a b.org b org");
    }

    /// BS7: colours of a terminal are no part of the words that they colour.
    #[test]
    fn bs7_colours_are_no_words() {
        check("\u{1b}[31mpanicked\u{1b}[0m at", "panick at");
        check("\u{1b}[1;38;5;196mE0502\u{1b}[K租约\u{1b}[m", "e0502 0502 租 约 租约");
        // What is no such sequence is text.
        check("\u{1b}[31\u{1b} x [31m", "31 x 31m 31");
    }

    /// BL10: numbers of three digits in a list are found one by one.
    #[test]
    fn bl10_numbers_in_a_list_are_found() {
        check("[100,200,300]", "100200300 100 200 300");
        check("状态码200,404,500,503", "状 态 码 状态 态码 200404500503 200 404 500 503");
        check("1,234 or 0,100", "1234 1 234 or 0100 0 100");
        check("1,000 a,200 b,300 c,400 d,500", "1000 a 200 b 300 c 400 d 500");
        check("price:1,000 2,500.75", "price 1000 2500.75 2 500.75");
        check("100,101,102,103,104,105", "100 101102103104105 101 102 103 104 105");
    }

    /// BL10: each number of a long list costs the same, and none grows with the list.
    #[test]
    fn bl10_a_list_of_numbers_costs_what_its_numbers_cost() {
        let numbers: Vec<String> = (0..40_000).map(|n| (100 + n % 900).to_string()).collect();
        let (mut terms, mut bytes) = (0, 0);
        Analyzer::new().terms(&numbers.join(","), &mut |term| {
            terms += 1;
            bytes += term.len();
        });
        assert_eq!((terms, bytes), (numbers.len() + 1, 3 * numbers.len() + 15));
    }

    /// BL10: what only chooses how a character looks is no term, and parts no word.
    #[test]
    fn bl10_what_is_not_seen_is_no_term() {
        check("❤\u{fe0f} 1\u{fe0f}\u{20e3} 👩\u{200d}👧", "1");
        check("con\u{ad}nect 葛\u{e0100}飾区", "connect 葛 饰 区 葛饰 饰区");
        check("می\u{200c}خواهم", "میخواهم");
        check("\u{301} \u{301}a b-\u{301}", "a b");
    }

    #[test]
    fn bl10_text_without_spaces_gives_characters_and_pairs() {
        check("读取data.txt文件", "读 取 读取 data.txt data txt 文 件 文件");
        check("データ", "でー ーた でーた");
        check("ﾃﾞｰﾀ", "でー ーた でーた");
        check("데이터를 분석", "데이터 데이 이터 분석");
    }

    #[test]
    fn names_are_told_from_words() {
        check_names("what happened in src/main.rs at 10:30?", &["src/main.rs", "main.rs"]);
        check_names("Why E0502, ECONNREFUSED or 7f3a9c2d?", &["e0502", "econnrefus", "7f3a9c2d"]);
        check_names("the snake_case of parseArgs", &["snake_case", "parseargs"]);
        check_names("order 4711942 from 2023", &["4711942"]);
        check_names("tickets 98214477,98214478", &["98214477", "98214478"]);
        check_names("WHY DOES THE DATABASE FAIL WITH E0502?", &["e0502"]);
        check_names("ECONNREFUSED", &["econnrefus"]);
        check_names("ECONNREFUSED 是什么原因", &["econnrefus"]);
        check_names("API 网关报 ECONNREFUSED，HTTP 超时", &["econnrefus", "http"]);
        check_names("self-driving and/or the 3pm 20th McDonald don't e.g.", &[]);
        check_names("文件 data.txt 在哪里", &["data.txt"]);
    }

    #[test]
    fn function_words_are_taken_out_of_questions_that_hold_others() {
        assert!(COMMON.is_sorted());
        let question = |text| {
            let terms = Analyzer::new().question(text, 100);
            terms.into_iter().map(|term| term.0).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(question("What DID the dog do to my_bone?"), "dog my_bone my bone");
        assert_eq!(question("What did they do?"), "what did they do");
        assert_eq!(question("The Who"), "the who");
        assert_eq!(question("那是什么 is it"), "那 是 什 么 那是 是什 什么 is it");
        assert_eq!(question("为什么超时？"), "超 时 超时");
        assert_eq!(question("いつ届きますか"), "届 届き");
        assert_eq!(question("오류가 왜 났어"), "오류 났어");
    }

    #[test]
    fn s12_a_token_is_cut() {
        let long = "x".repeat(100_000);
        let mut terms = Vec::new();
        Analyzer::new().terms(&long, &mut |term| terms.push(term.to_owned()));
        assert_eq!(terms.iter().map(String::len).collect::<Vec<_>>(), [MAX_TOKEN_BYTES]);
    }

    #[test]
    fn the_file_of_a_long_path_is_found_by_its_name() {
        let path = format!("/srv/{}/src/main_loop.rs", "deep/".repeat(60));
        let mut terms = Vec::new();
        Analyzer::new().terms(&path, &mut |term| terms.push(term.to_owned()));
        assert!(terms.iter().any(|term| term == "main_loop.rs"), "{terms:?}");
        let question = Analyzer::new().question(&path, 100);
        assert!(question.contains(&("main_loop.rs".to_owned(), Form::Name)), "{question:?}");
    }

    proptest! {
        #[test]
        fn s12_any_text_gives_bounded_terms(text in any::<String>()) {
            Analyzer::new().terms(&text, &mut |term| {
                assert!(!term.is_empty() && term.len() <= 4 * MAX_TOKEN_BYTES);
            });
        }

        #[test]
        fn a_question_in_the_words_of_a_text_asks_for_its_terms(
            text in "[a-zA-Z0-9_./ :é文件-]{0,60}",
        ) {
            let mut terms = std::collections::BTreeSet::new();
            Analyzer::new().terms(&text, &mut |term| {
                terms.insert(term.to_owned());
            });
            let question = Analyzer::new().question(&text, usize::MAX);
            prop_assert!(question.iter().all(|(term, _)| terms.contains(term)));
            prop_assert_eq!(question.is_empty(), terms.is_empty());
        }
    }
}
