//! Texts that a server reads as control tokens, or a model as parts of the format.

use crate::late_instruction::begins_with_tag;
use std::borrow::Cow;

/// The tags of the format, and the end-of-text tokens of common models.
const TAGS: [&str; 8] = [
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<tools>",
    "</tools>",
    "<s>",
    "</s>",
];

/// The longest name of a control token such as `<|im_start|>`.
const LONGEST_NAME: usize = 48;

/// Makes a text inert, so that it contains no control token or tag: a backslash follows each such `<`.
pub(super) fn inert(text: &str) -> Cow<'_, str> {
    replace(text, "<\\", |rest| is_tag(rest) || is_control(rest))
}

/// Makes control tokens in standing instructions inert; tags of the format may be explained there.
pub(super) fn without_control(text: &str) -> Cow<'_, str> {
    replace(text, "<\\", is_control)
}

/// Makes JSON inert, in which a `<` occurs only in strings: the same value without control tokens or tags.
pub(super) fn inert_json(json: &str) -> Cow<'_, str> {
    replace(json, "\\u003c", |rest| is_tag(rest) || is_control(rest))
}

/// Returns a tool's name as a JSON string without its first quote: a declaration, the beginning of a
/// call and a grammar all use exactly these bytes.
pub(super) fn quoted_name(name: &str) -> String {
    inert_json(&crate::json::string(name)).split_at(1).1.to_owned()
}

fn replace<'t>(text: &'t str, with: &str, is_special: impl Fn(&str) -> bool) -> Cow<'t, str> {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices('<') {
        let (before, rest) = text.split_at(at);
        if is_special(rest) {
            out.push_str(before.get(from..).unwrap_or_default());
            out.push_str(with);
            from = at + 1;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

fn is_tag(text: &str) -> bool {
    TAGS.iter().any(|tag| text.starts_with(tag)) || begins_with_tag(text)
}

/// Returns whether the text begins with `<|`, a name, and `|>`.
fn is_control(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("<|") else { return false };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    (1..=LONGEST_NAME).contains(&name) && rest.split_at(name).1.starts_with("|>")
}
