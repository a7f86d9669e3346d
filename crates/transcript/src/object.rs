//! Reads JSON values one level deep, and writes them.

pub(crate) use foldback_core::Object;

/// Appends `text` to `out` as a JSON string.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    foldback_core::escape_into(text, foldback_core::Escape::Minimal, out);
    out.push('"');
}

/// Writes a JSON text on one line: a line break in JSON is never inside a string, so a space says
/// the same.
pub(crate) fn push_one_line(json: &str, out: &mut String) {
    for (i, part) in json.split(['\n', '\r']).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(part);
    }
}
