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
//! Everything is indexed, stop words too: what is common weighs little by its frequency. From a
//! question, though, function words are taken out as long as others remain. People ask in other
//! function words than they tell in: on LoCoMo "what", "did" and "does" were rare enough to cost two
//! points of recall at 10.

mod han;
mod hangul;
mod unspaced;

use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
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
        let text = composed(text);
        let mut rest: &str = &text;
        while let Some(c) = rest.chars().next() {
            if is_unspaced(c) {
                let end = rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len());
                let (run, after) = rest.split_at(end);
                self.unspaced.terms(run, sink);
                rest = after;
            } else if is_word(c) {
                let (token, after) = rest.split_at(token_end(rest));
                self.token_terms(token, sink);
                rest = after;
            } else {
                rest = &rest[c.len_utf8()..];
            }
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
        let form = if is_name(token) { Form::Name } else { Form::Plain };
        let whole = token.to_lowercase().replace('\\', "/").replace('\u{2019}', "'");
        if whole.contains(',') {
            sink(&whole.replace(',', ""), form);
            return;
        }
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

/// Full-width letters, ligatures and decomposed accents in their usual form.
fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
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

/// Whether words are written without spaces between them in this character's script.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        && c != '\u{30fb}'
}

fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c)
}

/// Whether `c` joins two words into one token when it stands between them.
fn is_link(c: char) -> bool {
    is_path_link(c) || is_inner_link(c) || c == ','
}

fn is_path_link(c: char) -> bool {
    matches!(c, '/' | '\\' | ':' | '@' | '#')
}

fn is_inner_link(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '+' | '\'' | '\u{2019}')
}

/// Where the token at the beginning of `text` ends: words, joined by up to three links. A comma
/// joins the groups of three digits of one number only.
fn token_end(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    loop {
        while let Some(&(at, c)) = chars.peek()
            && is_word(c)
        {
            end = at + c.len_utf8();
            chars.next();
        }
        let mut links = 0;
        let mut ahead = chars.clone();
        let mut comma = false;
        while let Some(&(_, c)) = ahead.peek()
            && is_link(c)
            && links < 3
        {
            comma |= c == ',';
            links += 1;
            ahead.next();
        }
        let Some(&(at, next)) = ahead.peek() else { break };
        let joins = links > 0
            && is_word(next)
            && (!comma || (links == 1 && is_thousands(&text[..end], &text[at..])));
        if !joins {
            break;
        }
        end = at;
        chars = ahead;
    }
    // C++ and C# are names of their own.
    let tail = &text[end..];
    if end == 1 && tail.starts_with("++") {
        end += 2;
    } else if end == 1 && tail.starts_with('#') {
        end += 1;
    }
    end
}

/// Whether a comma between `before` and `behind` stands in one number: 1,000,000, but not in a list
/// of ids.
fn is_thousands(before: &str, behind: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut groups = before.split(',');
    let first = groups.next().unwrap_or_default();
    let first =
        first.len() - first.bytes().rev().take_while(u8::is_ascii_digit).count()..first.len();
    (1..=3).contains(&first.len())
        && groups.all(|group| group.len() == 3 && digits(group) == 3)
        && digits(behind) == 3
}

/// Letters with apostrophes among them, and no capital behind a small letter.
fn is_plain_word(token: &str) -> bool {
    let mut small = false;
    let mut capitals = 0;
    for c in token.chars() {
        if c == '\'' || c == '\u{2019}' {
            continue;
        }
        if c.is_numeric() || !is_word(c) {
            return false;
        }
        if c.is_uppercase() {
            if small {
                return false;
            }
            capitals += 1;
        } else {
            // HTTPServer has its hump before the last capital.
            if c.is_lowercase() && !small && capitals > 2 {
                return false;
            }
            small |= c.is_lowercase();
        }
    }
    true
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
    !question.contains(char::is_lowercase) && (words().count() > 2 || words().any(is_common))
}

/// Whether a token that is more than a word names one thing.
fn is_name(token: &str) -> bool {
    let chars = token.chars().count();
    if matches!(token, "C++" | "c++" | "C#" | "c#") {
        return true;
    }
    if chars < 3 {
        return false;
    }
    let digits = token.chars().filter(char::is_ascii_digit).count();
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    if letters == 0 {
        // A version or an address, or a long number: an order, a ticket, a phone.
        return token.matches('.').count() >= 2 || digits >= 5;
    }
    if token.contains('_') || token.contains("::") || token.contains('@') || token.contains('#') {
        return true;
    }
    if token.contains(['/', '\\']) {
        let links = token.matches(['/', '\\']).count();
        return links >= 2 || digits > 0 || token.contains(['.', '-']);
    }
    if let Some((stem, ending)) = token.rsplit_once('.')
        && stem.chars().count() >= 2
        && ending.chars().any(char::is_alphabetic)
    {
        return true;
    }
    if digits > 0 {
        let first_is_letter = token.starts_with(char::is_alphabetic);
        // E0502, gpt-4 and 7f3a9c2d, but not 10k, 3pm and 20th.
        let changes = humps(token).len();
        return (first_is_letter && chars >= 4) || (chars >= 6 && changes > 2);
    }
    // parseArgs and ContextManager, but not McDonald or self-driving.
    !token.contains(['-', '\'', '\u{2019}'])
        && (token.starts_with(char::is_lowercase) && humps(token).len() > 1
            || humps(token).iter().filter(|hump| hump.chars().count() >= 3).count() > 1)
}

/// Where the segments of a path begin.
fn segment_starts(path: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut before = '/';
    for (at, c) in path.char_indices() {
        if is_path_link(before) && !is_path_link(c) {
            starts.push(at);
        }
        before = c;
    }
    starts
}

/// The pieces of `parseHTTPHeader2`: parse, HTTP, Header, 2.
fn humps(part: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = part.char_indices().collect();
    let mut pieces = Vec::new();
    let mut start = 0;
    for (i, pair) in chars.windows(2).enumerate() {
        let [(_, a), (at, b)] = pair else { continue };
        let next_is_small = chars.get(i + 2).is_some_and(|(_, c)| c.is_lowercase());
        let cut = (a.is_lowercase() && b.is_uppercase())
            || (a.is_uppercase() && b.is_uppercase() && next_is_small)
            || (a.is_numeric() != b.is_numeric());
        if cut {
            pieces.push(&part[start..*at]);
            start = *at;
        }
    }
    pieces.push(&part[start..]);
    pieces
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
