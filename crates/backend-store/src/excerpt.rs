//! Parts of a payload that fit a budget: a range of lines, or the lines around a pattern.

mod matching;
mod measure;
mod position;

pub(crate) use matching::Matching;
pub use position::{Position, PositionError};

use crate::body::{Body, Lines, Piece, ceil_char, floor_char};
use crate::{Fault, Meta};
use foldback_core::PayloadKind;
use measure::Measure;
use std::borrow::Cow;
use std::ops::Range;

/// A part of a payload that fits a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// Contiguous parts of the payload, ascending, which do not overlap.
    pub runs: Vec<Run>,
    /// Where the rest of the request continues. `None` when this is all of it.
    pub next: Option<Position>,
    /// The number of lines of the whole payload.
    pub total_lines: u64,
    /// How many matches of a pattern are in it; each line (or each part of a very long one) counts
    /// once. With no match and a `next`, the search stopped at its limit and can continue there.
    pub matches: u64,
}

impl Excerpt {
    /// Returns the first line shown, counted from 1; 0 when none is.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.first_line)
    }

    /// Returns the last line shown; 0 when none is.
    #[must_use]
    pub fn last_line(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.last_line)
    }
}

/// Contiguous bytes of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// The line of its first byte, counted from 1.
    pub first_line: u64,
    /// The line of its last byte.
    pub last_line: u64,
    /// Its place in the payload.
    pub bytes: Range<u64>,
    /// The bytes themselves, including line feeds. In a text payload no character is cut.
    pub content: Vec<u8>,
    /// Whether the first line began before it.
    pub starts_inside: bool,
    /// Whether the last line continues after it.
    pub ends_inside: bool,
}

impl Run {
    /// Returns the content as text; bytes that are not UTF-8 are shown as U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.content)
    }
}

/// Returns the lines from `first` to `last`, as far as the budget goes.
pub(crate) fn lines(
    meta: &Meta,
    body: &mut Body,
    first: Position,
    last: u64,
    budget: usize,
) -> Result<Excerpt, Failure> {
    let mut excerpt = empty(meta);
    let Some((start, line_start)) = find(meta, body, first)? else { return Ok(excerpt) };
    if last < first.line {
        return Err(Failure::Range { asked: format!("line {} to {last}", first.line), line: None });
    }
    let measure = Measure::of(meta);
    let budget = budget.max(LEAST_TOKENS);
    let mut left = budget;
    let mut walk = Lines::new(body, measure.text, start, first.line, line_start);
    while let Some(piece) = walk.next()?.filter(|piece| piece.line <= last) {
        let cost = measure.cost(piece.bytes, left);
        let here = Position { line: piece.line, skip: piece.skip };
        match cost {
            Some(cost) => {
                show(&mut excerpt.runs, &piece, 0..piece.bytes.len());
                left -= cost;
            }
            None if excerpt.runs.is_empty() => {
                let end = measure.longest(piece.bytes, left);
                show(&mut excerpt.runs, &piece, 0..end);
                excerpt.next = Some(Position { line: piece.line, skip: piece.skip + end as u64 });
                break;
            }
            None => {
                excerpt.next = Some(here);
                break;
            }
        }
    }
    Ok(excerpt)
}

/// Why there is no excerpt.
pub(crate) enum Failure {
    /// The request goes beyond the payload.
    Range {
        asked: String,
        /// The line that is too short, and its bytes.
        line: Option<(u64, u64)>,
    },
    Fault(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// With less than this, no excerpt would make progress.
const LEAST_TOKENS: usize = 8;

fn empty(meta: &Meta) -> Excerpt {
    Excerpt { runs: Vec::new(), next: None, total_lines: meta.lines, matches: 0 }
}

/// Returns where a position is, and where its line begins. `None` for the beginning of an empty payload.
fn find(meta: &Meta, body: &mut Body, at: Position) -> Result<Option<(u64, u64)>, Failure> {
    if meta.lines == 0 && at == Position::from(1) {
        return Ok(None);
    }
    let wrong = || Failure::Range { asked: format!("line {at}"), line: None };
    if at.line == 0 || at.line > meta.lines {
        return Err(wrong());
    }
    let line_start = body.line_start(at.line)?.ok_or_else(wrong)?;
    let mut start = line_start.saturating_add(at.skip);
    if at.skip > 0 {
        if start >= body.len() || body.feeds_before(start)? != at.line - 1 {
            let end = body.line_start(at.line + 1)?.unwrap_or(body.len());
            let line = Some((at.line, end - line_start));
            return Err(Failure::Range { asked: format!("line {at}"), line });
        }
        if meta.kind != PayloadKind::Binary {
            // A position inside a character is moved to the beginning of that character.
            let near = start.saturating_sub(3).max(line_start);
            let bytes = body.range(near..start + 1)?;
            let inside = bytes.iter().rev().take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
            start -= (inside as u64).min(start - near);
        }
    }
    Ok(Some((start, line_start)))
}

/// Adds a window of a piece, to the last run if it continues that run.
fn show(runs: &mut Vec<Run>, piece: &Piece<'_>, window: Range<usize>) {
    Seen::of(piece, window).show(runs);
}

/// A part of a piece that is shown, or may be shown later.
struct Seen(Run);

impl Seen {
    fn of(piece: &Piece<'_>, window: Range<usize>) -> Self {
        let start = piece.start + window.start as u64;
        Self(Run {
            first_line: piece.line,
            last_line: piece.line,
            bytes: start..start + window.len() as u64,
            starts_inside: piece.skip > 0 || window.start > 0,
            ends_inside: !piece.ends || window.end < piece.bytes.len(),
            content: piece.bytes.get(window).unwrap_or_default().to_vec(),
        })
    }

    fn show(self, runs: &mut Vec<Run>) {
        let Self(next) = self;
        if next.bytes.is_empty() {
            return;
        }
        match runs.last_mut() {
            Some(last) if last.bytes.end == next.bytes.start => {
                last.bytes.end = next.bytes.end;
                last.last_line = next.last_line;
                last.ends_inside = next.ends_inside;
                last.content.extend(next.content);
            }
            _ => runs.push(next),
        }
    }
}

/// Returns the piece, if it is at most `size` bytes long, or that much of it around the match.
fn around(bytes: &[u8], found: Range<usize>, size: usize, text: bool) -> Range<usize> {
    if bytes.len() <= size {
        return 0..bytes.len();
    }
    let start = found.start.saturating_sub((size.saturating_sub(found.len()) / 2).min(size / 4));
    let end = (start + size).min(bytes.len());
    if text { ceil_char(bytes, start)..floor_char(bytes, end) } else { start..end }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}
