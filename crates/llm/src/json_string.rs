//! JSON strings in requests.

use foldback_core::{Escape, escape_into};

/// Writes `text` as a JSON string, with its quotes.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, Escape::Minimal, out);
    out.push('"');
}
