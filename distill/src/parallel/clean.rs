//! Text without the marks of Markdown and HTML.

use std::sync::LazyLock;

use regex::Regex;

/// What is replaced, in this order.
#[expect(clippy::expect_used, reason = "the patterns are constants, which a test compiles")]
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"(?s)<!--.*?-->", ""),
        (r"!\[[^\]]*\]\([^)]*\)", ""),
        (r"\[([^\]]*)\]\([^)]*\)", "$1"),
        (r"\[([^\]]*)\]\[[^\]]*\]", "$1"),
        (r"\{#[^}]*\}", ""),
        (r"</?[A-Za-z][^>]*>", ""),
        (r"https?://\S+", ""),
        (r"\*\*|__|`", ""),
        (r"&nbsp;", " "),
        (r"\s+", " "),
    ];
    let compiled = |(pattern, by)| (Regex::new(pattern).expect("a pattern"), by);
    patterns.map(compiled).into()
});

/// `text` in one line, with the words of its links, and without pictures, addresses and marks.
pub(super) fn clean(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, by) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *by).into_owned();
    }
    text.trim_matches([' ', '|', '>', '*', '#', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_off_and_words_stay() {
        let text = "> **使用**[模型](https://a.b/c)，见<br/>`ipc`。 ![图](x.png)\n{#anchor}";
        assert_eq!(clean(text), "使用模型，见ipc。");
        assert_eq!(clean("サーバー<!-- 隠す\n -->を [起動][1]"), "サーバーを 起動");
        assert_eq!(clean("서버를&nbsp;시작 https://x.y/z"), "서버를 시작");
    }
}
