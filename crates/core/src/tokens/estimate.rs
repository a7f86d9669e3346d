//! One pass over a text, piece by piece.

use super::costs::{self, Run};

/// Returns the estimated tokens of `text`.
pub(super) fn estimate(text: &str) -> usize {
    let mut pass = Pass { text, bytes: text.as_bytes(), at: 0, before: Before::Nothing, cost: 0 };
    while pass.at < pass.bytes.len() {
        pass.piece();
    }
    let tokens = usize::try_from((pass.cost + 50) / 100).unwrap_or(usize::MAX);
    if text.is_empty() { 0 } else { tokens.max(1) }
}

struct Pass<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// What the previous piece left for a word to begin with.
    before: Before,
    /// Hundredths of a token.
    cost: u64,
}

/// What directly precedes a word. A space or a mark belongs to the word's piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Space,
    Mark,
    /// A digit, or letters after one: the text is likely to be an id or a hash.
    Digit,
    /// A letter, if the word before ended because the case changes.
    Letter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Break,
    Mark,
    Wide,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t' | 0x0b | 0x0c => Class::Space,
            b'\n' | b'\r' => Class::Break,
            0x80.. => Class::Wide,
            _ => Class::Mark,
        };
        byte += 1;
    }
    classes
};

impl Pass<'_> {
    /// Returns the class at `at`; after the end it is a break.
    #[inline(always)]
    fn class(&self, at: usize) -> Class {
        match self.bytes.get(at) {
            Some(byte) => CLASSES[usize::from(*byte)],
            None => Class::Break,
        }
    }

    /// Returns the first place from `at` on that is not of this class.
    #[inline(always)]
    fn skip(&self, mut at: usize, class: Class) -> usize {
        while self.class(at) == class && at < self.bytes.len() {
            at += 1;
        }
        at
    }

    #[inline(always)]
    fn add(&mut self, cost: u32) {
        self.cost += u64::from(cost);
    }

    fn piece(&mut self) {
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        match self.class(self.at) {
            Class::Lower | Class::Upper => self.word(before, self.at),
            Class::Digit => {
                let end = self.skip(self.at, Class::Digit);
                // Digits are cut into threes, and each three is one token.
                self.add(100 * count((end - self.at).div_ceil(3)));
                self.at = end;
                self.before = Before::Digit;
            }
            Class::Wide => self.wide(before, self.at),
            Class::Space => match self.class(self.at + 1) {
                Class::Lower | Class::Upper => self.word(self.lead(), self.at + 1),
                Class::Wide => self.wide(self.lead(), self.at + 1),
                // Only a blank joins punctuation; a tab does not.
                Class::Mark if self.bytes.get(self.at) == Some(&b' ') => self.marks(self.at + 1),
                _ => self.space(),
            },
            Class::Mark => match self.class(self.at + 1) {
                Class::Lower | Class::Upper => self.word(Before::Mark, self.at + 1),
                Class::Wide => self.wide(Before::Mark, self.at + 1),
                _ => self.marks(self.at),
            },
            Class::Break => self.space(),
        }
    }

    /// Returns the lead of a word after white space: only a blank counts as a space, the rest as a
    /// mark.
    fn lead(&self) -> Before {
        if self.bytes.get(self.at) == Some(&b' ') { Before::Space } else { Before::Mark }
    }

    /// A word that begins at `from`: capitals, then small letters.
    #[inline]
    fn word(&mut self, before: Before, from: usize) {
        let capitals = self.skip(from, Class::Upper) - from;
        let end = self.skip(from + capitals, Class::Lower);
        let length = end - from;
        if self.class(end) == Class::Wide && self.latin(end).is_some() {
            return self.accented(from);
        }
        let case = match (capitals, length - capitals) {
            (0, _) => 0,
            (_, 0) => 2,
            (1, _) => 1,
            _ => 3,
        };
        let row = costs::WORD.get(before as usize).and_then(|rows| rows.get(case));
        let cost = row.and_then(|row| row.get(length.min(16) - 1)).copied().unwrap_or(100);
        self.add(u32::from(cost));
        if length > 16 {
            self.add(costs::LONG_WORD * count(length - 16));
        }
        let (contraction, cost) = self.contraction(end);
        self.add(cost);
        self.at = end + contraction;
        self.before = if before == Before::Digit { Before::Digit } else { Before::Letter };
    }

    /// Returns the length of the contraction at `at` and its cost: nothing if there is none.
    #[inline(always)]
    fn contraction(&self, at: usize) -> (usize, u32) {
        let (mark, cost) = match self.bytes.get(at) {
            Some(b'\'') => (1, costs::CONTRACTION),
            Some(0xe2) if self.text.get(at..at + 3) == Some("\u{2019}") => {
                (3, costs::TYPOGRAPHIC_CONTRACTION)
            }
            _ => return (0, 0),
        };
        let letter = |n: usize| self.bytes.get(at + mark + n).map_or(0, u8::to_ascii_lowercase);
        match (letter(0), letter(1)) {
            (b's' | b't' | b'm' | b'd', _) => (mark + 1, cost),
            (b'r', b'e') | (b'v', b'e') | (b'l', b'l') => (mark + 2, cost),
            _ => (0, 0),
        }
    }

    /// Returns the length in bytes of the Latin letter beyond ASCII at `at`, and whether it is one
    /// of those that mark Vietnamese.
    fn latin(&self, at: usize) -> Option<(usize, bool)> {
        let c = self.text.get(at..)?.chars().next()?;
        match c {
            '×' | '÷' => None,
            'ª' | 'µ' | 'º' | 'À'..='\u{24f}' | '\u{300}'..='\u{36f}' => {
                Some((c.len_utf8(), false))
            }
            '\u{1e00}'..='\u{1eff}' => Some((c.len_utf8(), true)),
            _ => None,
        }
    }

    /// A word with letters beyond ASCII.
    fn accented(&mut self, from: usize) {
        let mut at = from;
        let mut letters = 0;
        let mut vietnamese = false;
        loop {
            match self.class(at) {
                Class::Lower | Class::Upper => at += 1,
                Class::Wide => match self.latin(at) {
                    Some((bytes, marks)) => {
                        at += bytes;
                        vietnamese |= marks;
                    }
                    None => break,
                },
                _ => break,
            }
            letters += 1;
        }
        let (word, letter) = if vietnamese { costs::VIETNAMESE } else { costs::ACCENTED };
        self.add(word + letter * letters);
        self.at = at;
        self.before = Before::Letter;
    }

    /// A run of one script that begins at `from`.
    fn wide(&mut self, before: Before, from: usize) {
        if self.latin(from).is_some() {
            return self.accented(from);
        }
        let rest = self.text.get(from..).unwrap_or("");
        let mut chars = rest.chars();
        let mut left = rest;
        let mut characters = 0;
        let mut kind = costs::UNKNOWN;
        let mut traditional = 0;
        while let Some(c) = chars.next() {
            let this = run_of(c);
            if characters == 0 {
                kind = this;
            } else if this != kind || c.is_ascii() {
                break;
            }
            characters += 1;
            traditional += u32::from(costs::is_traditional(c));
            left = chars.as_str();
        }
        self.add(kind.run + kind.each * characters + costs::TRADITIONAL_EXTRA * traditional);
        self.add(match before {
            Before::Space => kind.space,
            Before::Mark => kind.mark,
            _ => 0,
        });
        self.at = from + (rest.len() - left.len()).max(1);
    }

    /// A run of punctuation that begins at `from`, with the breaks after it.
    fn marks(&mut self, from: usize) {
        let mut end = from;
        let mut changes = 0_usize;
        let mut last = self.bytes.get(from);
        while self.class(end) == Class::Mark && end < self.bytes.len() {
            let this = self.bytes.get(end);
            changes += usize::from(this != last);
            last = this;
            end += 1;
        }
        let length = end - from;
        self.add(if changes * 2 >= length || length <= 3 {
            let cost = costs::PUNCTUATION.get(length.min(9) - 1).copied().unwrap_or(100);
            u32::from(cost) + costs::LONG_PUNCTUATION * count(length.saturating_sub(9))
        } else {
            // A line of dashes is one token or two, however long.
            100 + 60 * count(changes) + count(length)
        });
        self.at = end;
        while matches!(self.bytes.get(self.at), Some(b'\n' | b'\r' | b'/')) {
            self.at += 1;
        }
        // The breaks are in the token, unless there are many.
        self.add(6 * count((self.at - end).saturating_sub(2)));
    }

    /// White space. Up to its last break it is one piece; after that, all but the last character,
    /// which belongs to the word that follows.
    fn space(&mut self) {
        let mut end = self.at;
        let mut behind_break = self.at;
        // Runs of breaks that are separated by other white space.
        let mut runs = 0;
        while end < self.bytes.len() {
            match self.class(end) {
                Class::Break => {
                    runs += usize::from(end == self.at || end > behind_break);
                    end += 1;
                    behind_break = end;
                }
                Class::Space => end += 1,
                _ => break,
            }
        }
        let end = match behind_break > self.at {
            true => behind_break,
            false if end - self.at == 1 || end == self.bytes.len() => end,
            false => end - 1,
        };
        let length = count(end - self.at);
        let blank = self.bytes.get(self.at) == Some(&b' ');
        self.add(100 + if blank { length * 3 / 4 } else { length.saturating_sub(4) * 6 });
        self.add(50 * count(runs.saturating_sub(2)));
        self.at = end;
    }
}

/// Returns the costs of a run of this character's kind.
fn run_of(c: char) -> Run {
    match u32::from(c) {
        0x4e00..=0x9fff | 0x3005 => costs::HAN,
        0x3000..=0x303f | 0xff00..=0xff65 | 0x2000..=0x206f => costs::WIDE_MARK,
        0x3041..=0x309f => costs::HIRAGANA,
        0x30a0..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f => costs::KATAKANA,
        0xac00..=0xd7a3 | 0x1100..=0x11ff | 0x3130..=0x318f => costs::HANGUL,
        0x370..=0x3ff | 0x1f00..=0x1fff => costs::GREEK,
        0x400..=0x52f => costs::CYRILLIC,
        0x530..=0x5ff | 0x10a0..=0x10ff => costs::HEBREW,
        0x600..=0x77f | 0xfb50..=0xfdff | 0xfe70..=0xfefe => costs::ARABIC,
        0x900..=0xd7f => costs::INDIC,
        0xe00..=0xeff | 0x1000..=0x109f | 0x1780..=0x17ff => costs::THAI,
        0x2500..=0x259f => costs::BOX,
        0x1f000..=0x1faff | 0x2600..=0x27bf | 0xfe00..=0xfe0f => costs::EMOJI,
        0x80..=0xbf | 0xd7 | 0xf7 | 0x2070..=0x2bff => costs::SYMBOL,
        0xfffd => costs::REPLACEMENT,
        0x3400..=0x4dbf | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff => costs::RARE_HAN,
        _ => costs::UNKNOWN,
    }
}

/// Returns a count as a cost's factor; no text that is estimated comes near the bound.
#[inline(always)]
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX / 1_000)
}

#[cfg(test)]
mod tests;
