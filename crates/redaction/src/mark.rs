//! The mark that replaces a secret.

use crate::finding::{find, replaced};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The mark of a secret: its kind, and a number that is the same wherever the same secret was. Escaping changes none of
/// its characters.
#[must_use]
pub fn mark(kind: &str, number: u32) -> String {
    format!("[redacted {kind} {number}]")
}

/// A mark, with or without its number.
static MARK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\[redacted ([a-z0-9-]{1,40})(?: ([0-9]{1,10}))?\]").ok());

/// Returns whether a text contains a mark.
#[must_use]
pub fn has_marks(text: &str) -> bool {
    text.contains("[redacted ") && MARK.as_ref().is_some_and(|mark| mark.is_match(text))
}

/// Returns the text with the numbers of its marks removed, for comparing: they depend on what was seen before.
#[must_use]
pub fn without_numbers(text: &str) -> Cow<'_, str> {
    match &*MARK {
        Some(mark) if text.contains("[redacted ") => mark.replace_all(text, "[redacted $1]"),
        _ => Cow::Borrowed(text),
    }
}

/// The greatest number of a mark in a text that is not above `most`; 0 if no mark has one.
#[must_use]
pub fn highest_number(text: &str, most: u32) -> u32 {
    let Some(marks) = MARK.as_ref().filter(|_| text.contains("[redacted ")) else { return 0 };
    let number = |mark: regex::Captures<'_>| mark.get(2)?.as_str().parse().ok();
    marks.captures_iter(text).filter_map(number).filter(|n| *n <= most).max().unwrap_or(0)
}

/// Returns the text with marks without numbers in place of its secrets.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    replaced(text, &find(text), |one| format!("[redacted {}]", one.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_compare_without_their_numbers() {
        let one = mark("jwt", 3);
        assert_eq!(without_numbers(&format!("a {one} b")), "a [redacted jwt] b");
        assert_eq!(without_numbers("a [redacted by hand] b"), "a [redacted by hand] b");
        assert!(has_marks(&one) && !has_marks("[redacted by hand]"));
        assert_eq!(
            highest_number(&format!("{} {one} [redacted jwt]", mark("pem-private-key", 12)), 99),
            12
        );
        assert_eq!(highest_number("[redacted jwt 99] [redacted jwt 9999999999]", 98), 0);
        let text = "url postgres://app:t4Zq9LmX@db/x";
        assert_eq!(plain(text), "url postgres://app:[redacted url-password]@db/x");
        assert!(has_marks(&plain(text)));
    }
}
