//! The bytes of one payload, wherever they are stored.

use crate::{
    Fault,
    file::reader::{Reader, count_feeds, nth_feed},
};
use std::{io::BufRead, ops::Range};

/// The bytes of one payload, wherever they are stored. Every byte that it returns was checked.
pub(crate) enum Body {
    /// From a record, checked as a whole when it was read.
    Record(Vec<u8>),
    /// In a file, checked chunk by chunk.
    File(Box<Reader>),
}

impl Body {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Record(bytes) => bytes.len() as u64,
            Self::File(reader) => reader.bytes(),
        }
    }

    /// Returns bytes from `at` on, at least one unless `at` is at or after the end.
    pub(crate) fn fill(&mut self, at: u64) -> Result<&[u8], Fault> {
        match self {
            Self::Record(bytes) => Ok(bytes.get(at as usize..).unwrap_or_default()),
            Self::File(reader) => reader.fill(at),
        }
    }

    /// Returns the bytes of a range, cut at the end.
    pub(crate) fn range(&mut self, range: Range<u64>) -> Result<Vec<u8>, Fault> {
        let mut out = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let bytes = self.fill(at)?;
            if bytes.is_empty() {
                break;
            }
            let wanted = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let part = bytes.get(..wanted).unwrap_or(bytes);
            out.extend_from_slice(part);
            at += part.len() as u64;
        }
        Ok(out)
    }

    /// Returns where a line begins, counted from 1. `None` when there is no line feed before it.
    pub(crate) fn line_start(&mut self, line: u64) -> Result<Option<u64>, Fault> {
        let feeds = line.saturating_sub(1);
        match self {
            _ if feeds == 0 => Ok(Some(0)),
            Self::Record(bytes) => Ok(nth_feed(bytes, feeds).map(|at| at as u64 + 1)),
            Self::File(reader) => reader.after_feed(feeds),
        }
    }

    /// Returns the number of line feeds before `at`.
    pub(crate) fn feeds_before(&mut self, at: u64) -> Result<u64, Fault> {
        match self {
            Self::Record(bytes) => Ok(count_feeds(bytes.get(..at as usize).unwrap_or(bytes))),
            Self::File(reader) => reader.feeds_before(at),
        }
    }
}

/// A walk over a body, line by line.
pub(crate) struct Lines<'a> {
    body: &'a mut Body,
    /// Whether the body is UTF-8, so that no character may be cut.
    text: bool,
    at: u64,
    line: u64,
    line_start: u64,
    buffer: Vec<u8>,
}

/// A line, or a part of a very long one.
pub(crate) struct Piece<'a> {
    /// The line, counted from 1.
    pub(crate) line: u64,
    /// Where the piece begins inside its line.
    pub(crate) skip: u64,
    /// Where it begins in the payload.
    pub(crate) start: u64,
    /// Its bytes, with the line feed if it has one.
    pub(crate) bytes: &'a [u8],
    /// Whether the line ends with it.
    pub(crate) ends: bool,
}

impl<'a> Lines<'a> {
    /// No piece is longer than this.
    pub(crate) const PIECE: usize = 64 << 10;

    /// Walks from `at`, which is in the line `line` that begins at `line_start`.
    pub(crate) fn new(body: &'a mut Body, text: bool, at: u64, line: u64, line_start: u64) -> Self {
        Self { body, text, at, line, line_start, buffer: Vec::new() }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece<'_>>, Fault> {
        self.buffer.clear();
        let mut ends = false;
        while !ends && self.buffer.len() < Self::PIECE {
            let bytes = self.body.fill(self.at + self.buffer.len() as u64)?;
            if bytes.is_empty() {
                ends = true;
                break;
            }
            let room = Self::PIECE - self.buffer.len();
            let mut window = bytes.get(..room).unwrap_or(bytes);
            window.read_until(b'\n', &mut self.buffer)?;
            ends = self.buffer.last() == Some(&b'\n');
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        if self.text && !ends {
            let whole = floor_char(&self.buffer, self.buffer.len());
            self.buffer.truncate(whole);
        }
        let length = self.buffer.len() as u64;
        // The end of the payload also ends its line.
        let ends = ends || self.at + length == self.body.len();
        let (line, start) = (self.line, self.at);
        let skip = start - self.line_start;
        self.at += length;
        if self.buffer.last() == Some(&b'\n') {
            self.line += 1;
            self.line_start = self.at;
        }
        Ok(Some(Piece { line, skip, start, bytes: &self.buffer, ends }))
    }
}

/// Returns the greatest cut of UTF-8 bytes at or before `at` that is not inside a character. It
/// never moves by more than three bytes, whatever the bytes are.
pub(crate) fn floor_char(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    for back in 0..4.min(at) {
        let cut = at - back;
        let Some(lead) = bytes.get(cut - 1) else { continue };
        let needs = match lead {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
            _ => 1,
        };
        // The character that begins before the cut either ends here or is left out entirely.
        return if needs <= back + 1 { at } else { cut - 1 };
    }
    at
}

/// Returns the smallest cut at or after `at` that is not inside a character.
pub(crate) fn ceil_char(bytes: &[u8], at: usize) -> usize {
    let ahead = bytes.iter().skip(at).take(3).take_while(|byte| matches!(byte, 0x80..=0xbf));
    (at + ahead.count()).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_inside_no_character() {
        let text = "a中é😀b";
        for at in 0..=text.len() {
            let mut floor = at;
            while !text.is_char_boundary(floor) {
                floor -= 1;
            }
            let mut ceil = at;
            while !text.is_char_boundary(ceil) {
                ceil += 1;
            }
            assert_eq!(floor_char(text.as_bytes(), at), floor, "floor {at}");
            assert_eq!(ceil_char(text.as_bytes(), at), ceil, "ceil {at}");
        }
        assert_eq!(floor_char(b"\x80\x80\x80\x80\x80", 5), 5);
        assert_eq!(floor_char(b"ab", 9), 2);
    }

    #[test]
    fn walking_gives_every_byte_once() {
        let long = "长".repeat(50_000);
        let text = format!("one\n\n{long}\nthree 😀\r\nend");
        let mut body = Body::Record(text.clone().into_bytes());
        let mut lines = Lines::new(&mut body, true, 0, 1, 0);
        let mut back = Vec::new();
        let mut seen = Vec::new();
        while let Some(piece) = lines.next().unwrap() {
            assert!(std::str::from_utf8(piece.bytes).is_ok());
            assert_eq!(piece.start, back.len() as u64);
            back.extend_from_slice(piece.bytes);
            seen.push((piece.line, piece.skip, piece.ends));
        }
        assert_eq!(back, text.as_bytes());
        assert_eq!(
            seen,
            [
                (1, 0, true),
                (2, 0, true),
                (3, 0, false),
                (3, 65_535, false),
                (3, 131_070, true),
                (4, 0, true),
                (5, 0, true)
            ]
        );
    }
}
