//! Texts and numbers as a person reads them.

use foldback_core::thousands;
use std::borrow::Cow;
use std::fmt::Display;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The text without control characters for a terminal: recorded text comes from tools and
/// strangers. Control characters become visible ones; line breaks and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    // A carriage return before a line break has no effect.
    let text = text.replace("\r\n", "\n");
    let mut visible = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) { push_mark(&mut visible, c) } else { visible.push(c) }
    }
    Cow::Owned(visible)
}

/// Whether a terminal does anything but show a character.
pub(crate) fn steers(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Marks that reverse the direction of what follows can make a text read as another.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// Shows a control character: as a control picture if Unicode has one, or else by its number.
pub(crate) fn push_mark(text: &mut String, c: char) {
    match c as u32 {
        0x7f => text.push('\u{2421}'),
        n @ 0..0x20 => text.extend(char::from_u32(0x2400 + n)),
        _ => text.extend(c.escape_unicode()),
    }
}

/// The text on one line: runs of white space are one space.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    plain(&line).into_owned()
}

/// The columns of a text; a Chinese character takes two.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The beginning of a text that fits into `width` columns, with a mark if something is left out.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let mut used = 0;
    let fits = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    let mut cut: String = fits.collect();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// The end of a text that fits into `width` columns, with a mark if something is left out.
pub(crate) fn fit_end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let tail = tail(text, width.saturating_sub(1));
    if width > 0 { format!("…{tail}") } else { tail }
}

/// The end of a text that takes at most `room` columns.
fn tail(text: &str, room: usize) -> String {
    let mut used = 0;
    let tail = text.chars().rev().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    let tail: Vec<char> = tail.collect();
    tail.into_iter().rev().collect()
}

/// Like [`fit`], but keeps the end of the text, too: names often differ there.
pub(crate) fn fit_middle(text: &str, width: usize) -> String {
    if columns(text) <= width || width < 5 {
        return fit(text, width);
    }
    let tail = tail(text, width / 2);
    format!("{}{tail}", fit(text, width - columns(&tail)))
}

/// A text of exactly `width` columns: cut, or padded with spaces.
pub(crate) fn fill(text: &str, width: usize) -> String {
    let mut text = fit(text, width);
    let missing = width.saturating_sub(columns(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// The lines of a text, none wider than `width`, broken between words where possible, and the first
/// one `first` columns shorter.
pub(crate) fn wrap(text: &str, width: usize, first: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut room = width.saturating_sub(first).max(1);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let space = usize::from(!line.is_empty());
        if columns(&line) + space + columns(word) <= room {
            line.extend(std::iter::repeat_n(' ', space));
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            room = width.max(1);
        }
        // A word that is wider than a line (a path, a Chinese sentence) may be broken anywhere.
        for c in word.chars() {
            if columns(&line) + c.width().unwrap_or(0) > room && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
                room = width.max(1);
            }
            line.push(c);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// `12,345 messages`, `1 message`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(n))
}

/// A time for a person, with its zone: whatever the program records or takes from a conversation is in UTC.
pub(crate) fn utc(time: impl Display) -> String {
    format!("{time} UTC")
}

/// The same to the minute, for lists: `2025-01-01 10:00 UTC`.
pub(crate) fn utc_minute(time: &str) -> String {
    utc(time.chars().take("2025-01-01 10:00".len()).collect::<String>().replace('T', " "))
}

/// `812`, `31.2k`, `1.4M`: for narrow columns.
pub(crate) fn short(n: u64) -> String {
    if n < 10_000 {
        return thousands(n);
    }
    let (mut value, mut unit) = (n as f64, "");
    for next in ["k", "M", "G", "T", "P", "E"] {
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1_000.0, next);
    }
    format!("{value:.1}{unit}")
}

/// `812 B`, `31.2 KB`, `1.4 MB`: powers of 1,000.
pub(crate) fn bytes(n: u64) -> String {
    if n < 1_000 {
        return format!("{n} B");
    }
    let (mut value, mut unit) = (n as f64, "B");
    for next in ["KB", "MB", "GB", "TB", "PB", "EB"] {
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1_000.0, next);
    }
    format!("{value:.1} {unit}")
}

/// How much less `part` is than `whole`, in percent; negative when it is more.
pub(crate) fn saved(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        return "-".to_owned();
    }
    let percent = (1.0 - part / whole) * 100.0;
    // Avoids a negative zero.
    format!("{:.0} %", if percent.abs() < 0.5 { 0.0 } else { percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_bytes_have_units() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        let sizes = [999, 1_000, 31_249, 999_949, 999_999, u64::MAX];
        assert_eq!(
            sizes.map(bytes),
            ["999 B", "1.0 KB", "31.2 KB", "999.9 KB", "1.0 MB", "18.4 EB"]
        );
        assert_eq!([9_999, 10_000, 953_976_939].map(short), ["9,999", "10.0k", "954.0M"]);
        assert_eq!(saved(25.0, 100.0), "75 %");
        assert_eq!(saved(100.2, 100.0), "0 %");
        assert_eq!(saved(130.0, 100.0), "-30 %");
        assert_eq!(saved(1.0, 0.0), "-");
        for time in ["2025-01-01T10:00:59Z", "2025-01-01 10:00:59"] {
            assert_eq!(utc_minute(time), "2025-01-01 10:00 UTC");
        }
    }

    #[test]
    fn recorded_text_steers_no_terminal() {
        assert_eq!(
            plain("a\x1b[31mred\r\n\tb\u{9b}\u{202e}x\x7f"),
            r"a␛[31mred
	b\u{9b}\u{202e}x␡"
        );
        assert!(matches!(plain("plain\n中文"), Cow::Borrowed(_)));
        assert_eq!(one_line(" a\n\n b\tc\u{3000}中 "), "a b c 中");
    }

    #[test]
    fn chinese_takes_two_columns() {
        assert_eq!(fit("问题与回答", 10), "问题与回答");
        assert_eq!(fit("问题与回答", 9), "问题与回…");
        assert_eq!(fit("问题与回答", 8), "问题与…");
        assert_eq!(columns(&fill("问题与回答", 8)), 8);
        assert_eq!(columns(&fill("ab", 8)), 8);
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit_middle("问题与回答之一", 9), "问题…之一");
        assert_eq!(fit_middle("conversation-17", 10), "conv…on-17");
        assert_eq!(fit_middle("short", 10), "short");
        assert_eq!(fit_end("问题与回答", 9), "…题与回答");
        assert_eq!(fit_end("问题与回答", 8), "…与回答");
        assert_eq!(fit_end("问题与回答", 10), "问题与回答");
        assert_eq!([fit_end("abc", 1), fit_end("abc", 0)], ["…", ""]);
        for line in wrap("看 src/lib.rs 这一段很长的中文没有空格可以断开", 12, 4) {
            assert!(columns(&line) <= 12, "{line}");
        }
    }

    #[test]
    fn wrapping_keeps_every_word() {
        let text = "one two three four-hundred-and-twenty five";
        let lines = wrap(text, 10, 3);
        let first = ["one two", "three"];
        assert_eq!(lines[..2], first);
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        assert!(lines.iter().all(|line| columns(line) <= 10));
        assert!(wrap("", 10, 0).is_empty());
    }
}
