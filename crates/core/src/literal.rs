//! JSON string literals, read leniently and written back exactly.
//!
//! A text that is stored outside a message leaves a hole in the message's JSON. To fill the hole
//! again byte for byte, it is enough to know how the writer escaped characters, because the writers
//! in use follow one of a few habits.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How a writer escapes the characters of a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escape {
    /// Quote, backslash and control characters only: serde_json, JavaScript, and Python with
    /// `ensure_ascii=False`.
    Minimal,
    /// As `Minimal`, and U+007F to the end of Unicode as `\uXXXX` (pairs of surrogates above
    /// U+FFFF), in lower case: Python's default, which leaves U+007F as it is.
    Ascii,
    /// As `Minimal`, and `/` as `\/`: PHP and some others.
    Slash,
    /// As `Minimal`, and `<`, `>`, `&`, U+2028 and U+2029 as `\uXXXX`: Go's default.
    Html,
}

impl Escape {
    /// Every habit, the commonest first.
    pub const ALL: [Self; 4] = [Self::Minimal, Self::Ascii, Self::Html, Self::Slash];

    /// Returns the habit that turns `text` into exactly `literal` (without its quotes), if there is
    /// one.
    #[must_use]
    pub fn detect(text: &str, literal: &str) -> Option<Self> {
        let mut written = String::with_capacity(literal.len());
        Self::ALL.into_iter().find(|escape| {
            written.clear();
            escape_into(text, *escape, &mut written);
            written == literal
        })
    }
}

/// Appends `text` to `out` as the inside of a JSON string literal, without quotes.
pub fn escape_into(text: &str, escape: Escape, out: &mut String) {
    let mut plain_from = 0;
    for (at, c) in text.char_indices() {
        let short = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '/' if escape == Escape::Slash => "\\/",
            '\0'..='\u{1f}' => "",
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escape == Escape::Html => "",
            '\u{80}'.. if escape == Escape::Ascii => "",
            _ => continue,
        };
        out.push_str(&text[plain_from..at]);
        plain_from = at + c.len_utf8();
        if short.is_empty() {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    let digit = u32::from(*unit >> shift & 0xf);
                    out.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[plain_from..]);
}

/// Returns a text as a JSON string on one line, with its quotes.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, Escape::Minimal, &mut out);
    out.push('"');
    out
}

/// Reads the inside of a JSON string literal. Half of a surrogate pair, which JavaScript writes
/// when it cuts a string in the middle of a character, becomes U+FFFD. `literal` must be a valid
/// literal without its quotes, as a JSON parser hands it over; anything else is left as it is.
#[must_use]
pub fn decode_literal(literal: &str) -> Cow<'_, str> {
    if !literal.contains('\\') {
        return Cow::Borrowed(literal);
    }
    let mut out = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else { break };
        rest = &rest[c.len_utf8()..];
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let (decoded, used) = decode_unicode(rest);
                out.push(decoded);
                rest = rest.get(used..).unwrap_or("");
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the character of the digits after `\u`, and how many bytes of `rest` it took.
fn decode_unicode(rest: &str) -> (char, usize) {
    let unit = |text: &str| text.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let Some(high) = unit(rest) else { return (char::REPLACEMENT_CHARACTER, 0) };
    if (0xd800..0xdc00).contains(&high)
        && let Some(low) = rest.get(4..).and_then(|r| r.strip_prefix("\\u")).and_then(unit)
        && (0xdc00..0xe000).contains(&low)
    {
        let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_habit_of_the_writer() {
        let text = "a/b \"ü\" 👍\u{1} <x> \u{7f}";
        for (literal, escape) in [
            ("a/b \\\"ü\\\" 👍\\u0001 <x> \u{7f}", Escape::Minimal),
            ("a/b \\\"\\u00fc\\\" \\ud83d\\udc4d\\u0001 <x> \u{7f}", Escape::Ascii),
            ("a\\/b \\\"ü\\\" 👍\\u0001 <x> \u{7f}", Escape::Slash),
            ("a/b \\\"ü\\\" 👍\\u0001 \\u003cx\\u003e \u{7f}", Escape::Html),
        ] {
            assert_eq!(Escape::detect(text, literal), Some(escape));
            assert_eq!(decode_literal(literal), text);
        }
        assert_eq!(Escape::detect("ab", "\\u0061b"), None);
    }

    #[test]
    fn et16_a_text_is_one_line() {
        assert_eq!(quoted("a\n\"b\" 晴"), r#""a\n\"b\" 晴""#);
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(decode_literal("x\\ud83d"), "x\u{fffd}");
        assert_eq!(decode_literal("\\ud83dx\\udc4d"), "\u{fffd}x\u{fffd}");
        assert_eq!(decode_literal("\\ud83d\\u0041"), "\u{fffd}A");
        assert_eq!(decode_literal("\\u12"), "\u{fffd}12");
    }
}
