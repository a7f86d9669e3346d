//! Output to a terminal: text, and the program's own styles. Nothing that was recorded or comes from elsewhere can
//! control the terminal.
//!
//! Everything that the program prints passes through here. On a terminal, each control character becomes a visible
//! mark; a pipe or a file gets the bytes as they are.

use super::text::{push_mark, steers};
use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

/// The kind of output, which decides how a control character is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The program's own text, whose styles stay.
    Styled,
    /// Bytes from elsewhere, without styles of ours.
    Bytes,
    /// JSON: an escape with the same meaning, so that text copied from the terminal is still JSON.
    Json,
}

/// Prints text with styles on stdout, in one write.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write(anstream::stdout(), io::stdout().is_terminal(), text)
}

/// Prints text with styles on stderr, in one write.
pub(crate) fn print_aside(text: &str) -> io::Result<()> {
    write(anstream::stderr(), io::stderr().is_terminal(), text)
}

/// Prints bytes on stdout; anything but a terminal gets them just as they are.
pub(crate) fn print_bytes(bytes: &[u8], form: Form) -> io::Result<()> {
    let mut stdout = Shown::stdout(form);
    stdout.write_all(bytes)?;
    stdout.end()
}

/// The text as a terminal may receive it: the program's own styles stay.
pub(crate) fn styled(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    push_text(&mut shown, text, Form::Styled);
    Cow::Owned(shown)
}

fn write(mut stream: impl Write, is_terminal: bool, text: &str) -> io::Result<()> {
    let shown = if is_terminal { styled(text) } else { Cow::Borrowed(text) };
    stream.write_all(shown.as_bytes())?;
    stream.flush()
}

/// A stream of bytes that may end at a terminal.
pub(crate) struct Shown<W> {
    stream: W,
    form: Form,
    is_terminal: bool,
    /// The beginning of a character that is not complete yet, or a carriage return.
    held: Vec<u8>,
}

impl Shown<io::StdoutLock<'static>> {
    /// Stdout, for bytes that come piece by piece.
    pub(crate) fn stdout(form: Form) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        Self { stream: stdout.lock(), form, is_terminal, held: Vec::new() }
    }
}

impl<W: Write> Shown<W> {
    /// Ends the stream.
    pub(crate) fn end(mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        let (shown, _) = show(&held, self.form, true);
        self.stream.write_all(shown.as_bytes())?;
        self.stream.flush()
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.stream.write(bytes);
        }
        self.held.extend_from_slice(bytes);
        let (shown, taken) = show(&self.held, self.form, false);
        self.stream.write_all(shown.as_bytes())?;
        self.held.drain(..taken);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The output for a terminal, and how many of the bytes it covers; fewer than all only if more may come.
fn show(bytes: &[u8], form: Form, is_end: bool) -> (String, usize) {
    let mut shown = String::with_capacity(bytes.len());
    let mut taken = 0;
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        let waits = !is_end && chunks.peek().is_none();
        let valid = chunk.valid();
        // What follows a carriage return decides its meaning.
        let now = match valid.strip_suffix('\r') {
            Some(before) if waits && chunk.invalid().is_empty() => before,
            _ => valid,
        };
        push_text(&mut shown, now, form);
        taken += now.len();
        let may_go_on = || str::from_utf8(chunk.invalid()).is_err_and(|e| e.error_len().is_none());
        if waits && !chunk.invalid().is_empty() && may_go_on() {
            break;
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
        taken += chunk.invalid().len();
    }
    (shown, taken)
}

fn push_text(shown: &mut String, text: &str, form: Form) {
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let style = if form == Form::Styled { own_style(from) } else { 0 };
        if style > 0 {
            shown.push_str(&from[..style]);
            rest = &from[style..];
            continue;
        }
        let mut chars = from.chars();
        match (chars.next(), form) {
            // Before a line break it has no effect; in JSON it can only occur between values.
            (Some('\r'), _) if form == Form::Json || chars.as_str().starts_with('\n') => {}
            // In JSON these occur only in strings, and in the basic plane.
            (Some(c), Form::Json) => shown.push_str(&format!("\\u{:04x}", c as u32)),
            (Some(c), _) => push_mark(shown, c),
            (None, _) => {}
        }
        rest = chars.as_str();
    }
    shown.push_str(rest);
}

/// The length of a style of the program's that a text begins with: bold, dimmed or underlined, one of the plain
/// colours, or a reset; 0 for anything else.
fn own_style(text: &str) -> usize {
    let Some(after) = text.strip_prefix("\x1b[") else { return 0 };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let is_style = matches!(after[..digits].parse(), Ok(0_u8..=2 | 4 | 31..=36));
    let is_ended = after[digits..].starts_with('m');
    if is_style && is_ended { "\x1b[".len() + digits + "m".len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;

    #[test]
    fn styles_of_ours_stay_and_nothing_else_steers() {
        let own = style::paint(style::BAD, "bad") + &style::paint(style::DIM, "dim\n\there");
        assert_eq!(styled(&own), own);
        let foreign = "\x1b[2J\x1b]0;x\x07\x1b[38;5;1m\x1b[8m\r\x1b[1";
        let shown = "␛[2J␛]0;x␇␛[38;5;1m␛[8m␍␛[1";
        assert_eq!(styled(foreign), shown);
    }

    #[test]
    fn bytes_are_shown_the_same_however_they_are_cut() {
        let bytes = b"\xe4\xb8\xad\x1b[1m\r\n\x9b2J\xc2\x9b\xe4\xb8x\xe2\x80\xae\r";
        let whole = show(bytes, Form::Bytes, true).0;
        assert_eq!(whole, "中␛[1m\n\\x9b2J\\u{9b}\\xe4\\xb8x\\u{202e}␍");
        for size in 1..bytes.len() {
            let mut shown = Vec::new();
            let mut stream = Shown {
                stream: &mut shown,
                form: Form::Bytes,
                is_terminal: true,
                held: Vec::new(),
            };
            bytes.chunks(size).for_each(|piece| stream.write_all(piece).unwrap());
            stream.end().unwrap();
            assert_eq!(String::from_utf8(shown).unwrap(), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let json = "{\"a\":\r \"\u{9b}2J\u{7f}\u{2066}\"}";
        let (shown, _) = show(json.as_bytes(), Form::Json, true);
        assert_eq!(shown, r#"{"a": "\u009b2J\u007f\u2066"}"#);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(json));
    }
}
