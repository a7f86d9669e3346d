//! The text of what a server answered.

use encoding_rs::{Encoding, UTF_8};
use foldback_tool::ToolError;
use html2text::{Element, RcDom};
use regex::bytes::Regex;
use std::io::{Error, ErrorKind, Read};
use std::sync::LazyLock;
use std::time::Instant;

/// How wide text is set; a link or a word that is wider is not broken.
const WIDTH: usize = 100;

/// How far into a page its own word on its characters is looked for, as browsers do.
const HEAD: usize = 1_024;

/// How deep elements may lie in each other, as in browsers: what is set takes time for each level.
const DEPTH: usize = 512;

/// How many times as long as its HTML a text may be.
const LONGER: usize = 4;

/// How much is set at most of a page whose lists or quotations leave less than half of a line, in bytes,
/// were each of its bytes a line of its own.
const SET_IN: usize = 16 << 20;

/// What a server answered.
pub(super) struct Page {
    /// The media type as the server says it, if it does.
    pub(super) media_type: Option<String>,
    pub(super) bytes: Vec<u8>,
    /// Whether there was more.
    pub(super) is_cut: bool,
}

impl Page {
    /// The text, as it stands there; of HTML what a person would read, if it is understood until `end`.
    ///
    /// # Errors
    /// When it is no text, or HTML that takes too long or lies too deep.
    pub(super) fn text(&self, end: Instant) -> Result<String, ToolError> {
        let html = is_html(self.media_type.as_deref());
        let (mut text, encoding, had_errors) = self.encoding(html).decode(&self.bytes);
        if self.is_cut && had_errors {
            // The last character may be cut.
            let whole = text.trim_end_matches('\u{FFFD}').len();
            text.to_mut().truncate(whole);
        }
        if self.media_type.is_none() && (encoding != UTF_8 || had_errors || text.contains('\0')) {
            return Err(not_text("no type, and is no text"));
        }
        if !html {
            return Ok(text.into_owned());
        }
        read(&text, end).map_err(|error| {
            let why = match &error {
                html2text::Error::IoError(why) => why as &dyn std::fmt::Display,
                other => other,
            };
            ToolError::permanent(format!("the page cannot be read: {why}"))
        })
    }

    /// As the server says, or the page itself, or as most pages are.
    fn encoding(&self, html: bool) -> &'static Encoding {
        let said = self.media_type.as_deref().and_then(charset);
        let told = || {
            let head = &self.bytes[..self.bytes.len().min(HEAD)];
            let label = html.then(|| CHARSET_IN_PAGE.captures(head)?.get(1)).flatten()?;
            Encoding::for_label(label.as_bytes())
        };
        said.or_else(told).unwrap_or(UTF_8)
    }
}

/// What a person would read of HTML.
fn read(html: &str, end: Instant) -> Result<String, html2text::Error> {
    let config =
        html2text::config::plain().no_table_borders().no_link_wrapping().allow_width_overflow();
    let page = config.parse_html(Until { end, bytes: html.as_bytes() })?;
    let Some(columns) = indentation(&page) else {
        let why = format!("its elements lie more than {DEPTH} deep in each other");
        return Err(Error::other(why).into());
    };
    if columns > WIDTH / 2 && html.len().saturating_mul(columns) > SET_IN {
        return Err(Error::other("its lists and quotations lie too deep in each other").into());
    }
    let mut text = config.render_to_string(config.dom_to_render_tree(&page)?, WIDTH)?;
    let most = html.len().max(HEAD) * LONGER;
    if text.len() > most {
        // Lists in lists are set in so far that little else is left.
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str("\n[the page is longer than can be told]");
    }
    Ok(text)
}

/// How many columns the lines of a page are set in at most, by lists, quotations and headings; `None`
/// where its elements lie too deep in each other. Lists whose numbers nobody can count on lose them.
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
                    // As in browsers; what sets the list adds to larger ones until they overflow.
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

/// Bytes that can be read until then. A parser asks for them piece by piece, and takes the longer for a
/// piece the deeper it is in a page: so that it ends.
struct Until<'a> {
    end: Instant,
    bytes: &'a [u8],
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        if Instant::now() >= self.end {
            return Err(Error::new(ErrorKind::TimedOut, "it takes too long to understand"));
        }
        self.bytes.read(into)
    }
}

/// Whether something of this type is text.
///
/// # Errors
/// Says what it is instead.
pub(super) fn check(media_type: Option<&str>) -> Result<(), ToolError> {
    let Some(media_type) = media_type else { return Ok(()) };
    let name = essence(media_type);
    let is_text = name.starts_with("text/")
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| name.ends_with(suffix))
        || TEXTS.contains(&name.as_str());
    if is_text { Ok(()) } else { Err(not_text(&format!("the type {name}"))) }
}

/// Types that are text, and do not say so.
const TEXTS: [&str; 10] = [
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/toml",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

fn not_text(what: &str) -> ToolError {
    ToolError::permanent(format!("what stands there has {what}; only text can be fetched"))
}

fn is_html(media_type: Option<&str>) -> bool {
    let name = media_type.map(essence);
    matches!(name.as_deref(), Some("text/html" | "application/xhtml+xml"))
}

/// The type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn charset(media_type: &str) -> Option<&'static Encoding> {
    let parameters = media_type.split(';').skip(1).filter_map(|part| part.split_once('='));
    let label = parameters
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"'))
        .next()?;
    Encoding::for_label(label.as_bytes())
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
        let media_type = Some("text/html; charset=utf-8".to_owned());
        let page = Page { media_type, bytes: html.into(), is_cut: false };
        page.text(Instant::now() + time).map_err(|error| error.message)
    }

    /// S13: a page that would keep a thread busy for hours is given up.
    #[test]
    fn s13_a_deep_page_is_given_up() {
        let time = Duration::from_secs(60);
        for tag in ["<div>", "<b>", "<ul><li>", "<table><tr><td>"] {
            let deep = format!("{}雨", tag.repeat(1_000));
            let why = page(&deep, time).unwrap_err();
            assert!(why.contains("lie more than 512 deep"), "{tag}: {why}");
        }
        assert_eq!(page(&format!("{}雨", "<div>".repeat(400)), time).unwrap().trim(), "雨");
        // Elements beside each other, and such as nobody closes.
        let wide = page(&"<p>雨<br><div></div>".repeat(1_000), time).unwrap();
        assert_eq!(wide.matches('雨').count(), 1_000);
        let lists = format!("{}{}", "<ul><li>".repeat(45), "雨 ".repeat(10_000));
        let text = page(&lists, time).unwrap();
        assert!(text.len() < lists.len() * 5, "{}", text.len());
        assert!(text.ends_with("[the page is longer than can be told]"));
        // What would be set in further than it is long, again and again.
        let numbered = "<ol start=-2000000000><li>";
        let why = page(&format!("{}{}", numbered.repeat(20), "雨 ".repeat(50_000)), time);
        assert!(why.unwrap_err().contains("lists and quotations lie too deep"));
        for tag in ["<blockquote>", "<ul><li>", "<ol><li>"] {
            let set_in = format!("{}{}", tag.repeat(200), "雨 ".repeat(50_000));
            let why = page(&set_in, time).unwrap_err();
            assert!(why.contains("lists and quotations lie too deep"), "{tag}: {why}");
            let few = format!("{}{}", tag.repeat(20), "雨 ".repeat(50_000));
            let told = page(&few, time).unwrap();
            assert!(told.matches('雨').count() > 10_000, "{tag}: {}", told.len());
        }
        let why = page("<p>雨", Duration::ZERO).unwrap_err();
        assert!(why.contains("it takes too long to understand"), "{why}");
    }

    /// S13: a list that begins at the end of all numbers is told like one that begins at 1.
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
}
