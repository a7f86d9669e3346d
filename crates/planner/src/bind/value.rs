//! The value of a reference.

use crate::template::quote_into;
use std::borrow::Cow;

/// The value of a reference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BoundValue<'a> {
    /// JSON.
    Json {
        /// As it was written.
        json: Cow<'a, str>,
        /// Its form as text, if that is known to differ from compact JSON.
        text: Option<&'a str>,
    },
    /// Text.
    Text(Cow<'a, str>),
}

impl BoundValue<'_> {
    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Json { json, .. } => json.trim_start().starts_with('"'),
        }
    }

    /// Returns the value as JSON.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Json { json, .. } => compact_into(json, out),
            Self::Text(text) => quote_into(text, out),
        }
    }

    /// Returns the value as text: all of a text byte for byte, strings bare, everything else as compact
    /// JSON.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json { text: Some(text), .. } => Cow::Borrowed(text),
            Self::Json { json, .. } => {
                let inside = json.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                if let Some(inside) = inside {
                    return foldback_core::decode_literal(inside);
                }
                let mut text = String::new();
                compact_into(json, &mut text);
                Cow::Owned(text)
            }
        }
    }
}

/// Returns JSON without the space between its tokens; strings and numbers keep their text.
pub(crate) fn compact_into(json: &str, out: &mut String) {
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
    }
}
