//! The parts of a text that may be names, among Chinese, Japanese or Korean text.
//!
//! Such text has no spaces around a name, and a name may contain such text, too. Two things separate them: quotes
//! around a whole name, and the marks `/`, `.`, `_` and `-`, which join parts of one name. A part whose beginning
//! cannot be determined is not a name: in 打开会议纪要.docx, the name may be any end.

use crate::names::{has_extension, is_file};
use crate::terms::is_cjk;
use foldback_core::script::is_hangul;

/// Calls `take` with each part of `text` that may be a name, in order.
pub(crate) fn each_part<'t>(text: &'t str, mut take: impl FnMut(&'t str)) {
    let belongs = |c: char| is_name_char(c) || is_cjk(c);
    let mut rest = 0;
    while let Some(found) = text.get(rest..).and_then(|rest| rest.find(belongs)) {
        let start = rest + found;
        let length = text[start..].find(|c| !belongs(c)).unwrap_or(text.len() - start);
        let (run, behind) = text[start..].split_at(length);
        if run.contains(is_cjk) {
            let before = text[..start].chars().next_back();
            mixed(run, before, behind.chars().next(), &mut take);
        } else {
            take(run);
        }
        rest = start + length;
    }
}

fn is_name_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric()
            || matches!(c, '_' | '.' | '/' | '-' | ':' | '#' | '@' | '~' | '+' | '%');
    }
    c.is_alphanumeric() && !is_cjk(c)
}

/// The names in a run of characters of names and CJK characters, between what surrounds it.
fn mixed<'t>(
    run: &'t str,
    before: Option<char>,
    behind: Option<char>,
    take: &mut impl FnMut(&'t str),
) {
    let opens = before.is_some_and(|c| "\"'`“‘「『《".contains(c));
    let closes = behind.is_some_and(|c| "\"'`”’」』》\\".contains(c));
    if opens && closes && is_file(run) {
        take(run);
        return;
    }
    // Korean has spaces between words.
    let is_korean = run.starts_with(is_hangul);
    let is_word = is_korean && before.is_none_or(char::is_whitespace);
    let mut name = (opens || is_word).then_some(0);
    let mut at = 0;
    while let Some(c) = run[at..].chars().next() {
        let is_part = |other: char| is_cjk(other) == is_cjk(c);
        let end = run[at..].find(|c| !is_part(c)).map_or(run.len(), |length| at + length);
        if is_cjk(c) {
            if let Some(start) = name
                && !goes_on(&run[start..at], &run[end..])
            {
                take(&run[start..at]);
                name = None;
            }
        } else if name.is_none() {
            name = beginning(&run[at..end], at == 0).map(|skipped| at + skipped);
        }
        at = end;
    }
    if let Some(start) = name {
        take(&run[start..]);
    }
}

/// Returns whether the CJK characters between `name` and `behind` belong to the name.
fn goes_on(name: &str, behind: &str) -> bool {
    let joined_behind = behind.starts_with(['.', '_', '-']);
    if name.is_empty() {
        return joined_behind || behind.starts_with('/');
    }
    let is_path = name.contains('/');
    let joined_before = name.ends_with('/') || (name.ends_with(['_', '-']) && is_path);
    let joined = joined_before || (joined_behind && (is_path || name.ends_with(['_', '-'])));
    joined && !has_extension(name)
}

/// Returns where in `part` a name begins; `part` follows CJK characters of no name unless it is the first. `None` when
/// the part is the end of a name.
fn beginning(part: &str, is_first: bool) -> Option<usize> {
    if is_first || part.starts_with("./") || part.contains("://") {
        return Some(0);
    }
    if part.starts_with('/') {
        // A rooted path; otherwise the slash belongs to a folder whose name cannot be determined.
        return Some(usize::from(part.matches('/').count() < 2));
    }
    (!part.starts_with(['.', '_', '-']) || !has_extension(part)).then_some(0)
}

#[cfg(test)]
mod tests {
    use crate::names::{Kind, each_name};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        each_name(text, |kind, name| {
            assert!(matches!(kind, Kind::File), "{kind:?} {name}");
            found.push(name);
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_letter_of_any_alphabet_is_part_of_a_path_and_no_chinese_one() {
        check("see docs/café.md and src/größe.rs now", &["docs/café.md", "src/größe.rs"]);
        check("看src/main.rs的错误", &["src/main.rs"]);
    }

    /// BL10: a quoted name is whole.
    #[test]
    fn bl10_a_quoted_name_is_whole() {
        check(r#"{"path":"报告/会议纪要.docx"}"#, &["报告/会议纪要.docx"]);
        check(r#"{"path": "/srv/数据/2024总结.xlsx"}"#, &["/srv/数据/2024总结.xlsx"]);
        check(r#"{\"path\": \"報告v2.pdf\"}"#, &["報告v2.pdf"]);
        check("文件“报告.pdf”和foo。rs", &["报告.pdf"]);
        check("「資料/売上.xlsx」を開いて", &["資料/売上.xlsx"]);
        check(r#"{"command":"pytest 测试/test_登录.py"}"#, &["test_登录.py"]);
    }

    /// BL10: CJK text belongs to a path after its slashes.
    #[test]
    fn bl10_paths_hold_cjk_text() {
        check("看 src/用户/main.rs:12", &["src/用户/main.rs"]);
        check("看src/用户/main.rs和src/b.rs吧", &["src/用户/main.rs", "src/b.rs"]);
        check(
            "请看 https://example.org/文档/指南.html好吗",
            &["https://example.org/文档/指南.html"],
        );
        check("在/srv/数据/2024总结.xlsx里", &["/srv/数据/2024总结.xlsx"]);
        check("跑 test_登录.py", &["test_登录.py"]);
        check("보고서.docx를 열고 자료/표.csv도", &["보고서.docx", "자료/표.csv"]);
        check("佐々木の src/佐々木.rs", &["src/佐々木.rs"]);
    }

    /// BL10: if nothing shows the beginning of a name, there is none, and no wrong one.
    #[test]
    fn bl10_a_part_of_a_name_is_no_name() {
        check("打开会议纪要.docx", &[]);
        check("打开报告-v2.pdf和报告_v2.pdf", &[]);
        check("打开报告/会议纪要.docx", &["会议纪要.docx"]);
        check("读取data.txt文件，/etc/ssl/certs也读", &["data.txt", "/etc/ssl/certs"]);
        check("读/etc/ssl/a.pem和/etc/ssl/certs", &["/etc/ssl/a.pem", "/etc/ssl/certs"]);
    }
}
