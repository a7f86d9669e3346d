//! Which script a character is written in.
//!
//! The ranges of Unicode are defined once, here. What a crate takes for "written without spaces", say, is put together
//! from these in the place that needs it, with the reason there: what is stored, searched and measured was made with
//! ranges that differ at their edges, and must not shift.

/// Returns whether `c` is a hiragana character or a mark of the hiragana block.
#[inline]
#[must_use]
pub const fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{309f}')
}

/// Returns whether `c` is a katakana character or a mark of the katakana block, without half-width forms.
#[inline]
#[must_use]
pub const fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a0}'..='\u{30ff}')
}

/// Returns whether `c` is one of the small katakana with which Ainu is written.
#[inline]
#[must_use]
pub const fn is_small_katakana(c: char) -> bool {
    matches!(c, '\u{31f0}'..='\u{31ff}')
}

/// Returns whether `c` is hiragana or katakana, except for small katakana and half-width forms.
#[inline]
#[must_use]
pub const fn is_kana(c: char) -> bool {
    is_hiragana(c) || is_katakana(c)
}

/// Returns whether `c` is a syllable of Korean.
#[inline]
#[must_use]
pub const fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7af}')
}

/// Returns whether `c` is a letter of which Korean syllables are composed.
#[inline]
#[must_use]
pub const fn is_jamo(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}')
}

/// Returns whether `c` is a Chinese character: unified and compatibility ideographs, and all of planes 2 and 3, which
/// are reserved for more of them.
#[inline]
#[must_use]
pub const fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
        || is_compatibility_ideograph(c)
}

/// Returns whether `c` is a Chinese character that represents another one, from some older set of characters.
#[inline]
#[must_use]
pub const fn is_compatibility_ideograph(c: char) -> bool {
    matches!(c, '\u{f900}'..='\u{faff}')
}

/// Returns whether `c` is a sign that takes the place of a Chinese character: 々, 〆 and 〇.
#[inline]
#[must_use]
pub const fn is_ideograph_mark(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}')
}

/// Returns whether `c` is a symbol of the Book of Changes. It lies between two blocks of ideographs: code that treats
/// these as one run of code points includes it.
#[inline]
#[must_use]
pub const fn is_hexagram(c: char) -> bool {
    matches!(c, '\u{4dc0}'..='\u{4dff}')
}

/// Returns whether `c` is a mark of Chinese or Japanese, such as 、 and 「, or a sign among them that represents
/// characters.
#[inline]
#[must_use]
pub const fn is_cjk_mark(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303f}')
}

/// Any character from the radicals to the last unified ideograph of the first plane: with marks, kana,
/// bopomofo, enclosed letters and hexagrams.
#[inline]
#[must_use]
pub const fn is_of_cjk_blocks(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}')
}

/// Returns whether `c` is a full-width or half-width form of a letter or a mark.
#[inline]
#[must_use]
pub const fn is_full_or_half_width(c: char) -> bool {
    matches!(c, '\u{ff00}'..='\u{ffef}')
}

/// Returns whether `c` is a letter or a mark of Thai or Lao.
#[inline]
#[must_use]
pub const fn is_thai_or_lao(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}')
}

/// Returns whether `c` is a letter or a mark of Thai, Lao, Burmese or Khmer, which put no spaces between words.
#[inline]
#[must_use]
pub const fn is_unspaced_alphabet(c: char) -> bool {
    is_thai_or_lao(c) || matches!(c, '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_of_its_script() {
        for (of_script, sample, others) in [
            (is_hiragana as fn(char) -> bool, "はゝ゛", "ハーa漢"),
            (is_katakana, "ハー・", "はﾊㇰ"),
            (is_kana, "はハ", "漢한"),
            (is_hangul, "한글", "ᄒ漢ㅎ"),
            (is_jamo, "한", "한ㅎ"),
            (is_ideograph, "漢㐀豈𠀀", "々〇は䷀"),
            (is_ideograph_mark, "々〆〇", "漢、"),
            (is_unspaced_alphabet, "ไทยລາວမြန်ខ្មែរ", "हि한a"),
        ] {
            assert!(sample.chars().all(of_script), "{sample}");
            assert!(!others.chars().any(of_script), "{others}");
        }
    }
}
