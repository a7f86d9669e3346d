//! Finding the places of secrets in a text.

use crate::assignment::{self, NAMES};
use crate::patience::Patience;
use crate::shape::{Compiled, Shape};
use crate::shapes::SHAPES;
use crate::shown;
use crate::unescaped::Unescaped;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::LazyLock;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its place, in bytes of the text. It never splits an escape.
    pub range: Range<usize>,
    /// The kind of secret, as named in a mark.
    pub kind: &'static str,
    /// The secret itself, without the escapes of the text.
    pub secret: String,
}

/// How many times a text may be escaped: for example a call's arguments that contain JSON within JSON.
const LEVELS: usize = 3;

/// Returns the secrets of a text, in order. They do not overlap.
#[must_use]
pub fn find(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    scan(text, &mut |range, kind| found.push((range, kind)));
    let mut levels: Vec<Unescaped> = Vec::new();
    while levels.len() < LEVELS {
        let escaped = levels.last().map_or(text, |level| &level.text);
        let Some(level) = Unescaped::of(escaped) else { break };
        levels.push(level);
        let Some(level) = levels.last() else { break };
        scan(&level.text, &mut |range, kind| {
            found.push((levels.iter().rev().fold(range, |range, level| level.place(range)), kind));
        });
    }
    let whole = |(range, kind): (Range<usize>, _)| {
        let secret = unescaped(text.get(range.clone()).unwrap_or_default());
        Finding { range, kind, secret }
    };
    joined(found).into_iter().map(whole).collect()
}

/// A text with the escapes of every level removed.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..LEVELS {
        match Unescaped::of(&text) {
            Some(level) => text = level.text,
            None => break,
        }
    }
    text
}

/// Returns all kinds of secrets, each once.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    let names = NAMES.iter().map(|name| name.kind);
    let mut kinds: Vec<_> = SHAPES.iter().map(|shape| shape.kind).chain(names).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.into_iter()
}

/// The beginnings and names of secrets, each with its row.
struct Beginnings {
    /// As written.
    shapes: AhoCorasick,
    rows: Vec<Compiled>,
    /// For each literal of the shapes, its row.
    row_of: Vec<usize>,
    /// In upper or lower case.
    names: AhoCorasick,
}

static BEGINNINGS: LazyLock<Option<Beginnings>> = LazyLock::new(|| {
    let literals = || SHAPES.iter().flat_map(|shape| shape.begins);
    let row = |(n, shape): (usize, &Shape)| vec![n; shape.begins.len()];
    let mut build = AhoCorasick::builder();
    build.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::DFA));
    Some(Beginnings {
        shapes: build.build(literals()).ok()?,
        rows: SHAPES.iter().map(Compiled::new).collect::<Option<_>>()?,
        row_of: SHAPES.iter().enumerate().flat_map(row).collect(),
        names: build.ascii_case_insensitive(true).build(NAMES.iter().map(|name| name.word)).ok()?,
    })
});

/// How much of a text was read.
#[derive(Default)]
struct Work {
    /// For each row of the shapes.
    rows: Vec<Patience>,
    names: Patience,
    shown: Patience,
}

/// Adds every part of a text that has the shape of a secret, without looking under escapes.
fn scan(text: &str, take: &mut dyn FnMut(Range<usize>, &'static str)) -> Work {
    // A test ensures that the table can be read.
    let Some(beginnings) = &*BEGINNINGS else { return Work::default() };
    let mut work = Work { rows: vec![Patience::default(); SHAPES.len()], ..Work::default() };
    for hit in beginnings.shapes.find_overlapping_iter(text) {
        let Some(n) = beginnings.row_of.get(hit.pattern().as_usize()).copied() else { continue };
        let Some((row, patience)) = beginnings.rows.get(n).zip(work.rows.get_mut(n)) else {
            continue;
        };
        if let Some(range) = row.find(text, hit.start(), patience) {
            take(range, row.kind());
        }
        if row.begins_keys() {
            shown::find(text, hit.start(), &mut work.shown, take);
        }
    }
    for hit in beginnings.names.find_overlapping_iter(text) {
        let Some(name) = NAMES.get(hit.pattern().as_usize()) else { continue };
        if let Some(range) = assignment::value(text, name, hit.range(), &mut work.names) {
            take(range, name.kind);
        }
    }
    work
}

/// Merges findings that overlap. The merged one has the kind of the first, unless that was found only by its name and a
/// shape is more specific.
fn joined(mut found: Vec<(Range<usize>, &'static str)>) -> Vec<(Range<usize>, &'static str)> {
    found.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
    let mut joined: Vec<(Range<usize>, &'static str)> = Vec::with_capacity(found.len());
    for (range, kind) in found {
        match joined.last_mut().filter(|(last, _)| range.start < last.end) {
            Some((last, first)) => {
                if is_named(first) && !is_named(kind) {
                    *first = kind;
                }
                last.end = last.end.max(range.end);
            }
            None => joined.push((range, kind)),
        }
    }
    joined
}

fn is_named(kind: &str) -> bool {
    NAMES.iter().any(|name| name.kind == kind)
}

/// Returns the text with each finding replaced by the result of `instead`. The findings are those of the text, in
/// order.
pub fn replaced<'t>(
    text: &'t str,
    found: &[Finding],
    mut instead: impl FnMut(&Finding) -> String,
) -> Cow<'t, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for one in found {
        out.push_str(text.get(at..one.range.start).unwrap_or_default());
        out.push_str(&instead(one));
        at = one.range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_the_tables_can_be_read() {
        let beginnings = BEGINNINGS.as_ref().unwrap();
        assert_eq!(beginnings.rows.len(), SHAPES.len());
        assert!(kinds().count() >= 40, "{}", kinds().count());
    }

    /// How many bytes are read for the secrets of a text.
    fn work(text: &str) -> usize {
        let work = scan(text, &mut |_, _| ());
        let all = work.rows.iter().chain([&work.names, &work.shown]);
        all.map(Patience::spent).sum()
    }

    /// Twice as much text is at most twice as much work, even if each beginning could be read up to the end.
    #[test]
    fn s8_the_work_is_in_proportion_to_the_length() {
        let shapes = SHAPES.iter().flat_map(|shape| shape.begins).map(|begin| format!("{begin}-"));
        let words = NAMES.iter().map(|name| format!("{}=", name.word));
        let others = [
            "sk-proj-",
            "pypi-AgEI-",
            "b3BlbnNzaC1rZXktdjE\n",
            "\nAb: -----BEGIN RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----\n> 中",
            "://a:@",
        ];
        for part in shapes.chain(words).chain(others.map(str::to_owned)) {
            let of = |bytes: usize| work(&part.repeat(bytes / part.len()));
            let (one, two) = (of(100_000), of(200_000));
            assert!(two <= 2 * one + one / 8, "{part:?}: {one} and {two}");
            assert!(two <= 200_000 * 256, "{part:?}: {two}");
        }
    }

    /// What is longer than its form is compared with is replaced as a whole, or not at all.
    #[test]
    fn s8_long_secrets_are_replaced_whole() {
        let body = "kJ2x9Qv4L7pZ1sW8nT3m".repeat(5_000);
        let lines = "kJ2x9Qv4L7pZ1sW8nT3m\n".repeat(5_000);
        let key = "-----BEGIN RSA PRIVATE KEY-----";
        for (text, secret) in [
            (format!("a sk-proj-{body} 中"), format!("sk-proj-{body}")),
            (format!("//npm/:_authToken={body}\n中"), body.clone()),
            (format!("{key}{lines}-----END RSA PRIVATE KEY-----中"), lines),
            (format!("{key}{body}"), body.clone()),
        ] {
            let found = find(&text);
            assert_eq!(found.len(), 1, "{}", &text[..40]);
            assert!(found[0].secret.contains(&secret), "{}", &text[..40]);
            let escaped = text.replace('\n', "\\n");
            let found = find(&escaped);
            assert_eq!(found.len(), 1, "{}", &text[..40]);
            assert!(found[0].secret.contains(&secret), "{}", &text[..40]);
        }
        let jwt = format!("eyJhbGciOiJIUzI1NiJ9.{body}.{body}");
        assert_eq!(find(&jwt), []);
    }

    #[test]
    fn what_overlaps_is_one() {
        let text = "token: ghp_0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0kPlOm";
        let found = find(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].kind, found[0].range.start), ("github-token", 7));
        assert_eq!(found[0].secret, text[7..]);
    }
}
