//! Makes a short preview of a payload, suited to its kind.

mod json;
mod lines;

use crate::{kind::without_number, names::defined_name};
use foldback_core::{PayloadKind, TokenCounter, thousands};
use std::{borrow::Cow, collections::BTreeSet};

/// Returns a short preview of a payload: never more than `max_tokens` by the counter `tokens`.
///
/// | kind | what is shown |
/// |---|---|
/// | text | the first and the last lines |
/// | log | the first error with its line number, then the first and the last lines |
/// | code | the names that it defines, then the first lines |
/// | JSON | the shape (keys, types, lengths), then the first items |
/// | binary | the size and the first bytes in hexadecimal |
///
/// Long lines are shortened, and the preview says what is left out. The same bytes give the same
/// text. [`BackendConfig`](crate::BackendConfig) has no influence on it; a light message has room
/// for 200 tokens.
#[must_use]
pub fn preview(
    bytes: &[u8],
    kind: PayloadKind,
    max_tokens: usize,
    tokens: &dyn TokenCounter,
) -> String {
    let fits = |text: &str| tokens.count(text) <= max_tokens;
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if kind != PayloadKind::Binary => Cow::Borrowed(text),
        _ => return clip(&hex_dump(bytes), fits),
    };
    let shown = match kind {
        PayloadKind::Json => match json::shape(&text, &fits) {
            Some(shape) => shape,
            None => lines::head_and_tail("", &text, true, &fits),
        },
        PayloadKind::Log => {
            let first = lines::first_error(&text).unwrap_or_default();
            lines::head_and_tail(&first, &text, true, &fits)
        }
        PayloadKind::Code => lines::head_and_tail(&defines(&text, &fits), &text, false, &fits),
        PayloadKind::Text | PayloadKind::Binary => lines::head_and_tail("", &text, true, &fits),
    };
    clip(&shown, fits)
}

/// Returns the names that code defines, in their order, in at most half of the available space.
fn defines(text: &str, fits: &dyn Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let mut left_out = 0;
    let mut seen = BTreeSet::new();
    // A name after the first megabyte does not help in a preview.
    let head = text.get(..floor(text, 1 << 20)).unwrap_or(text);
    for (word, name) in head.lines().filter_map(|line| defined_name(without_number(line))) {
        // A method that many classes have counts once.
        if !seen.insert((word, name)) {
            continue;
        }
        let lead = if out.is_empty() { "defines " } else { ", " };
        let more = format!("{out}{lead}{word} {name}");
        // A name alone may be as long as a text.
        if left_out > 0 || name.len() > 80 || !fits(&more.repeat(2)) {
            left_out += 1;
        } else {
            out = more;
        }
    }
    match (out.is_empty(), left_out) {
        (true, _) => out,
        (false, 0) => out + "\n",
        (false, more) => format!("{out} and {more} more\n"),
    }
}

fn hex_dump(bytes: &[u8]) -> String {
    let first: Vec<String> = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    match bytes.len() {
        0 => "0 bytes".to_owned(),
        size => format!("{} bytes, beginning {}", thousands(size as u64), first.join(" ")),
    }
}

/// Returns the longest beginning that fits, with a mark if it is not the whole.
fn clip(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let cut = |end: usize| text.get(..floor(text, end)).map(|head| format!("{head}{MARK}"));
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = (low + high).div_ceil(2);
        if cut(middle).is_some_and(|cut| fits(&cut)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    cut(low).filter(|cut| fits(cut)).unwrap_or_default()
}

/// Returns at most `most` bytes of one line, with a mark if it is not the whole.
fn shorten(line: &str, most: usize) -> Cow<'_, str> {
    match line.get(..floor(line, most)) {
        Some(head) if head.len() < line.len() => Cow::Owned(format!("{head}{MARK}")),
        _ => Cow::Borrowed(line),
    }
}

/// Returns the greatest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The mark for text that was cut.
const MARK: &str = "…";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind_of;
    use foldback_core::Estimate;
    use proptest::prelude::*;

    /// A counter that does not change when the estimate is recalibrated.
    struct Quarters;

    impl TokenCounter for Quarters {
        fn count(&self, text: &str) -> usize {
            text.len().div_ceil(4)
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let kind = kind_of(text.as_bytes());
        assert_eq!(preview(text.as_bytes(), kind, 60, &Quarters), expected);
    }

    #[test]
    fn bs1_a_short_payload_is_its_own_preview() {
        check("", "");
        check("one line", "one line");
        check("第一行\n第二行\n", "第一行\n第二行");
    }

    #[test]
    fn bs1_a_long_text_shows_head_and_tail() {
        let text: String = (1..=100).map(|i| format!("This is sentence {i}.\n")).collect();
        check(
            &text,
            "This is sentence 1.\nThis is sentence 2.\nThis is sentence 3.\nThis is sentence 4.\n\
             This is sentence 5.\nThis is sentence 6.\nThis is sentence 7.\n(90 lines left out)\n\
             This is sentence 98.\nThis is sentence 99.\nThis is sentence 100.",
        );
    }

    #[test]
    fn bs1_a_log_shows_its_first_error() {
        let mut text: String = (10..60).map(|i| format!("10:00:{i} INFO step {i}\n")).collect();
        text.insert_str(text.len() / 2, "10:00:35 ERROR no space on /dev/sda1\n");
        let shown = preview(text.as_bytes(), kind_of(text.as_bytes()), 60, &Quarters);
        assert!(shown.starts_with("line 26: 10:00:35 ERROR no space on /dev/sda1\n"), "{shown}");
        assert!(shown.contains("10:00:10 INFO step 10"), "{shown}");
        assert!(shown.ends_with("10:00:59 INFO step 59"), "{shown}");
    }

    #[test]
    fn bs1_code_shows_what_it_defines() {
        let mut text = "//! A queue.\n\nuse std::fmt;\n\n".to_owned();
        for name in ["push", "pop", "push", "len"] {
            text += &format!("pub fn {name}() {{\n{}}}\n", "    work();\n".repeat(40));
        }
        let shown = preview(text.as_bytes(), kind_of(text.as_bytes()), 60, &Quarters);
        assert!(shown.starts_with("defines fn push, fn pop, fn len\n//! A queue.\n"), "{shown}");
    }

    #[test]
    fn bs1_json_shows_shape_and_first_items() {
        let items: Vec<String> =
            (0..250).map(|i| format!(r#"{{"id": {i}, "name": "n{i}", "tags": ["a"]}}"#)).collect();
        check(
            &format!(r#"{{"total": 250, "items": [{}], "next": null}}"#, items.join(", ")),
            "object of 3 keys: total number, items array of 250 (object of 3 keys: id number, \
             name string, tags array of 1), next null\nitems[0]: {\"id\": 0, \"name\": \"n0\", \"tags\": [\"a\"]}\n\
             items[1]: {\"id\": 1, \"name\": \"n1\", \"tags\": [\"a\"]}",
        );
        check("[]", "[]");
    }

    #[test]
    fn bs1_binary_shows_size_and_first_bytes() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1_234_567).collect();
        let shown = preview(&bytes, kind_of(&bytes), 200, &Quarters);
        assert!(shown.starts_with("1,234,567 bytes, beginning 00 01 02 03 "), "{shown}");
        assert!(shown.ends_with(" 1e 1f"), "{shown}");
    }

    /// A counter that no estimate is tuned to.
    struct Characters;

    impl TokenCounter for Characters {
        fn count(&self, text: &str) -> usize {
            text.chars().count()
        }
    }

    fn texts() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            "\\PC{0,60}",
            "[a-z ]{0,400}",
            "[中文字符与标点。]{0,200}",
            "(pub )?fn [a-z]{1,30}\\(\\) \\{",
            "1[0-9]:00:00 (INFO|ERROR) [a-z]{1,9}",
        ];
        let lines = prop::collection::vec(line, 0..60).prop_map(|lines| lines.join("\n"));
        prop_oneof![
            lines.prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..300),
            prop::collection::vec((".{0,9}", 0..999_u32), 0..40).prop_map(|items| {
                let items: Vec<_> =
                    items.iter().map(|(a, b)| serde_json::json!({"键": b, "k": a})).collect();
                serde_json::json!({"items": items, "a": {"b": {"c": [[1], 2]}}})
                    .to_string()
                    .into_bytes()
            }),
        ]
    }

    proptest! {
        #[test]
        fn bs1_a_preview_keeps_its_budget(bytes in texts(), most in 0_usize..220) {
            let kind = kind_of(&bytes);
            let shown = preview(&bytes, kind, most, &Estimate);
            prop_assert!(Estimate.count(&shown) <= most);
            let shown = preview(&bytes, kind, most, &Characters);
            prop_assert!(Characters.count(&shown) <= most);
            // A kind that does not match the bytes is not a reason to fail.
            for kind in [PayloadKind::Json, PayloadKind::Code, PayloadKind::Log, PayloadKind::Binary] {
                prop_assert!(Estimate.count(&preview(&bytes, kind, most, &Estimate)) <= most);
            }
        }
    }
}
