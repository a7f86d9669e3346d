//! Removal of links in an answer that lead to no source.

use crate::Source;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// A text whose links lead to sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleared {
    /// The text: other links are reduced to their words, other URLs become code, and marks are removed.
    pub(crate) text: String,
    /// The removed URLs and marks, each once, in the order of the text.
    pub(crate) invented: Vec<String>,
}

/// A replacement of a stretch of the text.
struct Edit {
    at: Range<usize>,
    becomes: String,
}

/// A link that is not closed yet: its place, and its words so far.
type OpenLink = (Range<usize>, Option<Range<usize>>);

/// Goes through every link, URL and mark of a text, as Markdown reads it: everything but a short URL of a
/// source is invented. Code holds no links.
pub(crate) fn cleared(text: &str, sources: &[Source]) -> Cleared {
    let is_source = |url: &str| sources.iter().any(|source| source.short_url == url);
    let mut invented: Vec<(usize, String)> = Vec::new();
    let mut edits: Vec<Edit> = Vec::new();
    let mut code: Vec<Range<usize>> = Vec::new();
    // The links that are open; `None` for those that stay.
    let mut open: Vec<Option<OpenLink>> = Vec::new();
    for (event, at) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some((whole, words)) = open.pop().flatten() {
                    let words = words.unwrap_or(whole.end..whole.end);
                    for at in [whole.start..words.start, words.end..whole.end] {
                        edits.push(Edit { at, becomes: String::new() });
                    }
                }
                continue;
            }
            Event::End(_) => continue,
            _ => {}
        }
        for (_, words) in open.iter_mut().flatten() {
            let words = words.get_or_insert_with(|| at.clone());
            words.end = words.end.max(at.end);
        }
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let is_kept = is_source(&dest_url);
                if !is_kept {
                    invented.push((at.start, dest_url.to_string()));
                }
                open.push((!is_kept).then_some((at, None)));
            }
            Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => code.push(at),
            _ => {}
        }
    }
    let is_code = |at: &Range<usize>| {
        let next = code.partition_point(|code| code.end <= at.start);
        code.get(next).is_some_and(|code| code.start < at.end)
    };
    edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
    let mut others: Vec<Edit> = Vec::new();
    for at in urls(text).into_iter().filter(|at| !is_code(at)) {
        let url = text.get(at.clone()).unwrap_or_default();
        if !is_source(url) {
            invented.push((at.start, url.to_owned()));
            others.push(Edit { becomes: format!("`{url}`"), at });
        }
    }
    for at in marks(text).into_iter().filter(|at| !is_code(at)) {
        invented.push((at.start, text.get(at.clone()).unwrap_or_default().to_owned()));
        let start = at.start - usize::from(text.get(..at.start).is_some_and(|b| b.ends_with(' ')));
        others.push(Edit { at: start..at.end, becomes: String::new() });
    }
    // Edits inside a link that is removed are not needed.
    others.retain(|other| {
        let next = edits.partition_point(|edit| edit.at.end <= other.at.start);
        edits.get(next).is_none_or(|edit| other.at.end <= edit.at.start)
    });
    edits.extend(others);
    edits.sort_by_key(|edit| (edit.at.start, edit.at.end));
    invented.sort();
    let mut out = Cleared::default();
    for (_, link) in invented {
        if !out.invented.contains(&link) {
            out.invented.push(link);
        }
    }
    let mut from = 0;
    for Edit { at, becomes } in edits {
        out.text.push_str(text.get(from..at.start).unwrap_or_default());
        out.text.push_str(&becomes);
        from = from.max(at.end);
    }
    out.text.push_str(text.get(from..).unwrap_or_default());
    out
}

/// Finds the URLs of a text, with or without a link around them: words with `://` or `www.`, and words that
/// look like a short URL without its scheme.
fn urls(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let ends_url = |c: char| c.is_whitespace() || c.is_control() || "<>\"`[](){}|\\".contains(c);
    let mut at = 0;
    for word in text.split_inclusive(ends_url) {
        let start = at;
        at += word.len();
        let body = word.trim_end_matches(ends_url);
        let lower = body.to_ascii_lowercase();
        let begin = if let Some(colon) = lower.find("://") {
            let scheme = lower.get(..colon).unwrap_or_default();
            scheme.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len()
        } else if let Some(host) = lower.find("www.").or_else(|| lower.find(".invalid/id/")) {
            let before = lower.get(..host).unwrap_or_default();
            before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "-.".contains(c)).len()
        } else {
            continue;
        };
        let url = body.get(begin..).unwrap_or_default();
        // Chinese text may follow a URL without a space; a character that is not a letter ends the URL.
        let is_inside = |c: char| c.is_alphanumeric() || (c.is_ascii() && !ends_url(c));
        let url = url.split(|c| !is_inside(c)).next().unwrap_or_default();
        let url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~']);
        if !url.is_empty() {
            found.push(start + begin..start + begin + url.len());
        }
    }
    found
}

/// Finds the marks that name a source by a number: `[citation:7]`.
fn marks(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, bracket) in text.match_indices(['[', '【']) {
        let rest = text.get(at + bracket.len()..).unwrap_or_default();
        if !rest.starts_with("citation") {
            continue;
        }
        let near = rest.get(..rest.floor_char_boundary(MAX_MARK)).unwrap_or_default();
        let Some((inner, _)) = near.split_once([']', '】']) else { continue };
        let is_mark = inner.contains([':', '：']) && inner.contains(|c: char| c.is_ascii_digit());
        let end = at + bracket.len() + inner.len();
        let close = text.get(end..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let is_words = text.get(end + close..).is_some_and(|rest| rest.starts_with('('));
        if is_mark && !is_words {
            found.push(at..end + close);
        }
    }
    found
}

/// The longest mark, in bytes.
const MAX_MARK: usize = 160;
