//! Texts in Chinese, Japanese and Korean cut into units, as `foldback-embedder` cuts them.

use std::collections::HashMap;

use foldback_core::script::{
    is_cjk_mark, is_hangul, is_ideograph, is_ideograph_mark, is_jamo, is_kana, is_small_katakana,
};
use foldback_embedder::WordPiece;
use unicode_normalization::UnicodeNormalization;

/// Whether it is a letter of these scripts.
pub(crate) fn is_letter(c: char) -> bool {
    is_ideograph(c) || is_kana(c) || is_hangul(c) || is_ideograph_mark(c)
}

/// Whether `text` has a letter of these scripts, in any of its forms.
pub(crate) fn is_in(text: &str) -> bool {
    text.chars().any(|c| {
        is_letter(c) || is_jamo(c) || is_small_katakana(c) || matches!(c, '\u{ff66}'..='\u{ffdc}')
    })
}

/// Cuts texts into the numbers of rows: first those of English, then those of the units.
pub(crate) struct Cutter<'u> {
    pieces: WordPiece,
    rows: HashMap<&'u str, u16>,
    /// The letters of the longest unit.
    longest: usize,
}

impl<'u> Cutter<'u> {
    /// Cuts into `units`, whose rows stand behind `english` ones.
    pub(crate) fn new(units: &'u [String], english: usize) -> Self {
        let row = |(at, unit): (usize, &'u String)| Some((unit.as_str(), u16::try_from(at).ok()?));
        let numbers = (english..).zip(units);
        let longest = units.iter().map(|unit| unit.chars().count()).max().unwrap_or_default();
        Self { pieces: WordPiece::new(), rows: numbers.filter_map(row).collect(), longest }
    }

    /// The rows that `text` adds up, in order.
    pub(crate) fn rows(&self, text: &str) -> Vec<u16> {
        if !is_in(text) {
            return self.pieces.ids(text);
        }
        let normal: String = text.nfkc().collect();
        let mut rows = Vec::new();
        let mut rest = normal.as_str();
        while let Some(first) = rest.chars().next() {
            let length = if is_letter(first) {
                let found = self.longest_prefix(rest);
                rows.extend(found.map(|(row, _)| row));
                found.map_or(first.len_utf8(), |(_, length)| length)
            } else if is_cjk_mark(first) {
                first.len_utf8()
            } else {
                let end = rest.find(|c| is_letter(c) || is_cjk_mark(c)).unwrap_or(rest.len());
                self.pieces.for_each(&rest[..end], |id| rows.push(id));
                end
            };
            rest = &rest[length..];
        }
        rows
    }

    fn longest_prefix(&self, rest: &str) -> Option<(u16, usize)> {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(self.longest);
        ends.filter_map(|end| Some((*self.rows.get(&rest[..end])?, end))).last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_as_the_embedder_cuts_them() {
        let units = ["数", "数据库", "を", "サーバー", "한국", "국"].map(str::to_owned);
        let cutter = Cutter::new(&units, 30_522);
        let port = WordPiece::new().ids("port 80");
        assert_eq!(cutter.rows("数据库、数"), [30_523, 30_522]);
        assert_eq!(cutter.rows("ｻｰﾊﾞｰを"), [30_525, 30_524]);
        assert_eq!(cutter.rows("한국, 국"), [vec![30_526], vec![1010], vec![30_527]].concat());
        assert_eq!(cutter.rows("数 port 80"), [vec![30_522], port.clone()].concat());
        assert_eq!(cutter.rows("port 80"), port);
        assert_eq!(cutter.rows("据"), [0u16; 0]);
    }
}
