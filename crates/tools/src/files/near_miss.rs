//! The place in a text that is most like another text.

use foldback_core::first_chars;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// The place in a text that is most like another text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NearMiss {
    /// Its first line, counted from 1.
    pub(super) first: usize,
    /// Its last line.
    pub(super) last: usize,
    /// Its exact lines, as far as there is room to show them.
    pub(super) text: String,
    /// Whether a line is not shown to its end.
    pub(super) is_cut: bool,
    /// Whether only white space or the Unicode normal form differs.
    pub(super) is_spacing: bool,
}

/// The least likeness of two lines: the share of the pairs of characters that they have in common.
const ALIKE: f64 = 0.6;

/// The most lines of a text that are examined.
pub(super) const LINES: usize = 20_000;

/// The most characters of a line that are compared and shown.
const COLUMNS: usize = 300;

/// The most lines that are shown.
const SHOWN: usize = 40;

/// The most bytes that are shown.
const SHOWN_BYTES: usize = 4_000;

/// Returns the place in `text` that is most like `wanted`, if any is.
pub(super) fn nearest(text: &str, wanted: &str) -> Option<NearMiss> {
    let lines: Vec<&str> = text.split_inclusive('\n').take(LINES).collect();
    let plain: Vec<String> = lines.iter().map(|line| spaced(line)).collect();
    let asked: Vec<&str> = wanted.trim().lines().collect();
    let wanted: Vec<String> = asked.iter().map(|line| spaced(line)).collect();
    let found = |first: usize, is_spacing| {
        let (mut text, mut last, mut is_cut) = (String::new(), first, false);
        for line in lines.iter().skip(first).take(wanted.len().min(SHOWN)) {
            let shown = first_chars(line, COLUMNS);
            if last > first && text.len() + shown.len() > SHOWN_BYTES {
                break;
            }
            text.push_str(shown);
            if !line.get(shown.len()..)?.trim_end().is_empty() {
                text.push_str("…\n");
                is_cut = true;
            }
            last += 1;
        }
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
        Some(NearMiss { first: first + 1, last, text, is_cut, is_spacing })
    };
    if let Some(first) = plain.windows(wanted.len().max(1)).position(|window| window == wanted) {
        // Only the shown part of each line was compared: the rest may differ.
        let mut pairs = lines.iter().skip(first).zip(&asked);
        return found(first, pairs.all(|(line, asked)| whole(line) == whole(asked)));
    }
    // The longest line says most about where the text may have been taken from.
    let (anchor, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(at, line)| (line.chars().count(), std::cmp::Reverse(*at)))?;
    let pairs = Pairs::of(longest);
    let alike = plain.iter().enumerate().map(|(at, line)| (at, pairs.alike(line)));
    let best = alike
        .filter(|(_, alike)| *alike >= ALIKE)
        .max_by(|(at, alike), (other, than)| alike.total_cmp(than).then(other.cmp(at)))?;
    found(best.0.saturating_sub(anchor), false)
}

/// The pairs of neighbouring characters of a line, each with the number of its occurrences.
struct Pairs(HashMap<(char, char), usize>);

impl Pairs {
    fn of(line: &str) -> Self {
        let mut pairs = HashMap::new();
        for pair in line.chars().zip(line.chars().skip(1)) {
            *pairs.entry(pair).or_default() += 1;
        }
        Self(pairs)
    }

    /// Returns the Sørensen-Dice coefficient of the pairs of both lines, from 0 for nothing in common to 1.
    fn alike(&self, line: &str) -> f64 {
        let other = Self::of(line);
        let common: usize = self
            .0
            .iter()
            .map(|(pair, times)| other.0.get(pair).copied().unwrap_or_default().min(*times))
            .sum();
        let all = self.0.values().sum::<usize>() + other.0.values().sum::<usize>();
        if all == 0 { 0.0 } else { count(2 * common) / count(all) }
    }
}

/// Converts a number of pairs of one line, which is at most a few hundred.
fn count(pairs: usize) -> f64 {
    u32::try_from(pairs).map_or(f64::MAX, f64::from)
}

/// Returns the compared part of a line, with single spaces only and in composed Unicode form.
fn spaced(line: &str) -> String {
    whole(line).chars().take(COLUMNS).collect()
}

/// Returns the whole line, with single spaces only and in composed Unicode form.
fn whole(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wanted: &str, lines: (usize, usize), found: &str, is_spacing: bool) {
        let (first, last) = lines;
        let (text_found, is_cut) = (found.to_owned(), false);
        let expected = NearMiss { first, last, text: text_found, is_cut, is_spacing };
        assert_eq!(nearest(text, wanted), Some(expected));
    }

    #[test]
    fn other_spacing_is_found_and_given_exactly() {
        let text = "fn a() {\n\tlet x = 1;\n\tlet y  = 2;\n}\n";
        check(text, "    let x = 1;\n    let y = 2;", (2, 3), "\tlet x = 1;\n\tlet y  = 2;", true);
    }

    #[test]
    fn another_normal_form_is_told() {
        check("cafe\u{301}\n", "caf\u{e9}", (1, 1), "cafe\u{301}", true);
    }

    #[test]
    fn a_changed_word_is_found_in_any_script() {
        let text = "第一行\n杭州今天有小雨,最高气温十二度\n第三行\n";
        check(
            text,
            "杭州今天有小雪,最高气温十二度",
            (2, 2),
            "杭州今天有小雨,最高气温十二度",
            false,
        );
    }

    #[test]
    fn the_longest_line_leads_to_the_place() {
        let text = "{\n  \"name\": \"a\",\n  \"version\": \"1.0.0\",\n}\n{\n}\n";
        let wanted = "{\n  \"name\": \"a\",\n  \"version\": \"1.0.1\",\n}";
        let found = "{\n  \"name\": \"a\",\n  \"version\": \"1.0.0\",\n}";
        check(text, wanted, (1, 4), found, false);
    }

    #[test]
    fn what_is_like_nothing_is_not_found() {
        assert_eq!(nearest("one\ntwo\n", "完全不同的内容"), None);
        assert_eq!(nearest("", "x"), None);
        assert_eq!(nearest("x", " \n "), None);
    }
}
