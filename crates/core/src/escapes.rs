//! The escapes of JSON in a text that is searched and described as it is.

use std::borrow::Cow;

/// Returns whether a text begins as JSON does, or as a value that Python prints.
///
/// ```
/// use foldback_core::is_json_like;
///
/// assert!(is_json_like(r#" {"title": "a\nb"}"#));
/// assert!(is_json_like(r#"[{"title": "a\nb"}]"#));
/// assert!(is_json_like(r#""title": "a\nb","#));
/// assert!(!is_json_like(r"[INFO] C:\new\temp"));
/// assert!(!is_json_like(r#""C:\new" is missing"#));
/// ```
#[must_use]
pub fn is_json_like(text: &str) -> bool {
    let text = text.trim_start();
    if let Some(inside) = text.strip_prefix('{') {
        return inside.trim_start().starts_with(['"', '\'']);
    }
    if let Some(inside) = text.strip_prefix('[') {
        return inside.trim_start().starts_with(['{', '[', '"', '\'']);
    }
    let Some(string) = text.strip_prefix('"') else { return false };
    let mut is_escaped = false;
    let mut after_string = string.trim_start_matches(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        !ends
    });
    after_string = after_string.strip_prefix('"').unwrap_or_default().trim_start();
    after_string.is_empty() || after_string.starts_with([':', ',', '}', ']'])
}

/// Returns a text with its characters in place of `\uXXXX`. If it is JSON, line ends and tabs are white space of the
/// same length; elsewhere `\n` may be a part of a Windows path. After each character `pad` gets the number of bytes by
/// which it is shorter than its escape.
///
/// ```
/// use foldback_core::unescaped;
///
/// let plain = |text, is_json| unescaped(text, is_json, |_, _| {}).into_owned();
/// assert_eq!(plain(r"M\u00fcller \u4f1a\ud83d\ude00", false), "Müller 会😀");
/// assert_eq!(plain(r"a\nb C:\\new \", true), r"a  b C:\\new \".replace("  ", " \n"));
/// assert_eq!(plain(r"C:\new\users", false), r"C:\new\users");
/// ```
pub fn unescaped(
    text: &str,
    is_json: bool,
    mut pad: impl FnMut(&mut String, usize),
) -> Cow<'_, str> {
    if !text.contains(if is_json { "\\" } else { "\\u" }) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (escaped_char(escape), escape.as_bytes().get(1)) {
            (Some((c, length)), _) => {
                out.push(c);
                pad(&mut out, length.saturating_sub(c.len_utf8()));
                length
            }
            (None, Some(b'n' | b'r' | b't')) if is_json => {
                out.push_str(" \n");
                2
            }
            // In JSON within JSON a character has two backslashes.
            (None, Some(b'\\')) if is_json && escaped_char(&escape[1..]).is_none() => {
                out.push_str("\\\\");
                2
            }
            _ => {
                out.push('\\');
                1
            }
        };
        rest = &escape[length..];
    }
    Cow::Owned(out + rest)
}

/// Returns the character that `text` begins with as `\uXXXX` or as a pair of surrogates, and how long that is.
fn escaped_char(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let code = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        let is_hex = code.bytes().all(|digit| digit.is_ascii_hexdigit());
        u16::from_str_radix(code, 16).ok().filter(|_| is_hex)
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 6));
    }
    let c = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((c, 12))
}
