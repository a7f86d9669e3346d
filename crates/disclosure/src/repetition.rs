//! Finds text that is already in view: whole texts, and runs of lines.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// A shorter line begins no run: too many texts have it.
const LINE_BYTES: usize = 8;

/// A run of fewer bytes is not longer than the note that points to it.
const RUN_BYTES: usize = 120;

/// How many places of a line are tried, beginning with the first.
const PLACES: usize = 8;

/// A line of a text, without its end.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    place: Range<usize>,
    hash: u64,
}

impl Line {
    /// Returns the lines of a text.
    pub(crate) fn of(text: &str) -> Vec<Self> {
        let mut start = 0;
        let lines = text.split('\n').map(|line| {
            let place = start..start + line.len();
            start = place.end + 1;
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            Self { place, hash: hasher.finish() }
        });
        lines.collect()
    }

    /// Its place in its text.
    pub(crate) fn place(&self) -> &Range<usize> {
        &self.place
    }

    fn is_telling(&self, text: &str) -> bool {
        text.get(self.place.clone()).is_some_and(|line| line.trim().len() >= LINE_BYTES)
    }
}

/// Lines of a text that are elsewhere, word for word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The lines, from 0.
    pub(crate) lines: Range<usize>,
    /// The number of the text that contains them.
    pub(crate) source: usize,
    /// The first of them there.
    pub(crate) from: usize,
}

/// The texts in a view.
#[derive(Default)]
pub(crate) struct Standing<'t> {
    texts: Vec<Source<'t>>,
    places: BTreeMap<u64, Vec<(usize, usize)>>,
    wholes: BTreeMap<&'t str, usize>,
    /// The lines that are searched for, if only those of one text are.
    wanted: Option<BTreeSet<u64>>,
}

struct Source<'t> {
    number: usize,
    text: &'t str,
    lines: &'t [Line],
    /// The lines that something else replaces.
    gone: Vec<Range<usize>>,
}

impl Source<'_> {
    fn line(&self, at: usize) -> Option<&str> {
        let line = self.lines.get(at).filter(|_| !self.gone.iter().any(|gone| gone.contains(&at)));
        line.and_then(|line| self.text.get(line.place.clone()))
    }
}

impl<'t> Standing<'t> {
    /// Creates an empty set for finding these lines alone.
    pub(crate) fn wanting(lines: &[Line]) -> Self {
        let wanted = lines.iter().map(|line| line.hash).collect();
        Self { wanted: Some(wanted), ..Self::default() }
    }

    /// Adds a text under its number, without the lines in `gone`.
    pub(crate) fn add(
        &mut self,
        number: usize,
        text: &'t str,
        lines: &'t [Line],
        gone: Vec<Range<usize>>,
    ) {
        let source = Source { number, text, lines, gone };
        for (at, line) in lines.iter().enumerate() {
            let is_wanted = self.wanted.as_ref().is_none_or(|lines| lines.contains(&line.hash));
            if is_wanted && line.is_telling(text) && source.line(at).is_some() {
                let places = self.places.entry(line.hash).or_default();
                if places.len() < PLACES {
                    places.push((self.texts.len(), at));
                }
            }
        }
        if source.gone.is_empty() {
            self.add_whole(number, text);
        }
        self.texts.push(source);
    }

    /// Adds a text that is shown in another form.
    pub(crate) fn add_whole(&mut self, number: usize, text: &'t str) {
        self.wholes.entry(text).or_insert(number);
    }

    /// Returns the text that is equal to this one.
    pub(crate) fn whole(&self, text: &str) -> Option<usize> {
        self.wholes.get(text).copied()
    }

    /// Returns the runs of lines that are already there, in order: from the beginning on, always the longest one, and
    /// of two equal ones the first.
    pub(crate) fn runs(&self, text: &str, lines: &[Line]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let (mut at, mut free) = (0, 0);
        while let Some(line) = lines.get(at) {
            let places = self.places.get(&line.hash).filter(|_| line.is_telling(text));
            let longest = places.into_iter().flatten().fold(None, |best: Option<Run>, place| {
                let run = self.run_at(text, lines, free..at, *place);
                let is_longer = best.as_ref().is_none_or(|best| run.lines.len() > best.lines.len());
                if is_longer { Some(run) } else { best }
            });
            let Some(run) = longest.filter(|run| bytes(lines, &run.lines) >= RUN_BYTES) else {
                at += 1;
                continue;
            };
            (at, free) = (run.lines.end, run.lines.end);
            runs.push(run);
        }
        runs
    }

    /// Returns the run around the line after `before` that is also at `place`.
    fn run_at(
        &self,
        text: &str,
        lines: &[Line],
        before: Range<usize>,
        (source, there): (usize, usize),
    ) -> Run {
        let Some(of) = self.texts.get(source) else {
            return Run { lines: before.end..before.end, source, from: there };
        };
        let line = |at: usize| lines.get(at).and_then(|line| text.get(line.place.clone()));
        let same = |at: usize, there: usize| of.line(there).is_some_and(|t| line(at) == Some(t));
        let behind = (0..).take_while(|n| same(before.end + n, there + n)).count();
        let most = before.len().min(there);
        let ahead = (1..=most).take_while(|n| same(before.end - n, there - n)).count();
        Run {
            lines: before.end - ahead..before.end + behind,
            source: of.number,
            from: there - ahead,
        }
    }
}

/// Returns the bytes of some lines, with their ends.
fn bytes(lines: &[Line], run: &Range<usize>) -> usize {
    let first = lines.get(run.start).map_or(0, |line| line.place.start);
    let last = run.end.checked_sub(1).and_then(|last| lines.get(last));
    last.map_or(0, |line| line.place.end).saturating_sub(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(standing: &[&str], text: &str, expected: &[(Range<usize>, usize, usize)]) {
        let (of, lines): (Vec<_>, _) =
            (standing.iter().map(|t| Line::of(t)).collect(), Line::of(text));
        for mut index in [Standing::default(), Standing::wanting(&lines)] {
            for (number, (text, lines)) in standing.iter().zip(&of).enumerate() {
                index.add(number, text, lines, Vec::new());
            }
            let runs = index.runs(text, &lines);
            let found: Vec<_> = runs.into_iter().map(|r| (r.lines, r.source, r.from)).collect();
            assert_eq!(found, expected);
        }
    }

    fn numbered(lines: Range<usize>) -> String {
        lines.map(|n| format!("第{n}行: let value = compute({n});\n\n")).collect()
    }

    #[test]
    fn the_longest_run_is_found_with_the_blank_lines_around_it() {
        let (long, short) = (numbered(1..20), numbered(4..9));
        check(&[&short, &long], &format!("head\n\n{}tail", numbered(4..15)), &[(1..24, 1, 5)]);
        // Of two that are as long, the first.
        check(&[&short, &short], &short, &[(0..11, 0, 0)]);
    }

    #[test]
    fn what_is_short_or_differs_stays() {
        let text = numbered(1..6);
        check(&[&text], &numbered(5..6), &[]);
        check(&[&"}\n".repeat(200)], &"}\n".repeat(200), &[]);
        check(&[&text], &text.replace('\n', " \n"), &[]);
        check(&[], &text, &[]);
    }

    #[test]
    fn what_stands_no_more_is_no_source() {
        let text = numbered(1..20);
        let lines = Line::of(&text);
        let mut index = Standing::default();
        index.add(3, &text, &lines, vec![0..0, 8..30]);
        assert_eq!(index.whole(&text), None);
        let runs = index.runs(&text, &lines);
        assert_eq!(
            runs,
            [Run { lines: 0..8, source: 3, from: 0 }, Run { lines: 30..39, source: 3, from: 30 }]
        );
    }
}
