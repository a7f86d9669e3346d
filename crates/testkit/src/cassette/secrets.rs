//! Texts that must not be kept.

use super::push_string;
use foldback_core::{Escape, decode_literal, escape_into};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// The text in place of a secret.
const HIDDEN: &str = "[secret]";

/// The depth to which JSON in strings of JSON is searched.
const DEEPEST: usize = 4;

/// The number of bytes from which half of a secret counts as one: half of a shorter one could be any
/// text.
const WORTH_HALVES: usize = 8;

/// Texts that must not be kept, in every form that they take in JSON and in strings of JSON.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    forms: BTreeSet<String>,
}

impl Secrets {
    /// Adds a text.
    pub(super) fn add(&mut self, secret: &str) {
        let escaped = |text: &String| {
            let minimal = Escape::ALL.map(|escape| {
                let mut literal = String::new();
                escape_into(text, escape, &mut literal);
                literal
            });
            let upper = minimal.clone().map(|literal| upper_codes(&literal));
            minimal.into_iter().chain(upper)
        };
        let plain = BTreeSet::from([secret.to_owned()]);
        let once: BTreeSet<_> = plain.iter().flat_map(escaped).collect();
        let twice: BTreeSet<_> = once.iter().flat_map(escaped).collect();
        let forms = [plain, once, twice].into_iter().flatten();
        self.forms.extend(forms.filter(|form| !form.is_empty()));
    }

    /// Returns a text without the secrets.
    pub(super) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut pieces = [text.to_owned()];
        self.hide_in_pieces(&mut pieces.each_mut());
        let [hidden] = pieces;
        if hidden == text { Cow::Borrowed(text) } else { Cow::Owned(hidden) }
    }

    /// Returns the pieces of one text without the secrets, wherever it was split.
    pub(super) fn hide_in_pieces(&self, pieces: &mut [&mut String]) {
        if self.forms.is_empty() {
            return;
        }
        if let Some(hidden) = self.hide_in_nested(&joined(pieces), DEEPEST) {
            let mut hidden = Some(hidden);
            pieces.iter_mut().for_each(|piece| **piece = hidden.take().unwrap_or_default());
        }
        let whole = joined(pieces);
        replace(pieces, &whole, &self.find(&whole));
    }

    /// Returns the pieces of a truncated text, without half or more of a secret at its end.
    pub(super) fn hide_begun(&self, pieces: &mut [&mut String]) {
        let whole = joined(pieces);
        let begun = |form: &String| {
            let ends = form.char_indices().map(|(at, _)| at).filter(|at| *at * 2 >= form.len());
            ends.filter(|at| whole.ends_with(form.split_at(*at).0)).max()
        };
        let long = self.forms.iter().filter(|form| form.len() >= WORTH_HALVES);
        if let Some(length) = long.filter_map(begun).max() {
            let end = whole.len() - length..whole.len();
            replace(pieces, &whole, std::slice::from_ref(&end));
        }
    }

    /// Returns JSON without the secrets in its strings, keys and numbers.
    pub(super) fn hide_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.forms.is_empty() { Cow::Borrowed(json) } else { self.hide_in_json(json, DEEPEST) }
    }

    fn hide_in_json<'t>(&self, json: &'t str, depth: usize) -> Cow<'t, str> {
        let mut out = String::new();
        let mut kept = 0;
        let mut at = 0;
        while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
            let length = token_length(rest);
            let token = rest.split_at(length).0;
            let inside = token.strip_prefix('"').and_then(|token| token.strip_suffix('"'));
            let hidden = match inside {
                Some(literal) => self.hide_in_text(&decode_literal(literal), depth),
                None if self.find(token).is_empty() => None,
                None => Some(HIDDEN.to_owned()),
            };
            if let Some(hidden) = hidden {
                out.push_str(json.get(kept..at).unwrap_or_default());
                push_string(&hidden, &mut out);
                kept = at + length;
            }
            at += length;
        }
        if kept == 0 {
            return Cow::Borrowed(json);
        }
        out.push_str(json.get(kept..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// Returns `None` if nothing is to be hidden.
    fn hide_in_text(&self, text: &str, depth: usize) -> Option<String> {
        let nested = self.hide_in_nested(text, depth);
        let text = nested.as_deref().unwrap_or(text);
        let found = self.find(text);
        if found.is_empty() { nested } else { Some(shown(text, 0..text.len(), &found)) }
    }

    /// Handles a text that is JSON, in which any character may be written as an escape; `None` if it is
    /// not JSON, or nothing is to be hidden.
    fn hide_in_nested(&self, text: &str, depth: usize) -> Option<String> {
        let is_json = depth > 0
            && text.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        match is_json.then(|| self.hide_in_json(text, depth - 1))? {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        }
    }

    /// Returns the ranges of the secrets, in order; overlapping ones are joined.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let places = self.forms.iter().flat_map(|form| text.match_indices(form.as_str()));
        let mut places: Vec<_> = places.map(|(at, form)| at..at + form.len()).collect();
        places.sort_by_key(|range| (range.start, range.end));
        let mut found: Vec<Range<usize>> = Vec::new();
        for range in places {
            match found.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => found.push(range),
            }
        }
        found
    }
}

fn joined(pieces: &[&mut String]) -> String {
    pieces.iter().map(|piece| piece.as_str()).collect()
}

/// Hides what was found in the whole text from its pieces.
fn replace(pieces: &mut [&mut String], whole: &str, found: &[Range<usize>]) {
    let mut from = 0;
    for piece in pieces {
        let to = from + piece.len();
        if found.iter().any(|range| range.start < to && range.end > from) {
            **piece = shown(whole, from..to, found);
        }
        from = to;
    }
}

/// Returns a part of a text without what was found in the whole; a word replaces it where it begins.
fn shown(text: &str, part: Range<usize>, found: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut from = part.start;
    for range in found.iter().filter(|range| range.start < part.end && range.end > part.start) {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        if range.start >= part.start {
            out.push_str(HIDDEN);
        }
        from = range.end;
    }
    out.push_str(text.get(from..part.end).unwrap_or_default());
    out
}

/// Returns the length of the first token of a JSON text: a string, a word or number, or one character.
fn token_length(json: &str) -> usize {
    if json.starts_with('"') {
        let mut is_escaped = false;
        let end = json.bytes().enumerate().skip(1).find(|(_, byte)| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        });
        return end.map_or(json.len(), |(at, _)| at + 1);
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let word = json.find(|c| !is_part(c)).unwrap_or(json.len());
    let first = json.chars().next().map_or(0, char::len_utf8);
    word.max(first)
}

/// Returns a JSON literal with its codes in capitals, as some writers have them.
fn upper_codes(literal: &str) -> String {
    let mut parts = literal.split("\\u");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(4).unwrap_or((part, ""));
        out.push_str("\\u");
        out.push_str(&code.to_ascii_uppercase());
        out.push_str(rest);
    }
    out
}
