//! Texts on one line.

/// Returns `text` in at most `max` characters, on one line: runs of white space and control
/// characters become one space, and an ellipsis takes the place of a missing end.
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
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

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\r\n c\u{2028}", 9), "a b c");
        assert_eq!(one_line("数据库 连接失败", 5), "数据库 连…");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("a\u{7}b", 9), "a b");
    }
}
