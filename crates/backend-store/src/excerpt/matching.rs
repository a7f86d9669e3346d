//! The lines that a pattern matches, with lines around them.

use super::measure::{Measure, window_cost};
use super::position::Position;
use super::{Excerpt, Failure, LEAST_TOKENS, Seen, around, empty, find, show, without_line_end};
use crate::body::{Body, Lines, Piece, floor_char};
use crate::{Error, Meta};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::VecDeque;
use std::ops::Range;

/// The request of a pattern search.
pub(crate) struct Matching {
    pattern: Regex,
    context: usize,
    /// The bytes that one call may search, each weighted by what it may cost.
    work: u64,
    /// Whether the pattern uses word boundaries.
    borders: bool,
}

impl Matching {
    /// Lines of context are capped at this.
    const CONTEXT: usize = 100;
    /// A pattern is at most this many bytes long.
    const PATTERN: usize = 1000;
    /// The compiled pattern's limit in bytes. `[\w-]{36}` takes 1.6 MB, because `\w` covers all
    /// scripts.
    const COMPILED: usize = 2 << 20;
    /// One call searches at most this many bytes before it returns a place to continue from.
    const SCAN: u64 = 32 << 20;
    /// One call also does at most this much work: bytes times the size of the compiled pattern,
    /// which is the worst-case cost of a search.
    const WORK: u64 = 1 << 39;
    /// If a pattern uses word boundaries, text beyond ASCII costs this many times as much, because
    /// the engine has no automaton for it. The worst case seen was 1.6 s per megabyte, against 2-5
    /// ms for nearly everything else.
    const BORDER: u64 = 32;
    /// A line up to this length is shown whole; of a longer one, the part around the match is shown.
    const SHOWN: usize = 2 << 10;
    /// At most this much of a longer line is shown if it is only context.
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
                "it is longer than {} bytes; search for a shorter part of it",
                Self::PATTERN
            ));
        }
        let build = |limit| {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(limit).dfa_size_limit(2 << 20).nest_limit(50).build()
        };
        // The engine does not report the size of a pattern, only whether it stayed below a limit.
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
                // The last line says what is wrong; the lines before it draw where.
                let what = error.to_string();
                let what = what.lines().last().unwrap_or_default().trim_start_matches("error: ");
                wrong(format!(
                    "{what}; to find a text as it stands, put a backslash before each of \
                     \\ . + * ? ( ) | [ ] {{ }} ^ $"
                ))
            }
        }
    }

    /// Returns the lines around matches from `from` on, as far as the budget goes.
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
        // The context of a match in the first line is before it.
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
    /// How many lines are shown around a match.
    context: usize,
    measure: Measure,
    /// The tokens that are left.
    left: usize,
    /// The pieces seen before a match: the place of each, and its cost.
    before: VecDeque<(Seen, usize)>,
    /// How many more lines are shown after the last match.
    after: usize,
    excerpt: Excerpt,
}

impl Around {
    /// Shows a match and the context before it. Returns `false` if it does not fit and others were shown.
    fn take_match(&mut self, piece: &Piece<'_>, found: Range<usize>) -> bool {
        // The beginning of the line itself does not count as its context.
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

    /// Returns the part of a first match that is shown if it is too large: a match without its context
    /// is better than none, and the match itself is better than the text around it.
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
        // A further part of a long line is not context: it is the same line.
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
                // There may still be a match, and only then is there something to continue with.
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

fn shown_as_context(bytes: &[u8], text: bool) -> usize {
    match bytes.len() {
        length if length <= Matching::SHOWN => length,
        _ if text => floor_char(bytes, Matching::SHOWN_CONTEXT),
        _ => Matching::SHOWN_CONTEXT,
    }
}
