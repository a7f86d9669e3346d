//! Private keys that are shown with something around each line: line numbers, a difference, a quotation, a program.
//!
//! Their form is not one of `shapes.rs`, because anything may be around a line. What counts is that one line of base64
//! follows the next, from the line `-----BEGIN ..` on.

use crate::checks::bits;
use crate::patience::Patience;
use std::ops::Range;

/// How a key begins.
pub(crate) const BEGIN: &str = "-----BEGIN ";

/// The longest name of a key.
const LONGEST_NAME: usize = 40;

/// The least length of a line of base64, and the greatest one of those of a key whose end is not shown.
const LINE: usize = 32;
const LONGEST_LINE: usize = 80;

/// The least entropy of a line, in bits per character: the first line of an OpenSSH key has 4, padding with `A` has 2.
const LEAST_BITS: f32 = 3.0;

/// The most that may be between the first two lines, and before the first one, where headers may be.
const BETWEEN: usize = 200;
const BEFORE: usize = 400;

/// Adds the places of a key whose beginning is at this place of a text. No place contains a `"`.
pub(crate) fn find(
    text: &str,
    at: usize,
    patience: &mut Patience,
    take: &mut dyn FnMut(Range<usize>, &'static str),
) {
    let rest = text.get(at + BEGIN.len()..).unwrap_or_default();
    let Some((name, _)) = head(rest, LONGEST_NAME + 5).split_once("-----") else { return };
    let Some(kind) = kind(name) else { return };
    let body = at + BEGIN.len() + name.len() + 5;
    let Some(lines) = Lines::of(text.as_bytes(), body, patience) else { return };
    let key = text.get(at..lines.end).unwrap_or_default();
    if !key.contains('"') {
        return take(at..lines.end, kind);
    }
    quoted(text.get(body..lines.last).unwrap_or_default(), &mut |range| {
        take(body + range.start..body + range.end, kind);
    });
}

/// Adds the places of a key whose lines are in quotes: each part between two quotes that has a line of base64. A
/// shorter line counts only if as many quotes are before it as between the lines: `{"log":"Qw==\n","time":".."}`.
fn quoted(text: &str, take: &mut dyn FnMut(Range<usize>)) {
    // The number of the last part with a line, and how many parts after the one before it.
    let (mut start, mut last, mut period) = (0, 0, 0);
    for (n, part) in text.split('"').enumerate() {
        let has_line = has_line(part.as_bytes());
        if has_line {
            (last, period) = (n, n - last);
        }
        let is_next = || period > 0 && (n - last) % period == 0;
        if let Some(range) = secret(part)
            && (has_line || is_next() && part.get(range.clone()).is_some_and(is_short_line))
        {
            take(start + range.start..start + range.end);
        }
        start += part.len() + 1;
    }
}

fn kind(name: &str) -> Option<&'static str> {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    let is_key = name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK");
    (is_key && name.bytes().all(fits)).then_some(match name {
        "OPENSSH PRIVATE KEY" => "ssh-private-key",
        "PGP PRIVATE KEY BLOCK" => "pgp-private-key",
        _ => "private-key",
    })
}

/// The lines of a key.
struct Lines {
    /// The end of what belongs to the key without the line `-----END ..`, and with it.
    last: usize,
    end: usize,
}

impl Lines {
    /// Reads the lines of base64 from the end of the line `-----BEGIN ..` on.
    fn of(text: &[u8], body: usize, patience: &mut Patience) -> Option<Self> {
        let (mut at, mut last, mut end) = (body, body, None);
        let mut cut = Cut::default();
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with(b"-----") {
                end = end_of(rest).map(|len| Self { last: at, end: at + len });
                break;
            }
            let run = run(rest);
            if is_line(rest, run) {
                last = at + run;
                cut.add(at..last);
            }
            at += run.max(1);
            if at - last > cut.reach() {
                break;
            }
        }
        patience.spend(at - body);
        // Without an end it is a key if its lines are: the second one is as long as the first.
        let is_cut = cut.lines > 1 && cut.length <= LONGEST_LINE;
        end.filter(|_| cut.lines > 0).or(is_cut.then_some(Self { last: cut.end, end: cut.end }))
    }
}

/// The lines of a key whose end is not shown: all of one length, and then at most one that is shorter.
#[derive(Default)]
struct Cut {
    lines: usize,
    length: usize,
    /// How many bytes are between the first two lines.
    between: usize,
    end: usize,
    is_over: bool,
}

impl Cut {
    /// How far the next line, or the line `-----END ..`, may be. Two short lines may be between.
    fn reach(&self) -> usize {
        if self.lines == 0 { BEFORE } else { BETWEEN + 2 * self.between }
    }

    /// Adds the next line of base64, if it belongs to the key.
    fn add(&mut self, line: Range<usize>) {
        let between = line.start - self.end;
        match self.lines {
            0 => self.length = line.len(),
            1 => self.between = between,
            _ => {}
        }
        // What else follows a key has something else before it.
        let is_like = between.abs_diff(self.between) <= 2 + self.between / 8;
        let is_shorter = self.lines > 1 && line.len() < self.length && is_like;
        if !self.is_over && (line.len() == self.length || is_shorter) {
            self.end = line.end;
            self.lines += 1;
            self.is_over = is_shorter;
        } else {
            self.is_over = true;
        }
    }
}

/// The length of a line `-----END ..`, also after the sign of a line that was removed.
fn end_of(rest: &[u8]) -> Option<usize> {
    let dashes = rest.iter().take_while(|byte| **byte == b'-').count();
    let name = rest.get(dashes..)?.strip_prefix(b"END ")?;
    let name = name.get(..name.len().min(LONGEST_NAME + 5))?;
    let len = name.windows(5).position(|five| five == b"-----")?;
    Some(dashes + 4 + len + 5)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The length of the run of characters of base64 that a text begins with.
fn run(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_base64(**byte)).count()
}

/// Whether a line of a key is anywhere in a text.
fn has_line(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| rest.len() >= LINE) {
        let run = run(rest);
        if is_line(rest, run) {
            return true;
        }
        at += run.max(1);
    }
    false
}

/// Whether the run of characters of base64 at the beginning of a text may be a line of a key, rather than a name, a
/// number, or a path: that one goes on, as in `secrets/deploy.pem-2-`.
fn is_line(text: &[u8], run: usize) -> bool {
    let (run, behind) = text.split_at(run);
    let slashes = run.iter().filter(|byte| **byte == b'/').count();
    let is_name =
        matches!(behind, [b'.' | b'-' | b'_' | b':', next, ..] if next.is_ascii_alphanumeric());
    run.len() >= LINE
        && !is_name
        && slashes * 8 <= run.len()
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_digit)
        && str::from_utf8(run).is_ok_and(|run| bits(run) >= LEAST_BITS)
}

/// Whether a text is base64 alone, but for escapes at its end: the last line of a key, or the sum of one of PGP.
fn is_short_line(text: &str) -> bool {
    let (line, escapes) = text.as_bytes().split_at(run(text.as_bytes()));
    let is_sum = line.len() == 5 && line.starts_with(b"=");
    (is_sum || line.len() >= 4 && line.len().is_multiple_of(4))
        && escapes.iter().all(|byte| b"\\nrt".contains(byte))
}

/// The part of a quoted line that belongs to the key, without an escape that it begins with.
fn secret(part: &str) -> Option<Range<usize>> {
    let bytes = part.as_bytes();
    let mut start = 0;
    while !bytes.get(start).is_some_and(|byte| is_base64(*byte)) {
        start += match bytes.get(start..start + 2)? {
            b"\\u" => 6,
            [b'\\', _] => 2,
            _ => 1,
        };
    }
    let end = bytes.iter().rposition(|byte| is_base64(*byte))? + 1;
    (start < end).then_some(start..end)
}

/// The first bytes of a text.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}
