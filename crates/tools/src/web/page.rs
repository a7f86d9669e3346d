//! The text of a server's answer.

use encoding_rs::Encoding;
use foldback_tool::ToolError;
use std::time::Instant;

/// A server's answer.
pub(super) struct Page {
    /// The media type as the server states it, if it does.
    pub(super) media_type: Option<String>,
    pub(super) bytes: Vec<u8>,
    /// Whether there was more.
    pub(super) is_cut: bool,
}

impl Page {
    /// Returns the text as it is, or for HTML what a person would read, if it can be extracted before `end`.
    ///
    /// # Errors
    /// When it is not text, or is HTML that takes too long or is nested too deep.
    pub(super) fn text(&self, end: Instant) -> Result<String, ToolError> {
        let html = is_html(self.media_type.as_deref());
        let said = self.media_type.as_deref().and_then(charset);
        // Only HTML is searched for a declaration of its encoding.
        let said = said.or(Some("utf-8").filter(|_| !html));
        let (mut text, had_errors) = foldback_html::decoded(&self.bytes, said);
        if self.is_cut && had_errors {
            // The last character may be incomplete.
            let whole = text.trim_end_matches('\u{FFFD}').len();
            text.to_mut().truncate(whole);
        }
        if self.media_type.is_none() && (had_errors || text.contains('\0')) {
            return Err(not_text("no type, and is not text"));
        }
        if !html {
            return Ok(text.into_owned());
        }
        foldback_html::text(&text, end)
            .map_err(|why| ToolError::permanent(format!("the page cannot be read: {why}")))
    }
}

/// Checks that content of this type is text.
///
/// # Errors
/// When it is not; the error says what it is instead.
pub(super) fn check(media_type: Option<&str>) -> Result<(), ToolError> {
    let Some(media_type) = media_type else { return Ok(()) };
    let name = essence(media_type);
    let is_text = name.starts_with("text/")
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| name.ends_with(suffix))
        || TEXTS.contains(&name.as_str());
    if is_text { Ok(()) } else { Err(not_text(&format!("the type {name}"))) }
}

/// Types that are text, although their names do not say so.
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
    ToolError::permanent(format!("the content has {what}; only text can be fetched"))
}

fn is_html(media_type: Option<&str>) -> bool {
    let name = media_type.map(essence);
    matches!(name.as_deref(), Some("text/html" | "application/xhtml+xml"))
}

/// Returns the type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns the label of its encoding, if it is a known one.
fn charset(media_type: &str) -> Option<&str> {
    let parameters = media_type.split(';').skip(1).filter_map(|part| part.split_once('='));
    let label = parameters
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"'))
        .next()?;
    Encoding::for_label(label.as_bytes()).map(|_| label)
}
