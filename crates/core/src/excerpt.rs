//! Beginnings and ends of texts, cut between characters.

use std::borrow::Cow;

/// Returns the first `count` characters of a text.
#[must_use]
pub fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Returns the last `count` characters of a text.
#[must_use]
pub fn last_chars(text: &str, count: usize) -> &str {
    let Some(before) = count.checked_sub(1) else { return "" };
    text.char_indices().nth_back(before).and_then(|(start, _)| text.get(start..)).unwrap_or(text)
}

/// Returns the first `count` characters of a text, followed by an ellipsis if there are more.
#[must_use]
pub fn beginning(text: &str, count: usize) -> Cow<'_, str> {
    match first_chars(text, count) {
        whole if whole.len() == text.len() => Cow::Borrowed(text),
        cut => Cow::Owned(format!("{cut}…")),
    }
}

/// Returns a text in at most `count` characters, the last of which is an ellipsis if its end is
/// missing.
#[must_use]
pub fn abbreviated(text: &str, count: usize) -> Cow<'_, str> {
    if first_chars(text, count).len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", first_chars(text, count.saturating_sub(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (text, count, first, last, begins, short) in [
            ("数据库连接", 3, "数据库", "库连接", "数据库…", "数据…"),
            ("数据库", 3, "数据库", "数据库", "数据库", "数据库"),
            ("ab", 0, "", "", "…", "…"),
            ("", 2, "", "", "", ""),
        ] {
            let found = (first_chars(text, count), last_chars(text, count));
            assert_eq!(found, (first, last), "{text}");
            assert_eq!(
                (beginning(text, count), abbreviated(text, count)),
                (begins.into(), short.into())
            );
        }
    }
}
