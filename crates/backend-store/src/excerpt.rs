//! Parts of a payload that fit a budget: a range of lines, or the lines around a pattern.

use crate::{
    Error, Fault, Meta,
    body::{Body, Lines, Piece, ceil_char, floor_char},
};
use foldback_core::{Estimate, PayloadKind, TokenCounter};
use regex::bytes::{Regex, RegexBuilder};
use std::{borrow::Cow, collections::VecDeque, fmt, ops::Range, str::FromStr};

/// A part of a payload that fits a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// Contiguous parts of the payload, ascending; nothing is in two of them.
    pub runs: Vec<Run>,
    /// Where to go on for the rest of what was asked for. `None` when this was all of it.
    pub next: Option<Position>,
    /// The lines of the whole payload.
    pub total_lines: u64,
    /// How many matches of a pattern are in it, each line (or each cut of a very long one) counted
    /// once. With no match and a `next`, the search stopped at its limit and can go on there.
    pub matches: u64,
}

impl Excerpt {
    /// The first line shown, counted from 1; 0 when none is.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.first_line)
    }

    /// The last line shown; 0 when none is.
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
    /// Where it stands in the payload.
    pub bytes: Range<u64>,
    /// The bytes themselves, line feeds included. Of a payload that is text, no character is cut.
    pub content: Vec<u8>,
    /// Whether the first line began before it.
    pub starts_inside: bool,
    /// Whether the last line goes on behind it.
    pub ends_inside: bool,
}

impl Run {
    /// The content as text; what is not UTF-8 is shown as U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.content)
    }
}

/// A place in a payload: a line, and for a very long line how far into it. Written as `12`, or
/// `12+4096` for the byte 4,096 bytes behind the beginning of line 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u64,
    /// Bytes of that line to skip.
    pub skip: u64,
}

impl From<u64> for Position {
    /// The beginning of this line.
    fn from(line: u64) -> Self {
        Self { line, skip: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.skip {
            0 => write!(f, "{}", self.line),
            skip => write!(f, "{}+{skip}", self.line),
        }
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        let (line, skip) = text.split_once('+').unwrap_or((text, "0"));
        match (number(line), number(skip)) {
            (Some(line), Some(skip)) => Ok(Self { line, skip }),
            _ => Err(PositionError(text.chars().take(40).collect())),
        }
    }
}

/// A text that is no [`Position`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no place in a payload: one looks like 12, or 12+4096 inside a long line")]
pub struct PositionError(String);

/// The lines from `first` to `last`, as far as the budget goes.
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
        return Err(Failure::Range { asked: format!("line {} to {last}", first.line) });
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

/// What a pattern search asks for.
pub(crate) struct Matching {
    pattern: Regex,
    context: usize,
    /// The bytes that one call may go through, each counted as often as it may cost.
    work: u64,
    /// Whether it asks for the borders of words.
    borders: bool,
}

impl Matching {
    /// Lines of context are capped at this.
    const CONTEXT: usize = 100;
    /// A pattern is at most this many bytes long.
    const PATTERN: usize = 1000;
    /// The compiled pattern's limit in bytes. `[\w-]{36}` takes 1.6 MB, because `\w` knows all
    /// scripts.
    const COMPILED: usize = 2 << 20;
    /// One call goes through so many bytes before it answers with a place to go on.
    const SCAN: u64 = 32 << 20;
    /// And it spends at most so much: bytes times the size of the compiled pattern, which is what a
    /// search costs at worst.
    const WORK: u64 = 1 << 39;
    /// Where a pattern asks for the borders of words, text beyond ASCII costs this many times as
    /// much: the engine has no automaton for it. The worst seen was 1.6 s a megabyte, against 2-5
    /// ms for nearly everything else.
    const BORDER: u64 = 32;
    /// A line up to this length is shown whole, of a longer one the part around the match.
    const SHOWN: usize = 2 << 10;
    /// So much of a longer line is shown where it is only context.
    const SHOWN_CONTEXT: usize = 512;

    pub(crate) fn new(pattern: &str, context: usize) -> Result<Self, Error> {
        let wrong = |why: String| {
            let pattern = pattern.chars().take(60).collect();
            Err(Error::BadPattern { pattern, why })
        };
        if pattern.is_empty() {
            return wrong("it is empty; ask for lines instead".to_owned());
        }
        if pattern.len() > Self::PATTERN {
            return wrong(format!(
                "it is longer than {} bytes; look for a shorter piece of it",
                Self::PATTERN
            ));
        }
        let build = |limit| {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(limit).dfa_size_limit(2 << 20).nest_limit(50).build()
        };
        // The engine does not say how large a pattern became, only whether it stayed below.
        let mut size = 1 << 10;
        let built = loop {
            match build(size) {
                Err(regex::Error::CompiledTooBig(_)) if size < Self::COMPILED => size *= 2,
                built => break built,
            }
        };
        match built {
            Ok(built) => Ok(Self {
                pattern: built,
                context: context.min(Self::CONTEXT),
                work: Self::WORK / size as u64,
                borders: ["\\b", "\\B", "\\<", "\\>"].iter().any(|word| pattern.contains(word)),
            }),
            Err(regex::Error::CompiledTooBig(_)) => wrong(
                "it repeats too much; use smaller counts, or (?-u) before classes such as \\w"
                    .to_owned(),
            ),
            Err(error) => {
                // The last line says what is wrong, the ones before it draw where.
                let what = error.to_string();
                let what = what.lines().last().unwrap_or_default().trim_start_matches("error: ");
                wrong(format!(
                    "{what}; to find a text as it stands, put a backslash before each of \
                     \\ . + * ? ( ) | [ ] {{ }} ^ $"
                ))
            }
        }
    }

    /// The lines around matches from `from` on, as far as the budget goes.
    pub(crate) fn search(
        &self,
        meta: &Meta,
        body: &mut Body,
        from: Position,
        budget: usize,
    ) -> Result<Excerpt, Failure> {
        let excerpt = empty(meta);
        let Some((from_byte, from_line_start)) = find(meta, body, from)? else {
            return Ok(excerpt);
        };
        // The context of a match in the first line stands before it.
        let (mut start, mut line, mut line_start) = (from_byte, from.line, from_line_start);
        if from.skip == 0 && self.context > 0 {
            line = from.line.saturating_sub(self.context as u64).max(1);
            start = body.line_start(line)?.unwrap_or(0);
            line_start = start;
        }
        let measure = Measure::of(meta);
        let mut walk = Lines::new(body, measure.text, start, line, line_start);
        let mut shown = Around {
            context: self.context,
            measure,
            left: budget.max(LEAST_TOKENS),
            before: VecDeque::new(),
            after: 0,
            excerpt,
        };
        let mut work = self.work;
        while let Some(piece) = walk.next()? {
            let here = Position { line: piece.line, skip: piece.skip };
            if piece.start > from_byte + Self::SCAN || work == 0 {
                shown.excerpt.next = Some(here);
                break;
            }
            let searched = without_line_end(piece.bytes);
            let mut found = None;
            if piece.start >= from_byte {
                let costly = self.borders && !searched.is_ascii();
                let cost = if costly { Self::BORDER } else { 1 };
                work = work.saturating_sub(searched.len() as u64 * cost);
                found = self.pattern.find(searched);
            }
            match found {
                Some(found) if !shown.take_match(&piece, found.range()) => {
                    shown.excerpt.next = Some(here);
                    break;
                }
                Some(_) => {}
                None => shown.take_context(&piece),
            }
        }
        Ok(shown.excerpt)
    }
}

/// The matches of a search with the lines around them, as far as the budget goes.
struct Around {
    /// So many lines are shown around a match.
    context: usize,
    measure: Measure,
    /// The tokens that are left.
    left: usize,
    /// What was seen before a match: the piece's place, and what it costs.
    before: VecDeque<(Seen, usize)>,
    /// So many lines are still shown after the last match.
    after: usize,
    excerpt: Excerpt,
}

impl Around {
    /// Shows a match and the context before it. `false` where it does not fit, and others were shown.
    fn take_match(&mut self, piece: &Piece<'_>, found: Range<usize>) -> bool {
        // The beginning of the line itself is no context of it.
        self.before.retain(|(seen, _)| seen.0.last_line != piece.line);
        let window = around(piece.bytes, found.clone(), Matching::SHOWN, self.measure.text);
        let cost = window_cost(&self.measure, piece, &window, self.left);
        let context = self.before.iter().fold(0_usize, |sum, (_, cost)| sum.saturating_add(*cost));
        match cost {
            Some(cost) if cost.saturating_add(context) <= self.left => {
                for (seen, _) in self.before.drain(..) {
                    seen.show(&mut self.excerpt.runs);
                }
                show(&mut self.excerpt.runs, piece, window);
                self.left -= cost + context;
            }
            _ if self.excerpt.runs.is_empty() => {
                let window = self.smaller_window(piece, found);
                show(&mut self.excerpt.runs, piece, window);
                self.left = 0;
            }
            _ => return false,
        }
        self.excerpt.matches += 1;
        self.before.clear();
        self.after = self.context;
        true
    }

    /// What is shown of a first match that is too large: rather a match without its context than none,
    /// and rather the match itself than what stands around it.
    fn smaller_window(&self, piece: &Piece<'_>, found: Range<usize>) -> Range<usize> {
        let Self { measure, left, .. } = self;
        let sizes = std::iter::successors(Some(Matching::SHOWN), |size| Some(size / 2));
        sizes
            .take_while(|size| *size > found.len())
            .map(|size| around(piece.bytes, found.clone(), size, measure.text))
            .find(|window| window_cost(measure, piece, window, *left).is_some())
            .unwrap_or_else(|| {
                let rest = piece.bytes.get(found.start..).unwrap_or_default();
                found.start..found.start + measure.longest(rest, *left)
            })
    }

    /// Shows a line without a match as the context of the match before it, or keeps it for the next.
    fn take_context(&mut self, piece: &Piece<'_>) {
        // A further part of a long line is no context: it is the same line.
        if piece.skip > 0 || self.context == 0 {
            return;
        }
        let window = 0..shown_as_context(piece.bytes, self.measure.text);
        let cost = window_cost(&self.measure, piece, &window, self.left);
        if self.after > 0 {
            self.after -= 1;
            match cost {
                Some(cost) => {
                    show(&mut self.excerpt.runs, piece, window);
                    self.left -= cost;
                }
                // There may still be a match, and only then is there something to go on to.
                None => (self.after, self.left) = (0, 0),
            }
            return;
        }
        if self.before.len() == self.context {
            self.before.pop_front();
        }
        let cost = cost.unwrap_or(self.left.saturating_add(1));
        self.before.push_back((Seen::of(piece, window), cost));
    }
}

/// Why there is no excerpt.
pub(crate) enum Failure {
    /// More was asked for than there is.
    Range {
        asked: String,
    },
    Fault(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// With less than this, no excerpt would get anywhere.
const LEAST_TOKENS: usize = 8;

fn empty(meta: &Meta) -> Excerpt {
    Excerpt { runs: Vec::new(), next: None, total_lines: meta.lines, matches: 0 }
}

/// Where a position is, and where its line begins. `None` for the beginning of an empty payload.
fn find(meta: &Meta, body: &mut Body, at: Position) -> Result<Option<(u64, u64)>, Failure> {
    if meta.lines == 0 && at == Position::from(1) {
        return Ok(None);
    }
    let wrong = || Failure::Range { asked: format!("line {at}") };
    if at.line == 0 || at.line > meta.lines {
        return Err(wrong());
    }
    let line_start = body.line_start(at.line)?.ok_or_else(wrong)?;
    let mut start = line_start.checked_add(at.skip).ok_or_else(wrong)?;
    if at.skip > 0 {
        if start >= body.len() || body.feeds_before(start)? != at.line - 1 {
            return Err(wrong());
        }
        if meta.kind != PayloadKind::Binary {
            // A position that somebody made up is moved to the beginning of its character.
            let near = start.saturating_sub(3).max(line_start);
            let bytes = body.range(near..start + 1)?;
            let inside = bytes.iter().rev().take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
            start -= (inside as u64).min(start - near);
        }
    }
    Ok(Some((start, line_start)))
}

/// Adds a window of a piece, to the last run when it goes on there.
fn show(runs: &mut Vec<Run>, piece: &Piece<'_>, window: Range<usize>) {
    Seen::of(piece, window).show(runs);
}

/// A part of a piece that is shown, or may come to be.
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

/// What bytes cost in tokens.
struct Measure {
    text: bool,
}

impl Measure {
    /// More bytes than this are never taken for one token, whatever an estimate says.
    const BYTES: usize = 16;

    fn of(meta: &Meta) -> Self {
        Self { text: meta.kind != PayloadKind::Binary }
    }

    /// The tokens of these bytes, if they are at most `left`.
    fn cost(&self, bytes: &[u8], left: usize) -> Option<usize> {
        if bytes.len() > left.saturating_mul(Self::BYTES) {
            return None;
        }
        let cost = if self.text {
            Estimate.count(&String::from_utf8_lossy(bytes))
        } else {
            // Base64 and hexadecimal digits are about two to a token.
            bytes.len().div_ceil(2)
        };
        (cost <= left).then_some(cost)
    }

    /// The longest beginning that costs at most `left`; at least one character.
    fn longest(&self, bytes: &[u8], left: usize) -> usize {
        let floor = |at| if self.text { floor_char(bytes, at) } else { at };
        let (mut low, mut high) = (0, bytes.len().min(left.saturating_mul(Self::BYTES)));
        while low < high {
            let middle = (low + high).div_ceil(2);
            let fits = self.cost(bytes.get(..floor(middle)).unwrap_or_default(), left).is_some();
            if fits {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        match floor(low) {
            0 if self.text => ceil_char(bytes, 1),
            0 => bytes.len().min(1),
            end => end,
        }
    }
}

fn window_cost(
    measure: &Measure,
    piece: &Piece<'_>,
    window: &Range<usize>,
    left: usize,
) -> Option<usize> {
    measure.cost(piece.bytes.get(window.clone()).unwrap_or_default(), left)
}

/// The piece, if it is at most `size` bytes long, or so much of it around what was found.
fn around(bytes: &[u8], found: Range<usize>, size: usize, text: bool) -> Range<usize> {
    if bytes.len() <= size {
        return 0..bytes.len();
    }
    let start = found.start.saturating_sub((size.saturating_sub(found.len()) / 2).min(size / 4));
    let end = (start + size).min(bytes.len());
    if text { ceil_char(bytes, start)..floor_char(bytes, end) } else { start..end }
}

fn shown_as_context(bytes: &[u8], text: bool) -> usize {
    match bytes.len() {
        length if length <= Matching::SHOWN => length,
        _ if text => floor_char(bytes, Matching::SHOWN_CONTEXT),
        _ => Matching::SHOWN_CONTEXT,
    }
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}
