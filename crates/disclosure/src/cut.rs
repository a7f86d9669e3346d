//! Texts cut to a bound, at a character.

use foldback_core::TokenCounter;

/// `text` in at most `max` tokens, with an ellipsis where its end is gone. Costs a few counts of
/// what is kept, however long `text` is.
pub(crate) fn cut_tokens(text: &str, max: usize, tokens: &dyn TokenCounter) -> String {
    // Nothing worth keeping has over 16 bytes a token, so no more than this is ever looked at.
    let bound = text.floor_char_boundary(max.saturating_mul(16));
    let head = text.get(..bound).unwrap_or(text);
    if head.len() == text.len() && tokens.count(text) <= max {
        return text.to_owned();
    }
    // Counts grow with the text, so the longest head that fits is found by halving.
    let ends: Vec<usize> = head.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let kept = |end: usize| head.get(..end).unwrap_or("").trim_end();
    let fitting = ends.partition_point(|&end| tokens.count(kept(end)) < max);
    let end = fitting.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    format!("{}…", kept(end))
}

/// `text` in at most `max` characters, on one line: runs of white space and control characters
/// become one space, and an ellipsis stands where the end is gone.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut chars = 0;
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            space = !out.is_empty();
            continue;
        }
        if chars + usize::from(space) >= max {
            out.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
            chars += 1;
        }
        out.push(c);
        chars += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Estimate;

    #[test]
    fn cuts_at_characters_within_the_bound() {
        for text in ["short", &"数据库连接失败，".repeat(60), &"path/to/file.rs ".repeat(300), ""]
        {
            for max in [1, 5, 40] {
                let cut = cut_tokens(text, max, &Estimate);
                assert!(Estimate.count(&cut) <= max + 1, "{max}: {cut}");
            }
        }
        assert_eq!(cut_tokens("short", 5, &Estimate), "short");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\r\n c\u{2028}", 9), "a b c");
        assert_eq!(one_line("数据库 连接失败", 5), "数据库 连…");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("a\u{7}b", 9), "a b");
    }
}
