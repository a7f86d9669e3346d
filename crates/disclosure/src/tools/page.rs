//! A part of a text that fits a budget: a range of lines, or the lines around a pattern.

use foldback_backend_store::Position;
use foldback_core::TokenCounter;
use regex::{Regex, RegexBuilder};
use std::ops::Range;

/// Lines shown around a match.
const CONTEXT: usize = 2;

/// With a pattern, a line of up to this many bytes is shown whole; of a longer one, as much around
/// each match.
const LONG: usize = 2 << 10;

/// How many bytes of a longer line are shown as context.
const LONG_CONTEXT: usize = 512;

/// With a pattern, what a run costs beside its text: its line's number and whose message goes on there.
const RUN_TOKENS: usize = 20;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Bytes of the text, ascending, and the line in which each run begins, from 1.
    pub(crate) runs: Vec<(u64, Range<usize>)>,
    /// Where to continue.
    pub(crate) next: Option<Position>,
    /// The number of lines of the whole text.
    pub(crate) total: u64,
    /// The last line shown.
    pub(crate) last: u64,
}

/// Returns the lines of `text` from a place to the line `last`, within `budget` tokens. With a pattern, only those
/// that it matches, with two lines around each. Where there is no such place, returns what there is.
pub(crate) fn page(
    text: &str,
    (from, last): (Position, u64),
    pattern: Option<&Regex>,
    budget: usize,
    tokens: &dyn TokenCounter,
) -> Result<Page, String> {
    let lines: Vec<Range<usize>> = line_ranges(text);
    let total = lines.len() as u64;
    let first = usize::try_from(from.line.saturating_sub(1)).unwrap_or(usize::MAX);
    if first >= lines.len().max(1) {
        return Err(format!("{total} lines"));
    }
    if let Some(bytes) = lines.get(first).map(Range::len).filter(|len| *len as u64 <= from.skip) {
        return Err(format!("{bytes} bytes in line {}", from.line));
    }
    let end = usize::try_from(last).unwrap_or(usize::MAX).min(lines.len());
    let wanted = wanted_runs(text, &lines, first..end, pattern);
    let mut page = Page { runs: Vec::new(), next: None, total, last: 0 };
    let mut left = budget;
    for (at, mut range) in wanted {
        let line_start = lines.get(at).map_or(range.start, |line| line.start);
        if at == first && from.skip > 0 {
            let skip = usize::try_from(from.skip).unwrap_or(usize::MAX);
            let start = text.floor_char_boundary(line_start.saturating_add(skip));
            if start >= range.end {
                continue;
            }
            range.start = range.start.max(start);
        }
        let skipped = range.start - line_start;
        let line = text.get(range.clone()).unwrap_or("");
        let begins = page.runs.last().is_none_or(|(_, run)| run.end != range.start);
        let label = if begins && pattern.is_some() { RUN_TOKENS } else { 0 };
        let cost = tokens.count(line).max(1) + label;
        let n = at as u64 + 1;
        if cost > left {
            if page.runs.is_empty() {
                // A line that is too long alone is shown in parts.
                let head = longest_head(line, left.saturating_sub(label), tokens);
                page.next = Some(Position { line: n, skip: (skipped + head) as u64 });
                page.runs.push((n, range.start..range.start + head));
                page.last = n;
            } else {
                page.next = Some(Position { line: n, skip: skipped as u64 });
            }
            break;
        }
        left -= cost;
        page.last = n;
        match page.runs.last_mut() {
            Some((_, run)) if run.end == range.start => run.end = range.end,
            _ => page.runs.push((n, range)),
        }
    }
    Ok(page)
}

/// Compiles a pattern with limits on its cost; otherwise returns what is wrong with it.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(256 << 10).nest_limit(50).build();
    built.map_err(|_| {
        "The pattern in \"match\" is not a valid regular expression, or is too expensive. Put a \
         backslash before characters such as ( [ . * + ? to match them literally."
            .to_owned()
    })
}

/// Returns how many bytes of `text` fit `budget`: at least one character.
fn longest_head(text: &str, budget: usize, tokens: &dyn TokenCounter) -> usize {
    let bound = text.floor_char_boundary(budget.saturating_mul(16));
    let head = text.get(..bound).unwrap_or(text);
    let ends: Vec<usize> = head.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let fits = |&end: &usize| tokens.count(head.get(..end).unwrap_or("")) <= budget;
    let fitting = ends.partition_point(fits).max(1);
    ends.get(fitting - 1).copied().unwrap_or(text.len())
}

/// Returns each line with its line feed.
fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    text.split_inclusive('\n')
        .map(|line| {
            let range = at..at + line.len();
            at = range.end;
            range
        })
        .collect()
}

/// Returns the line and the bytes of each part of `text` to show, ascending: all lines of the
/// range, or those that the pattern matches and the ones around them. Of a long line, only the
/// parts around its matches are shown, and of a long line that is context, only the beginning, so
/// that no line keeps a match from being shown. There is no context before the range, so that a
/// page begins where the previous one ended.
fn wanted_runs(
    text: &str,
    lines: &[Range<usize>],
    range: Range<usize>,
    pattern: Option<&Regex>,
) -> Vec<(usize, Range<usize>)> {
    let whole = |at: usize| lines.get(at).map(|line| (at, line.clone()));
    let Some(pattern) = pattern else { return range.filter_map(whole).collect() };
    let mut wanted: Vec<(usize, Range<usize>)> = Vec::new();
    // The first line that may still be context of a match.
    let mut before = range.start;
    let mut after = 0;
    for (at, line) in lines.iter().enumerate().skip(range.start) {
        if at >= range.end && after == 0 {
            break;
        }
        let matches = if at < range.end { around(text, line, pattern) } else { Vec::new() };
        if !matches.is_empty() {
            let from = at.saturating_sub(CONTEXT).max(before);
            wanted.extend(
                (from..at).filter_map(whole).map(|(at, line)| (at, beginning(text, &line))),
            );
            wanted.extend(matches.into_iter().map(|run| (at, run)));
            (before, after) = (at + 1, CONTEXT);
        } else if after > 0 {
            wanted.push((at, beginning(text, line)));
            (before, after) = (at + 1, after - 1);
        }
    }
    wanted
}

/// Returns the line if the pattern matches it; of a long one, the parts around its matches.
fn around(text: &str, line: &Range<usize>, pattern: &Regex) -> Vec<Range<usize>> {
    let said = text.get(line.clone()).unwrap_or("").trim_end_matches(['\n', '\r']);
    if line.len() <= LONG {
        return if pattern.is_match(said) { vec![line.clone()] } else { Vec::new() };
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(found) = pattern.find_at(said, from) {
        let start = said.floor_char_boundary(found.start().saturating_sub(LONG / 4)).max(from);
        let end = said.ceil_char_boundary(found.end().max(start + LONG));
        // Further matches up to the end are shown with it.
        let run = line.start + start..if end >= said.len() { line.end } else { line.start + end };
        match runs.last_mut() {
            Some(before) if before.end >= run.start => before.end = run.end,
            _ => runs.push(run),
        }
        from = end;
        if from >= said.len() {
            break;
        }
    }
    runs
}

/// Returns a line as context.
fn beginning(text: &str, line: &Range<usize>) -> Range<usize> {
    if line.len() <= LONG {
        return line.clone();
    }
    line.start..text.floor_char_boundary(line.start + LONG_CONTEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Estimate;

    #[test]
    fn tl3_pages_joined_are_the_text() {
        let text = format!("一\n{}\n\nlast line {}", "长".repeat(300), "word ".repeat(200));
        let mut from = Position::from(1);
        let mut joined = String::new();
        for _ in 0..1000 {
            let page = page(&text, (from, u64::MAX), None, 40, &Estimate).unwrap();
            assert_eq!(page.total, 4);
            for (_, run) in &page.runs {
                joined.push_str(&text[run.clone()]);
            }
            let Some(next) = page.next else { break };
            assert!(next > from);
            from = next;
        }
        assert_eq!(joined, text);
    }

    #[test]
    fn tl3_a_pattern_shows_the_lines_around_it() {
        let text: String = (1..=40).map(|i| format!("line {i}\n")).collect();
        let found = pattern("line (10|30)$").unwrap();
        let page =
            page(&text, (Position::from(1), u64::MAX), Some(&found), 500, &Estimate).unwrap();
        let shown: Vec<u64> = page.runs.iter().map(|(line, _)| *line).collect();
        assert_eq!((shown, page.last, page.next), (vec![8, 28], 32, None));
        assert!(pattern("(").is_err() && pattern("(a{1000}){1000}").is_err());
    }

    #[test]
    fn tl3_many_matches_are_within_the_budget_with_what_is_said_of_each() {
        let text: String = (0..4_000).map(|n| if n % 8 == 0 { "中\n" } else { "-\n" }).collect();
        let (found, mut from, mut shown) = (pattern("中").unwrap(), Position::from(1), 0);
        while shown < 500 {
            let page = page(&text, (from, u64::MAX), Some(&found), 1_000, &Estimate).unwrap();
            assert!(page.runs.len() * RUN_TOKENS <= 1_000, "{} runs", page.runs.len());
            shown += page.runs.iter().filter(|(_, run)| text[run.clone()].contains('中')).count();
            let Some(next) = page.next else { break };
            from = next;
        }
        assert_eq!(shown, 500);
    }

    #[track_caller]
    fn check_found(text: &str, wanted: &str, pages: usize) {
        let found = pattern(wanted).unwrap();
        let (mut from, mut shown) = (Position::from(1), String::new());
        for _ in 0..pages {
            let page = page(text, (from, u64::MAX), Some(&found), 4_000, &Estimate).unwrap();
            for (_, run) in &page.runs {
                assert!(Estimate.count(&text[run.clone()]) <= 4_100);
                shown.push_str(&text[run.clone()]);
            }
            let Some(next) = page.next else { break };
            assert!(next > from, "{next} is not behind {from}");
            from = next;
        }
        assert!(shown.contains("NEEDLE"), "it is not in {} bytes", shown.len());
    }

    #[test]
    fn tl3_a_long_line_keeps_no_match_from_being_shown() {
        for long in ["word ".repeat(6_500), "很长的一行".repeat(6_000)] {
            check_found(&format!("small\n{long}\nNEEDLE"), "NEEDLE", 1);
            check_found(&format!("NEEDLE\n{long}\nend"), "NEEDLE", 1);
            check_found(&format!("{long}NEEDLE{long}"), "NEEDLE", 1);
            check_found(&format!("{long}\n{long}\nx NEEDLE {long}\n{long}\n"), "NEEDLE", 1);
            let often = format!("{long}hit ").repeat(9);
            check_found(&format!("{often}\n{often}\n{long}NEEDLE"), "NEEDLE|hit", 9);
        }
    }

    #[test]
    fn bs3_there_is_no_line_behind_the_last() {
        let whole = |from: u64| page("a\nb", (Position::from(from), u64::MAX), None, 9, &Estimate);
        assert!(whole(3).is_err() && whole(2).is_ok());
        let inside = |skip| page("一\nb", (Position { line: 1, skip }, 1), None, 9, &Estimate);
        assert_eq!(inside(4), Err("4 bytes in line 1".to_owned()));
        assert!(inside(3).is_ok());
        assert_eq!(page("", (Position::from(1), 1), None, 9, &Estimate).unwrap().runs, []);
    }
}
