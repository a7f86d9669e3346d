//! Links after the words that they belong to, set at byte offsets.

use std::ops::Range;
use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

/// A stretch of a text, in bytes of its UTF-8, and the links to what it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    /// Where the stretch begins; if it is not known, at the beginning of the text.
    pub start: Option<usize>,
    /// Where it ends, which is where the links are set. Without an end, none are set.
    pub end: Option<usize>,
    /// The links, in order.
    pub links: Vec<Link>,
}

/// A Markdown link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its text; see [`label`].
    pub label: String,
    /// Where it leads.
    pub url: String,
}

impl Link {
    /// Returns the link as it is set after a word: a space, and `[label](url)`.
    #[must_use]
    pub fn marker(&self) -> String {
        let Self { label, url } = self;
        format!(" [{label}]({url})")
    }
}

/// Returns the text with the links of each citation set at its end.
///
/// Offsets count the bytes of the original `text`. An offset inside a character (also one of several code
/// points: an accent that follows its letter, an emoji of a family), or inside a link or a mark that the
/// text already has, is moved to its end; an offset beyond the text counts as its end. Citations that end
/// together are set in the order of their beginnings.
///
/// ```
/// use foldback_deep_search::{Citation, Link, insert_citations};
///
/// let source = Link { label: "gaode".into(), url: "https://id/1-0".into() };
/// let sky = Citation { start: None, end: Some("天是蓝的".len()), links: vec![source] };
/// assert_eq!(insert_citations("天是蓝的。", &[sky]), "天是蓝的 [gaode](https://id/1-0)。");
/// ```
#[must_use]
pub fn insert_citations(text: &str, citations: &[Citation]) -> String {
    let spans = link_spans(text);
    let mut placed: Vec<(usize, &Citation)> = citations
        .iter()
        .filter_map(|citation| Some((place(text, citation.end?, &spans), citation)))
        .collect();
    placed.sort_by_key(|(at, citation)| (*at, citation.end, citation.start.unwrap_or(0)));
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, citation) in placed {
        out.push_str(text.get(from..at).unwrap_or_default());
        citation.links.iter().for_each(|link| out.push_str(&link.marker()));
        from = at;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// Returns the first place at or after `at` that is inside neither a character nor one of `spans`.
fn place(text: &str, at: usize, spans: &[Range<usize>]) -> usize {
    let at = ceil_grapheme(text, at);
    let span = spans.partition_point(|span| span.end <= at);
    match spans.get(span) {
        Some(span) if span.start < at => span.end,
        _ => at,
    }
}

/// Returns the first boundary between characters, as a reader counts them, at or after `at`.
fn ceil_grapheme(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => match cursor.next_boundary(text, 0) {
            Ok(Some(next)) => next,
            Ok(None) | Err(GraphemeIncomplete::NextChunk) => text.len(),
            Err(_) => at,
        },
        _ => at,
    }
}

/// Returns the places of links `[label](url)` and marks `[citation:1]` in a text, in order.
fn link_spans(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(open) = find(bytes, at, b'[') {
        // A label does not extend beyond its line, and is short.
        let Some(close) = label_end(bytes, open) else {
            at = open + 1;
            continue;
        };
        let end = match bytes.get(close + 1) {
            Some(b'(') => destination_end(bytes, close + 1),
            _ => text.get(open + 1..close).filter(|inner| is_mark(inner)).map(|_| close + 1),
        };
        at = match end {
            Some(end) => {
                spans.push(open..end);
                end
            }
            None => open + 1,
        };
    }
    spans
}

/// The longest label and the longest destination of a link that are scanned.
const MAX_LABEL: usize = 512;
const MAX_URL: usize = 8_192;

fn find(bytes: &[u8], from: usize, byte: u8) -> Option<usize> {
    bytes.get(from..)?.iter().position(|b| *b == byte).map(|at| from + at)
}

/// Returns the `]` that closes the bracket at `open`.
fn label_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let inside = bytes.get(open..)?.iter().take(MAX_LABEL).take_while(|byte| **byte != b'\n');
    for (at, byte) in inside.enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(open + at),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the place after the `)` that closes the bracket at `open`.
fn destination_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let inside = bytes.get(open..)?.iter().take(MAX_URL).take_while(|byte| **byte != b'\n');
    for (at, byte) in inside.enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(open + at + 1),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether a text between brackets makes them a mark: `citation:1`.
fn is_mark(inner: &str) -> bool {
    inner.split_once(':').is_some_and(|(name, numbers)| {
        name.starts_with("citation") && numbers.bytes().any(|byte| byte.is_ascii_digit())
    })
}

/// Returns the text of a link to a source with this title: the part before the first dot in the name of a site
/// or a file, other titles whole, without characters that would end the link, on one line, at most 60
/// characters.
#[must_use]
pub fn label(title: &str) -> String {
    let name = title.trim();
    let name = match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() && !name.contains(char::is_whitespace) => stem,
        _ => name,
    };
    let plain: String = name
        .chars()
        .map(|c| match c {
            '[' | ']' | '(' | ')' | '<' | '>' | '`' | '\\' | '|' | '*' => ' ',
            c if c.is_control() || is_direction(c) => ' ',
            c => c,
        })
        .collect();
    let mut label = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = label.char_indices().nth(MAX_LABEL_CHARS) {
        let end = (0..=end).rev().find(|at| ceil_grapheme(&label, *at) == *at).unwrap_or(0);
        label.truncate(end);
        label = format!("{}…", label.trim_end());
    }
    if label.is_empty() { "source".to_owned() } else { label }
}

/// The longest text of a link, in characters.
const MAX_LABEL_CHARS: usize = 60;

/// Returns whether a character changes the direction of the text after it.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Makes a URL stay inside the brackets of a link and run nothing: characters that would end it there are
/// percent-encoded, and so are those that would form a scheme other than `http` and `https`.
#[must_use]
pub fn link_safe(url: &str) -> String {
    let mut depth = 0_usize;
    let balanced = url.chars().all(|c| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return false,
            ')' => depth -= 1,
            _ => {}
        }
        true
    }) && depth == 0;
    let is_page = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(scheme))
    });
    // A scheme is before the first of these; Markdown also reads `&colon;` as a colon.
    let scheme = if is_page { 0 } else { url.find(['/', '?', '#']).unwrap_or(url.len()) };
    let mut out = String::with_capacity(url.len());
    for (at, c) in url.char_indices() {
        let breaks = c.is_whitespace()
            || (at < scheme && matches!(c, ':' | '&'))
            || c.is_control()
            || is_direction(c)
            || matches!(c, '<' | '>' | '\\')
            || (!balanced && matches!(c, '(' | ')'));
        if breaks {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer)
                .bytes()
                .for_each(|byte| out.push_str(&format!("%{byte:02X}")));
        } else {
            out.push(c);
        }
    }
    out
}
