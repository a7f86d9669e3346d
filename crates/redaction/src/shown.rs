//! Private keys that are shown with something around each line: line numbers, a difference, a quotation, a program.
//!
//! Their form is not one of `shapes.rs`, because anything may be around a line. What counts is that one line of base64
//! follows the next, from the line `-----BEGIN ..` on.

use crate::patience::Patience;
use std::ops::Range;

/// How a key begins.
pub(crate) const BEGIN: &str = "-----BEGIN ";

/// The longest name of a key.
const LONGEST_NAME: usize = 40;

/// The least length of a line of base64, and the greatest one of those of a key whose end is not shown.
const LINE: usize = 32;
const LONGEST_LINE: usize = 80;

/// The most that may be between two lines, and before the first one, where headers may be.
const BETWEEN: usize = 200;
const BEFORE: usize = 400;

/// Adds the places of a key whose beginning is at this place of a text. No place contains a quote.
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
    let mut start = body;
    for part in text.get(body..lines.last).unwrap_or_default().split('"') {
        if let Some(range) = secret(part) {
            take(start + range.start..start + range.end, kind);
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
        let (mut at, mut last) = (body, body);
        let (mut end, mut lengths) = (None, (0, 0));
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with(b"-----") {
                end = end_of(rest).map(|len| Self { last: at, end: at + len });
                break;
            }
            let run = rest.iter().take_while(|byte| is_base64(**byte)).count();
            let line = rest.get(..run).unwrap_or_default();
            if is_line(line) {
                last = at + run;
                lengths = match lengths {
                    (0, _) => (run, 0),
                    (first, 0) => (first, run),
                    lengths => lengths,
                };
            }
            at += run.max(1);
            if at - last > if lengths.0 == 0 { BEFORE } else { BETWEEN } {
                break;
            }
        }
        patience.spend(at - body);
        // Without an end it is a key if its lines are: the second one is as long as the first.
        let is_cut = lengths.0 == lengths.1 && lengths.0 <= LONGEST_LINE;
        let cut = is_cut.then_some(Self { last, end: last });
        end.or(cut).filter(|_| lengths.0 > 0)
    }
}

/// The length of a line `-----END ..`, also behind the sign of a line that was removed.
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

/// Whether a run of characters of base64 may be a line of a key, rather than a path, a name or a number.
fn is_line(run: &[u8]) -> bool {
    let slashes = run.iter().filter(|byte| **byte == b'/').count();
    run.len() >= LINE
        && slashes * 8 <= run.len()
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_digit)
}

/// The part of a quoted line that belongs to the key, without an escape that it begins with. What is between two quoted
/// lines has blanks in it.
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
    let said = bytes.get(start..end)?;
    let is_glue = said.len() < 4 || said.iter().any(u8::is_ascii_whitespace);
    let has_line = || said.split(|byte| !is_base64(*byte)).any(is_line);
    (!is_glue || has_line()).then_some(start..end)
}

/// The first bytes of a text.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}
