//! A text with its escapes removed.

use std::ops::Range;

/// A text without its JSON escapes. They are read leniently: an invalid escape stays as it is.
pub(crate) struct Unescaped {
    pub(crate) text: String,
    /// For each escape: the place after it in this text, and in the escaped one, ascending.
    steps: Vec<(usize, usize)>,
}

impl Unescaped {
    /// `None` for a text without escapes.
    pub(crate) fn of(escaped: &str) -> Option<Self> {
        let mut at = escaped.find('\\')?;
        let mut text = String::with_capacity(escaped.len());
        let (mut steps, mut from) = (Vec::new(), 0);
        while let Some((c, len)) = escaped.get(at..).map(read) {
            if let Some(c) = c {
                text.push_str(escaped.get(from..at)?);
                text.push(c);
                from = at + len;
                steps.push((text.len(), from));
            }
            let Some(next) = escaped.get(at + len..).and_then(|rest| rest.find('\\')) else {
                break;
            };
            at += len + next;
        }
        text.push_str(escaped.get(from..)?);
        (!steps.is_empty()).then_some(Self { text, steps })
    }

    /// The range of the escaped text that a range of this one came from.
    pub(crate) fn place(&self, range: Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let step = self.steps.partition_point(|(text, _)| *text <= at);
            match step.checked_sub(1).and_then(|step| self.steps.get(step)) {
                Some((text, escaped)) => escaped + (at - text),
                None => at,
            }
        };
        place(range.start)..place(range.end)
    }
}

/// The character of the escape at the beginning of a text, and the escape's length in bytes.
fn read(text: &str) -> (Option<char>, usize) {
    let c = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(c @ (b'"' | b'\\' | b'/' | b'\'')) => char::from(*c),
        Some(b'u') => return read_code(text),
        _ => return (None, 1),
    };
    (Some(c), 2)
}

/// Like [`read`], for an escape by number, which may be a pair.
fn read_code(text: &str) -> (Option<char>, usize) {
    let code = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
        u16::from_str_radix(digits, 16).ok()
    };
    let Some(first) = code(0) else { return (None, 2) };
    if let Some(c) = char::from_u32(u32::from(first)) {
        return (Some(c), 6);
    }
    let both = [first, code(6).unwrap_or_default()];
    match char::decode_utf16(both).next() {
        Some(Ok(c)) => (Some(c), 12),
        _ => (None, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(escaped: &str, text: &str) {
        assert_eq!(Unescaped::of(escaped).unwrap().text, text, "{escaped}");
    }

    #[test]
    fn escapes_are_read_and_the_rest_stays() {
        check(r"a\nb", "a\nb");
        check(r#"\"\\\/\u4e2d\ud83d\ude00."#, "\"\\/中😀.");
        check(r"\q\n\u12\ud83d", "\\q\n\\u12\\ud83d");
        check("\\n\\", "\n\\");
        assert!(Unescaped::of("plain 中").is_none());
        assert!(Unescaped::of(r"C:\Code\").is_none());
    }

    proptest! {
        #[test]
        fn places_are_those_of_the_escaped_text(text in "[a-c\\\\\"\n中😀]{0,20}") {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\u000a");
            let read = Unescaped::of(&escaped);
            prop_assert_eq!(read.is_some(), escaped.contains('\\'));
            if let Some(read) = read {
                prop_assert_eq!(&read.text, &text);
                let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                for pair in starts.windows(2) {
                    let place = read.place(pair[0]..pair[1]);
                    let one = Unescaped::of(&escaped[place.clone()]);
                    let said = one.map_or(escaped[place].to_owned(), |one| one.text);
                    prop_assert_eq!(&said, &text[pair[0]..pair[1]]);
                }
            }
        }
    }
}
