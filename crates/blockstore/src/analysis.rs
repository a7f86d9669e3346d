//! Splits texts into terms, in the same way for stored texts and for questions.
//!
//! - A word is lower-cased and, when it is made of ASCII letters, brought to its English stem.
//! - A word with accents gives a second term without them.
//! - A token of code (a path, `snake_case`, `CamelCase`, a dotted name, an id, an error code)
//!   gives the whole token, the ends of a path, and its parts.
//! - Writing without spaces between words (Chinese, Japanese, Thai, Lao, Burmese, Khmer), and Korean,
//!   gives characters and pairs ([`unspaced`]). Measured against a dictionary, pairs need no 150 ms
//!   of loading, treat both scripts of Chinese alike, and find names that no dictionary holds.
//!
//! The control sequences of terminals are skipped: a coloured word is the plain word. The escapes of JSON are read.
//!
//! Everything is indexed, stop words too: a common term weighs little by its frequency. Function words are removed from
//! a question, though, as long as other words remain. People use other function words in questions than in statements:
//! on LoCoMo "what", "did" and "does" were rare enough to cost two points of recall at 10.

mod finder;
mod han;
mod hangul;
mod script;
mod token;
mod unspaced;

pub use finder::Finder;
pub(crate) use script::{Script, Scripts};

use foldback_core::{is_json_like, unescaped};
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

/// A token is cut after this many bytes, in texts and in questions alike.
const MAX_TOKEN_BYTES: usize = 160;

/// How many stems one analyzer remembers.
const MAX_STEMS: usize = 8_192;

/// How many segments of a path its longest end has: `/a/b/c/d.rs` is found by `b/c/d.rs`.
const PATH_ENDS: usize = 4;

/// The kind of a question's term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A word, a part of a token, a number, a character or a pair of them.
    Plain,
    /// A whole token that names one thing: a path, an id, an identifier of code, an error code.
    Name,
    /// A word in capitals. It is a name, such as an error code, unless all words are written so.
    Shouted,
    /// A function word.
    Common,
}

/// Function words of English, ascending, as they are before stemming. "I", "my", "we" and "you" are not among them:
/// people who ask about themselves also used these words when they said it.
const COMMON: [&str; 77] = [
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "doing", "done", "for", "from", "had", "has", "have", "having", "he",
    "her", "hers", "him", "his", "how", "if", "in", "into", "is", "it", "its", "many", "may",
    "might", "much", "must", "of", "on", "or", "shall", "she", "should", "so", "some", "than",
    "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this", "those",
    "to", "was", "were", "what", "when", "where", "which", "while", "who", "whom", "whose", "why",
    "will", "with", "would",
];

/// Turns texts into terms. Creating one costs nothing; reusing it saves stemming.
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

    /// Hands the terms of `text` to `sink`, in order, as often as they occur.
    pub(crate) fn terms(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        self.part_terms(text, is_json_like(text), sink);
    }

    /// Hands the terms of a part of a text to `sink`; `is_json` says whether the text is JSON.
    pub(crate) fn part_terms(&mut self, text: &str, is_json: bool, sink: &mut impl FnMut(&str)) {
        self.terms_with_form(&readable(text, is_json), &mut |term, _| sink(term));
    }

    /// Returns the distinct terms of a question, in order, at most `limit`.
    pub(crate) fn question(&mut self, text: &str, limit: usize) -> Vec<(String, Form)> {
        let mut found: Vec<(String, Form)> = Vec::new();
        let mut places: FxHashMap<String, usize> = FxHashMap::default();
        let typed_in_capitals = is_typed_in_capitals(text);
        self.terms_with_form(&readable(text, is_json_like(text)), &mut |term, form| {
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
        // The end of a long path is also found: the file that it names.
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
        // The ends of a path, so that it is found by a part of it.
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
                // A token without links is its own only part, which is already there.
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

/// The terms of a number with commas: the whole, and its groups if they could be numbers of their own.
fn number_terms(number: &str, sink: &mut impl FnMut(&str, Form)) {
    let whole = number.to_lowercase();
    let form = if is_name(number) { Form::Name } else { Form::Plain };
    sink(&whole.replace(',', ""), form);
    if may_be_list(&whole) {
        whole.split(',').for_each(|group| sink(group, Form::Plain));
    }
}

/// Returns a text with the escapes of JSON read, each character at its place: invisible characters, which are ignored,
/// make up for the rest of its escape.
fn readable(text: &str, is_json: bool) -> Cow<'_, str> {
    unescaped(text, is_json, |out, missing| {
        let odd = missing % 2;
        out.extend(std::iter::repeat_n('\u{200d}', odd));
        out.extend(std::iter::repeat_n('\u{ad}', missing.saturating_sub(3 * odd) / 2));
    })
}

/// Full-width letters, ligatures and decomposed accents in their usual form, without invisible characters.
fn composed(text: &str) -> Cow<'_, str> {
    let is_composed = || is_nfkc_quick(text.chars()) == IsNormalized::Yes;
    if text.is_ascii() || (is_composed() && !text.contains(is_unseen)) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(composing(text).collect())
    }
}

/// Returns the characters of the [`composed`] form.
fn composing(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !is_unseen(*c)).nfkc()
}

/// Returns whether `c` only chooses how its neighbours look: variation selectors, the frame of a keycap, joiners and
/// soft hyphens.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}')
}

/// Returns the tokens of a text and its runs without spaces, each with the byte at which it begins.
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

/// Returns the length of the control sequence at the beginning of `text`, such as a terminal's colour (ECMA-48: `ESC
/// [`, parameters, and a final byte).
fn escape_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c| !matches!(c, '\u{20}'..='\u{3f}'))?;
    matches!(parameters.as_bytes().get(end), Some(0x40..=0x7e)).then_some(2 + end + 1)
}

/// Returns the word without accents, if that makes it ASCII.
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
    // No function word has more than seven letters.
    let mut lower = [0u8; 7];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    COMMON.binary_search_by(|common| common.as_bytes().cmp(lower)).is_ok()
}

/// Returns whether a plain word is written like an error code or a constant: ECONNREFUSED.
fn is_shouted(word: &str) -> bool {
    word.len() >= 4 && word.bytes().all(|b| b.is_ascii_uppercase())
}

/// Returns whether a question of several words is in capitals throughout, so that they mean nothing.
fn is_typed_in_capitals(question: &str) -> bool {
    let words = question.split(|c: char| !c.is_alphabetic()).filter(|word| word.is_ascii());
    let words = || words.clone().filter(|word| !word.is_empty());
    // Chinese, Japanese and Korean have no capitals: words in capitals among them are written so on purpose.
    !question.contains(|c: char| c.is_lowercase() || is_unspaced(c))
        && (words().count() > 2 || words().any(is_common))
}

/// Returns at most `bytes` bytes of `text`, whole characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests;
