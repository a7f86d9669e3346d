//! JSON values, read one level deep, and written.

pub(crate) use foldback_core::Object;

/// Writes `text` as a JSON string behind what is in `out`.
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
