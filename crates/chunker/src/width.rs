//! Full-width letters, half-width kana and decomposed accents in their usual form, so that the same
//! word is the same however it was typed.
//!
//! Marks keep their width: they show where a sentence of Chinese or Japanese ends, and are not read
//! as marks of a path.

use foldback_core::script::is_jamo;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// Returns `text` with its letters and digits in their usual width. Full-width marks are folded if
/// they join letters and digits that are full-width, too: ＯＲＤ－４４２０１ is ORD-44201.
pub(crate) fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(|c| is_wide(c) || is_parted(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let joins = is_wide_mark(c) && is_wide(before) && chars.peek().is_some_and(|c| is_wide(*c));
        if joins || is_wide(c) || is_half_width(c) {
            out.extend([c].into_iter().nfkc());
        } else {
            out.push(c);
        }
        before = c;
    }
    Cow::Owned(out.nfc().collect())
}

/// Returns whether `c` is a full-width letter or digit.
fn is_wide(c: char) -> bool {
    matches!(c, '０'..='９' | 'Ａ'..='Ｚ' | 'ａ'..='ｚ')
}

/// Returns whether `c` is a full-width mark that may be inside a name.
fn is_wide_mark(c: char) -> bool {
    matches!(c, '－' | '．' | '／' | '＿' | '＠' | '＃')
}

/// Half-width kana and Korean letters.
fn is_half_width(c: char) -> bool {
    matches!(c, '\u{ff66}'..='\u{ffdc}')
}

/// Returns whether `c` is a character that may combine with the one before it: accents, the marks of
/// voiced kana, Korean letters. Some systems write the names of files so.
fn is_parted(c: char) -> bool {
    is_half_width(c) || is_jamo(c) || matches!(c, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BL10: width is the appearance of a word, not its identity.
    #[test]
    fn bl10_width_is_folded() {
        for (text, expected) in [
            ("ＯＲＤ－４４２０１のｄａｔａ．ｔｘｔ", "ORD-44201のdata.txt"),
            ("ﾃﾞｰﾀﾍﾞｰｽｶﾞｵﾁﾏｼﾀ。ﾌｯｷｭｳ", "データベースガオチマシタ。フッキュウ"),
            ("か\u{3099}ん e\u{301} \u{1112}\u{1161}\u{11ab}", "がん é 한"),
            ("（ＡＰＩ）は？！", "（API）は？！"),
            ("９．明日", "9．明日"),
            ("…½™ \u{a0}“", "…½™ \u{a0}“"),
        ] {
            assert_eq!(folded(text), expected);
        }
        assert!(matches!(folded("今天，这样…"), Cow::Borrowed(_)));
    }
}
