//! What a block's payloads say to a question, quoted with the lines that say it.

use super::Shelf;
use crate::ledger::shown_id;
use crate::quote::{CLOSE, Origin, Woven};
use foldback_backend_store::Position;
use foldback_blockstore::{Hit, PassageHit};
use foldback_core::{Source, TokenCounter};
use std::ops::Range;

/// The greatest numbers of tokens of the excerpts of a hit, the best passage first.
const EXCERPTS: [usize; 3] = [160, 80, 80];

/// Kept back for the marks of an excerpt.
const MARKS: usize = 45;

/// Excerpts of the hit's passages, as many as fit `room` tokens. What cannot be read is told by its
/// place alone.
pub(crate) fn excerpts(shelf: &Shelf<'_>, hit: &Hit, room: usize) -> Woven {
    let mut shown = Woven::default();
    let mut left = room;
    for (passage, most) in hit.passages.iter().zip(EXCERPTS) {
        let budget = most.min(left.saturating_sub(MARKS));
        let excerpt = excerpt(shelf, hit, passage, budget).unwrap_or_else(|| {
            let mut place = Woven::default();
            place.push(&format!("{}\n", place_line(passage)));
            place
        });
        let Some(rest) = left.checked_sub(shelf.tokens.count(excerpt.text())) else { break };
        left = rest;
        shown.append(&excerpt);
    }
    shown
}

/// Where the hit's passages are, a line each, as many as fit `room` tokens.
pub(crate) fn places(shelf: &Shelf<'_>, hit: &Hit, room: usize) -> String {
    let mut lines = String::new();
    for passage in &hit.passages {
        let longer = format!("{lines}{}\n", place_line(passage));
        if shelf.tokens.count(&longer) > room {
            break;
        }
        lines = longer;
    }
    lines
}

/// A passage's place, short.
pub(crate) fn place(passage: &PassageHit) -> String {
    let PassageHit { payload, first_line, last_line, skip, .. } = passage;
    match skip {
        0 if first_line == last_line => format!("in {payload}, line {first_line}"),
        0 => format!("in {payload}, lines {first_line}-{last_line}"),
        skip => {
            let from = Position { line: *first_line, skip: *skip };
            format!("in {payload}, lines {from}-{last_line}")
        }
    }
}

fn place_line(passage: &PassageHit) -> String {
    format!("{} (load shows them)", place(passage))
}

/// The lines of a passage that say most, in at most `budget` tokens. `None` when the payload is
/// damaged or gone, or there is no room.
fn excerpt(shelf: &Shelf<'_>, hit: &Hit, passage: &PassageHit, budget: usize) -> Option<Woven> {
    let meta = shelf.payloads.resolve(shelf.todo, &passage.payload).ok()?;
    let bytes = shelf.payloads.read_range(shelf.todo, meta.n, passage.bytes.clone()).ok()?;
    // What is not UTF-8 reads differently from what is stored, so it cannot be quoted.
    let (text, is_exact) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    };
    let part = best_part(&text, &weights(hit), budget, shelf.tokens)?;
    let quoted = text.get(part.clone())?;
    let id = shown_id(&hit.block.header.block_id);
    let kind = meta.kind.to_string();
    let origin = Origin {
        block: Some(&id),
        payload: Some(passage.payload.to_string()),
        kind: Some(&kind),
        ..Origin::default()
    };
    let mut shown = Woven::default();
    shown.push(&place(passage));
    if part.len() < text.len() {
        shown.push(&format!(", here {}", lines_of(passage, &text, &part)));
    }
    shown.push(&format!(":\n{}\n", origin.open()));
    let from = passage.bytes.start + part.start as u64;
    shown.push_quote(quoted, is_exact.then_some((Source::Payload(meta.n), from)));
    if !quoted.ends_with('\n') {
        shown.push("\n");
    }
    shown.push(&format!("{CLOSE}\n"));
    Some(shown)
}

/// The question's terms as they may stand in a text, and how much each says.
fn weights(hit: &Hit) -> Vec<(&str, f32)> {
    let told = &hit.explanation;
    told.passage_terms.iter().map(|(term, idf)| (term.as_str(), idf.max(0.01))).collect()
}

/// The lines of a part of a passage, counted in the payload.
fn lines_of(passage: &PassageHit, text: &str, part: &Range<usize>) -> String {
    let feeds = |range: Range<usize>| text.get(range).unwrap_or("").matches('\n').count() as u64;
    let first = passage.first_line + feeds(0..part.start);
    let last = first + feeds(part.start..part.end.saturating_sub(1));
    let before = text.get(..part.start).unwrap_or("");
    let skip = match before.rfind('\n') {
        Some(feed) => (part.start - feed - 1) as u64,
        None => passage.skip + part.start as u64,
    };
    if first == last && skip == 0 {
        format!("{first}")
    } else {
        format!("{}-{last}", Position { line: first, skip })
    }
}

/// The line that holds most of the terms by their weight, and as many lines around it as fit; of a
/// line that does not fit alone what stands around its rarest term.
fn best_part(
    text: &str,
    terms: &[(&str, f32)],
    budget: usize,
    tokens: &dyn TokenCounter,
) -> Option<Range<usize>> {
    let mut lines: Vec<Range<usize>> = Vec::new();
    for line in text.split_inclusive('\n') {
        let start = lines.last().map_or(0, |line: &Range<usize>| line.end);
        lines.push(start..start + line.len());
    }
    let at = |line: &Range<usize>| text.get(line.clone()).unwrap_or("");
    let score = |line: &Range<usize>| {
        let lower = at(line).to_lowercase();
        terms.iter().filter(|(term, _)| lower.contains(term)).map(|(_, weight)| weight).sum::<f32>()
    };
    let scores: Vec<f32> = lines.iter().map(score).collect();
    let best = scores.iter().copied().fold(f32::MIN, f32::max);
    let best = scores.iter().position(|score| *score >= best)?;
    let cost = |place: usize| lines.get(place).map(|line| tokens.count(at(line)).max(1));
    let Some(mut left) = budget.checked_sub(cost(best)?) else {
        return around(text, lines.get(best)?, terms, budget, tokens);
    };
    let (mut from, mut to) = (best, best + 1);
    loop {
        let before = from.checked_sub(1).and_then(cost).filter(|cost| *cost <= left);
        if let Some(cost) = before {
            left -= cost;
            from -= 1;
        }
        let after = cost(to).filter(|cost| *cost <= left);
        if let Some(cost) = after {
            left -= cost;
            to += 1;
        }
        if before.is_none() && after.is_none() {
            break;
        }
    }
    Some(lines.get(from)?.start..lines.get(to - 1)?.end)
}

/// A part of a line that fits, around the rarest term that stands there.
fn around(
    text: &str,
    line: &Range<usize>,
    terms: &[(&str, f32)],
    budget: usize,
    tokens: &dyn TokenCounter,
) -> Option<Range<usize>> {
    let lower = text.get(line.clone())?.to_lowercase();
    let held = terms.iter().filter_map(|(term, weight)| Some((lower.find(term)?, *weight)));
    let rarest = held.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    // Lower case may be longer by a few bytes, which moves the window and no more.
    let middle = line.start + rarest.map_or(0, |(place, _)| place);
    let mut bytes = line.len();
    while bytes > 16 {
        let start = text.floor_char_boundary(middle.saturating_sub(bytes / 3).max(line.start));
        let end = text.floor_char_boundary((start + bytes).min(line.end));
        if start < end && tokens.count(text.get(start..end)?) <= budget {
            return Some(start..end);
        }
        bytes -= bytes / 4;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Estimate;

    #[track_caller]
    fn check(text: &str, terms: &[(&str, f32)], budget: usize, holds: &str) {
        let part = best_part(text, terms, budget, &Estimate).unwrap();
        let shown = &text[part];
        assert!(shown.contains(holds), "{shown}");
        assert!(Estimate.count(shown) <= budget + budget / 4, "{shown}");
    }

    #[test]
    fn bs7_the_line_that_says_most_is_shown_with_those_around_it() {
        let mut text: String = (1..=60).map(|i| format!("{i} all is well here\n")).collect();
        text = text.replace("\n31 all is well", "\n31 ERROR E-4417 the lease expired");
        check(&text, &[("e-4417", 3.0), ("lease", 1.0)], 60, "E-4417 the lease");
        check(&text, &[("e-4417", 3.0)], 60, "\n32 all");
        check(&text.replace("lease expired", "租约过期"), &[("租约", 2.0)], 60, "租约过期");
        let long = format!("{} NEEDLE {}\nend", "很长 的 一行 ".repeat(90), "word ".repeat(200));
        check(&long, &[("needle", 1.0)], 50, "NEEDLE");
        check("İİİİ needle", &[("needle", 1.0)], 50, "needle");
        assert_eq!(best_part("", &[], 50, &Estimate), None);
        assert_eq!(best_part("a", &[("b", 1.0)], 0, &Estimate), None);
    }
}
