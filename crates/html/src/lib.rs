//! Converts a page of HTML to the text that a person would read. The page may be hostile.
//!
//! Pages may be made to keep their reader busy. [`text`] bounds the time, the nesting of elements and the length of the
//! text, and reports what was too much.
//!
//! It is not a browser: it runs no scripts, applies no styles and fetches nothing.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! let end = Instant::now() + Duration::from_secs(10);
//! let page = "<title>x</title><h1>租约</h1><p>Renewed every <b>ten</b> seconds.";
//! assert_eq!(foldback_html::text(page, end)?, "# 租约\n\nRenewed every **ten** seconds.\n");
//! # Ok::<(), foldback_html::HtmlError>(())
//! ```

use encoding_rs::{Encoding, UTF_8};
use html2text::{Element, RcDom};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::io::{Error, ErrorKind, Read};
use std::sync::LazyLock;
use std::time::Instant;

/// The width of the text; a wider link or word is not broken.
const WIDTH: usize = 100;

/// How far into a page its own declaration of its encoding is looked for, as in browsers.
const HEAD: usize = 1_024;

/// The greatest nesting of elements, as in browsers: rendering takes time for each level.
const DEPTH: usize = 512;

/// The greatest length of a text relative to its HTML.
const LONGER: usize = 4;

/// The most bytes that are rendered of a page whose lists or quotations leave less than half of a line, if each of its
/// bytes were a line of its own.
const SET_IN: usize = 16 << 20;

/// The reason why a page cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HtmlError(String);

impl From<html2text::Error> for HtmlError {
    fn from(error: html2text::Error) -> Self {
        Self(match error {
            html2text::Error::IoError(why) => why.to_string(),
            other => other.to_string(),
        })
    }
}

/// Decodes the characters of a page: with the encoding of the label in `said`, or else the one that the page names, or
/// else UTF-8. Also returns whether some of the bytes are invalid in it.
#[must_use]
pub fn decoded<'b>(bytes: &'b [u8], said: Option<&str>) -> (Cow<'b, str>, bool) {
    let told = || {
        let head = bytes.get(..HEAD).unwrap_or(bytes);
        CHARSET_IN_PAGE
            .captures(head)?
            .get(1)
            .and_then(|label| Encoding::for_label(label.as_bytes()))
    };
    let said = said.and_then(|label| Encoding::for_label(label.as_bytes()));
    let (text, _, had_errors) = said.or_else(told).unwrap_or(UTF_8).decode(bytes);
    (text, had_errors)
}

/// Returns the text that a person would read in HTML, if it can be parsed before `end`. Headings begin with `#`.
///
/// # Errors
/// When it takes too long, or its elements are nested too deeply.
pub fn text(html: &str, end: Instant) -> Result<String, HtmlError> {
    let config =
        html2text::config::plain().no_table_borders().no_link_wrapping().allow_width_overflow();
    let page = config.parse_html(Until { end, bytes: html.as_bytes() })?;
    let Some(columns) = indentation(&page) else {
        return Err(HtmlError(format!("its elements are nested more than {DEPTH} levels deep")));
    };
    if columns > WIDTH / 2 && html.len().saturating_mul(columns) > SET_IN {
        return Err(HtmlError("its lists and quotations are nested too deeply".to_owned()));
    }
    let mut text = config.render_to_string(config.dom_to_render_tree(&page)?, WIDTH)?;
    let most = html.len().max(HEAD) * LONGER;
    if text.len() > most {
        // Nested lists are indented so far that little else is left.
        text.truncate(text.floor_char_boundary(most));
        text.push_str("\n[the rest of the page is cut off]");
    }
    Ok(text)
}

/// The most columns by which lists, quotations and headings indent the lines of a page; `None` if its elements are
/// nested too deeply. Lists with numbers that cannot be counted lose them.
fn indentation(page: &RcDom) -> Option<usize> {
    let mut most = 0;
    let mut next = vec![(page.document.clone(), 0, 0)];
    while let Some((node, depth, columns)) = next.pop() {
        if depth > DEPTH {
            return None;
        }
        let own = match &node.data {
            Element { name, attrs, .. } => match &*name.local {
                "ul" | "dd" | "blockquote" => 2,
                "ol" => {
                    // As in browsers; the renderer would count larger numbers up until they overflow.
                    let start = |value: &str| value.parse::<i32>().ok();
                    let mut attrs = attrs.borrow_mut();
                    attrs.retain(|a| &*a.name.local != "start" || start(&a.value).is_some());
                    let first = attrs.iter().find(|a| &*a.name.local == "start");
                    let first = first.and_then(|a| start(&a.value)).map_or(1, i64::from);
                    let items = i64::try_from(node.children.borrow().len()).unwrap_or(i64::MAX);
                    let columns = |number: i64| format!("{number}. ").len();
                    columns(first).max(columns(first.saturating_add(items)))
                }
                "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => 7,
                _ => 0,
            },
            _ => 0,
        };
        let columns = columns + own;
        most = most.max(columns);
        next.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1, columns)));
    }
    Some(most)
}

/// Bytes that can be read until a deadline. A parser asks for them piece by piece, and takes longer for a piece the
/// deeper it is in a page; this makes it end.
struct Until<'a> {
    end: Instant,
    bytes: &'a [u8],
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        if Instant::now() >= self.end {
            return Err(Error::new(ErrorKind::TimedOut, "it takes too long to parse"));
        }
        self.bytes.read(into)
    }
}

#[expect(clippy::expect_used, reason = "the pattern is fixed, and a test uses it")]
static CHARSET_IN_PAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)<meta\s[^>]*?charset\s*=\s*["']?\s*([a-z0-9_:.-]+)"#).expect("a pattern")
});

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::time::Duration;

    fn page(html: &str, time: Duration) -> Result<String, String> {
        text(html, Instant::now() + time).map_err(|error| error.to_string())
    }

    /// S13: a page that would keep a thread busy for hours is abandoned.
    #[test]
    fn s13_a_deep_page_is_given_up() {
        let time = Duration::from_secs(60);
        for tag in ["<div>", "<b>", "<ul><li>", "<table><tr><td>"] {
            let deep = format!("{}雨", tag.repeat(1_000));
            let why = page(&deep, time).unwrap_err();
            assert!(why.contains("nested more than 512 levels deep"), "{tag}: {why}");
        }
        assert_eq!(page(&format!("{}雨", "<div>".repeat(400)), time).unwrap().trim(), "雨");
        // Adjacent elements, and elements that are never closed.
        let wide = page(&"<p>雨<br><div></div>".repeat(1_000), time).unwrap();
        assert_eq!(wide.matches('雨').count(), 1_000);
        let lists = format!("{}{}", "<ul><li>".repeat(45), "雨 ".repeat(10_000));
        let told = page(&lists, time).unwrap();
        assert!(told.len() < lists.len() * 5, "{}", told.len());
        assert!(told.ends_with("[the rest of the page is cut off]"));
        // Content that would be indented further than it is long, again and again.
        let numbered = "<ol start=-2000000000><li>";
        let why = page(&format!("{}{}", numbered.repeat(20), "雨 ".repeat(50_000)), time);
        assert!(why.unwrap_err().contains("lists and quotations are nested too deeply"));
        for tag in ["<blockquote>", "<ul><li>", "<ol><li>"] {
            let set_in = format!("{}{}", tag.repeat(200), "雨 ".repeat(50_000));
            let why = page(&set_in, time).unwrap_err();
            assert!(why.contains("lists and quotations are nested too deeply"), "{tag}: {why}");
            let few = format!("{}{}", tag.repeat(20), "雨 ".repeat(50_000));
            let told = page(&few, time).unwrap();
            assert!(told.matches('雨').count() > 10_000, "{tag}: {}", told.len());
        }
        let why = page("<p>雨", Duration::ZERO).unwrap_err();
        assert!(why.contains("it takes too long to parse"), "{why}");
    }

    /// S13: a list that begins at the largest number reads like one that begins at 1.
    #[test]
    fn s13_a_list_that_cannot_be_counted_is_told() {
        let time = Duration::from_secs(60);
        for start in ["9223372036854775807", "-9223372036854775808", "99999999999999999999", "雨"]
        {
            let list = format!("<ol start={start}><li>北<li>南</ol>");
            assert_eq!(page(&list, time).unwrap().trim(), "1. 北\n2. 南", "{start}");
        }
        let list = page("<ol start=2147483647><li>北<li>南</ol>", time).unwrap();
        assert_eq!(list.trim(), "2147483647. 北\n2147483648. 南");
    }

    #[test]
    fn a_page_tells_its_characters() {
        let of = |bytes: &[u8], said| {
            let (text, had_errors) = decoded(bytes, said);
            (text.into_owned(), had_errors)
        };
        let page = "<meta charset=gbk><p>租约".to_owned();
        let (gbk, _, _) = encoding_rs::GBK.encode(&page);
        assert_eq!(of(&gbk, None), (page.clone(), false));
        assert_eq!(of(page.as_bytes(), Some("utf-8")), (page.clone(), false));
        assert!(of(&gbk, Some("utf-8")).1, "they are others");
        assert_eq!(of("雨".as_bytes(), None), ("雨".to_owned(), false));
    }
}
