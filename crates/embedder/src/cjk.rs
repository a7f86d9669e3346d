//! Chinese, Japanese and Korean: the rows that a text in them adds up.

use std::borrow::Cow;
use std::sync::LazyLock;

use foldback_core::script::{
    is_cjk_mark, is_hangul, is_ideograph, is_ideograph_mark, is_jamo, is_kana, is_small_katakana,
};
use unicode_normalization::UnicodeNormalization;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// The number of a unit, which is that of its row.
    Unit(usize),
    /// The text between the letters of these scripts.
    Other(&'t str),
}

/// Returns whether a text holds a letter of these scripts, in any of its forms.
pub(crate) fn is_in(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(is_letter_in_some_form)
}

/// Returns whether it is a letter of these scripts, or a form that [`normal`] turns into one.
pub(crate) fn is_letter_in_some_form(c: char) -> bool {
    is_letter(c) || is_jamo(c) || is_small_katakana(c) || matches!(c, '\u{ff66}'..='\u{ffdc}')
}

/// Returns the text with one form for each letter (NFKC), in which the units are written.
pub(crate) fn normal(text: &str) -> Cow<'_, str> {
    match unicode_normalization::is_nfkc_quick(text.chars()) {
        unicode_normalization::IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfkc().collect()),
    }
}

/// Passes the parts of a text in its normal form to `sink`, in order: from a run of letters of these scripts the
/// longest unit, then the longest of the rest, and so on. A letter that is not a unit yields nothing, and neither does
/// a mark such as 、.
pub(crate) fn for_each_part<'t>(text: &'t str, mut sink: impl FnMut(Part<'t>)) {
    let units = Units::get();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if is_letter(first) {
            let found = units.longest_prefix(rest);
            if let Some((unit, _)) = found {
                sink(Part::Unit(unit));
            }
            found.map_or(first.len_utf8(), |(_, length)| length)
        } else if is_cjk_mark(first) {
            first.len_utf8()
        } else {
            let end = rest.find(|c| is_letter(c) || is_cjk_mark(c)).unwrap_or(rest.len());
            sink(Part::Other(rest.get(..end).unwrap_or_default()));
            end
        };
        rest = rest.get(length..).unwrap_or_default();
    }
}

fn is_letter(c: char) -> bool {
    is_ideograph(c) || is_kana(c) || is_hangul(c) || is_ideograph_mark(c)
}

/// The pieces that have a row, in the order of their bytes, one per line.
static TEXT: &str = foldback_cjk_table::UNITS;

/// The positions of the units in the text; determined for the first text in these scripts, in less than a millisecond.
struct Units {
    /// The first letter of each unit.
    firsts: Vec<char>,
    /// Where each begins, and at the end where one more would begin.
    starts: Vec<u32>,
}

impl Units {
    fn get() -> &'static Self {
        static UNITS: LazyLock<Units> = LazyLock::new(Units::new);
        &UNITS
    }

    fn new() -> Self {
        let mut units = Self { firsts: Vec::new(), starts: vec![0] };
        let mut at = 0;
        for unit in TEXT.lines() {
            at += unit.len() as u32 + 1;
            units.firsts.extend(unit.chars().next());
            units.starts.push(at);
        }
        units
    }

    fn bytes(&self, unit: usize) -> &'static [u8] {
        let at = |unit: usize| self.starts.get(unit).map_or(0, |&at| at as usize);
        TEXT.as_bytes().get(at(unit)..at(unit + 1).saturating_sub(1)).unwrap_or_default()
    }

    /// Returns the longest unit with which `rest` begins, and its length in bytes.
    ///
    /// Units with a common beginning are adjacent, so that each further letter keeps a part of the range that the
    /// letters before it left.
    fn longest_prefix(&self, rest: &str) -> Option<(usize, usize)> {
        let mut found = None;
        let mut letters = rest.chars();
        let first = letters.next()?;
        let mut end = first.len_utf8();
        let mut from = self.firsts.partition_point(|&c| c < first);
        let mut to = from + self.firsts.get(from..)?.partition_point(|&c| c == first);
        while from < to {
            if self.bytes(from).len() == end {
                found = Some((from, end));
            }
            let Some(letter) = letters.next() else { break };
            let start = end;
            end += letter.len_utf8();
            let wanted = rest.as_bytes().get(start..end)?;
            let letter_of = |unit: usize| {
                let bytes = self.bytes(unit);
                bytes.get(start..end.min(bytes.len())).unwrap_or_default()
            };
            from = partition_point(from, to, |unit| letter_of(unit) < wanted);
            to = partition_point(from, to, |unit| letter_of(unit) == wanted);
        }
        found
    }
}

/// Returns the first number from `from` to `to` for which `is_before` does not hold, or `to`.
fn partition_point(mut from: usize, mut to: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while from < to {
        let middle = from.midpoint(to);
        if is_before(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        for_each_part(&normal(text), |part| {
            parts.push(match part {
                Part::Unit(unit) => String::from_utf8_lossy(Units::get().bytes(unit)).into_owned(),
                Part::Other(other) => format!("<{other}>"),
            });
        });
        parts
    }

    #[test]
    fn the_longest_unit_goes_first() {
        assert_eq!(parts("数据库连接超时"), ["数据库", "连接", "超", "时"]);
        assert_eq!(
            parts("把OrderService的超时改成30秒。"),
            ["把", "<OrderService>", "的", "超", "时", "改", "成", "<30>", "秒"]
        );
        assert_eq!(parts("部署🚀完成！"), ["部署", "<🚀>", "完成", "<!>"]);
        assert_eq!(parts(""), [""; 0]);
        assert_eq!(parts("only words"), ["<only words>"]);
    }

    #[test]
    fn all_forms_of_a_letter_are_one() {
        assert_eq!(parts("ｻｰﾊﾞｰ"), parts("サーバー"));
        assert_eq!(parts("ＡＰＩ、ｶﾞ"), ["<API>", "ガ"]);
        assert_eq!(parts("\u{1112}\u{1161}\u{11ab}국"), parts("한국"));
        assert_eq!(parts("か\u{3099}"), parts("が"));
        for text in ["ｻｰﾊﾞｰ", "\u{1112}\u{1161}\u{11ab}", "漢", "カ", "한", "a漢"] {
            assert!(is_in(text), "{text}");
        }
        for text in ["", "plain", "café", "Где порт?", "「」、。", "🚀"] {
            assert!(!is_in(text), "{text}");
        }
    }

    #[test]
    fn every_unit_is_found_whole() {
        let units = Units::get();
        assert_eq!(units.firsts.len(), crate::table::CJK_ROWS);
        let lines: Vec<&str> = TEXT.lines().collect();
        assert!(lines.is_sorted_by(|a, b| a < b));
        for (number, line) in lines.into_iter().enumerate() {
            assert_eq!(units.longest_prefix(line), Some((number, line.len())), "{line}");
            assert!(line.chars().all(is_letter) && normal(line) == line, "{line}");
        }
        // A letter with which no unit begins.
        assert_eq!(units.longest_prefix("\u{2fa1d}"), None);
        assert_eq!(parts("\u{20001}的"), ["的"]);
    }
}
