//! What a block's payloads say about a question, quoted with the lines that say it.

use super::RecallSource;
use super::block_text::BlockText;
use super::payload_origin::PayloadOrigin;
use super::search_block::best_message;
use crate::ledger::shown_id;
use crate::marks::Origin;
use crate::quoted_text::QuotedText;
use foldback_backend_store::Position;
use foldback_blockstore::{Finder, Hit, PassageHit};
use foldback_core::{Source, TokenCounter};
use std::ops::Range;

/// The greatest numbers of tokens of the excerpts of a hit, the best passage first.
const EXCERPTS: [usize; 3] = [160, 80, 80];

/// Adds excerpts of the hit's passages, as many as fit `room` tokens. For what cannot be read, or does
/// not fit between its marks, only the place is given.
pub(crate) fn excerpts(recall: &RecallSource<'_>, hit: &Hit, room: usize) -> QuotedText {
    let mut shown = QuotedText::default();
    let mut left = room;
    for (passage, most) in hit.passages.iter().zip(EXCERPTS) {
        let excerpt = excerpt(recall, hit, passage, most, left).unwrap_or_else(|| {
            let mut place = QuotedText::default();
            place.push(&format!("{}\n", place_line(passage)));
            place
        });
        let Some(rest) = left.checked_sub(recall.tokens.count(excerpt.text())) else { break };
        left = rest;
        shown.append(&excerpt);
    }
    shown
}

/// Returns the passage of a hit that answers best, in at most `room` tokens; `None` if it cannot be read, or there is
/// no room.
pub(crate) fn passage_of(recall: &RecallSource<'_>, hit: &Hit, room: usize) -> Option<String> {
    if hit.explanation.passage > 0.0 {
        let excerpt = excerpt(recall, hit, hit.passages.first()?, room, room)?;
        return Some(excerpt.text().to_owned());
    }
    let text = BlockText::read(recall, &hit.block).ok()?;
    let (_, message) = text.messages.get(best_message(hit, &text))?;
    let (open, close) = (text.open(), text.close());
    let frame = recall.tokens.count(&open) + recall.tokens.count(&close) + 1;
    let part =
        best_part(message.text(), &mut hit.finder(), room.checked_sub(frame)?, recall.tokens)?;
    let mut shown = QuotedText::default();
    shown.push(&open);
    shown.append_part(message, part);
    let line_end = if shown.text().ends_with('\n') { "" } else { "\n" };
    shown.push(line_end);
    shown.push(&close);
    (recall.tokens.count(shown.text()) <= room).then(|| shown.text().to_owned())
}

/// Returns the tokens that the place of the hit's best passage takes.
pub(crate) fn place_tokens(recall: &RecallSource<'_>, hit: &Hit) -> usize {
    let place = hit.passages.first().map(|best| format!("{}\n", place_line(best)));
    place.map_or(0, |place| recall.tokens.count(&place))
}

/// Returns where the hit's passages are, one line each, as many as fit `room` tokens.
pub(crate) fn places(recall: &RecallSource<'_>, hit: &Hit, room: usize) -> String {
    let mut lines = String::new();
    for passage in &hit.passages {
        let longer = format!("{lines}{}\n", place_line(passage));
        if recall.tokens.count(&longer) > room {
            break;
        }
        lines = longer;
    }
    lines
}

/// Returns a passage's place, and where else its payload is.
fn place_line(passage: &PassageHit) -> String {
    format!("in {passage} (load shows them{})", also_in(passage))
}

/// Returns the other blocks that carry a passage's payload.
fn also_in(passage: &PassageHit) -> String {
    let ids: Vec<String> = passage.also_in.iter().map(shown_id).collect();
    if ids.is_empty() { String::new() } else { format!("; also in {}", ids.join(", ")) }
}

/// Returns the most telling lines of a passage, in at most `most` tokens, and with their marks in
/// `room`. `None` if the payload is damaged or gone, or there is no room.
fn excerpt(
    recall: &RecallSource<'_>,
    hit: &Hit,
    passage: &PassageHit,
    most: usize,
    room: usize,
) -> Option<QuotedText> {
    let meta = recall.payloads.resolve(recall.todo, &passage.payload).ok()?;
    let bytes = recall.payloads.read_range(recall.todo, meta.n, passage.bytes.clone()).ok()?;
    // Text that is not UTF-8 reads differently from what is stored, so it cannot be quoted.
    let (text, is_exact) = match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    };
    let id = shown_id(&hit.block.header.block_id);
    let PayloadOrigin { from, trust } =
        PayloadOrigin::within(recall, &meta, &hit.block).unwrap_or_default();
    // The line before it names the payload.
    let origin = Origin { block: Some(&id), from: from.as_deref(), trust, ..Origin::default() };
    let (open, close) = (recall.marks.open(&origin), recall.marks.close());
    let place = |part: &Range<usize>| {
        let here = match part.len() < text.len() {
            true => format!(", here {}", lines_of(passage, &text, part)),
            false => String::new(),
        };
        format!("in {passage}{here}{}:\n{open}\n", also_in(passage))
    };
    // Of two places in a passage, the later one takes longer to state.
    let longest = place(&(text.floor_char_boundary(text.len().saturating_sub(1))..text.len()));
    let frame = recall.tokens.count(&longest) + recall.tokens.count(&format!("\n{close}\n"));
    let budget = most.min(room.checked_sub(frame)?);
    let part = best_part(&text, &mut hit.passage_finder(), budget, recall.tokens)?;
    let quoted = text.get(part.clone())?;
    let mut shown = QuotedText::default();
    shown.push(&place(&part));
    let from = passage.bytes.start + part.start as u64;
    shown.push_quote(quoted, is_exact.then_some((Source::Payload(meta.n), from)));
    if !quoted.ends_with('\n') {
        shown.push("\n");
    }
    shown.push(&format!("{close}\n"));
    (recall.tokens.count(shown.text()) <= room).then_some(shown)
}

/// Returns the lines of a part of a passage, counted in the payload.
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

/// Returns the line with the greatest weight of terms, and as many lines around it as fit; of a
/// line that alone does not fit, the part around its most telling term.
pub(super) fn best_part(
    text: &str,
    terms: &mut Finder,
    budget: usize,
    tokens: &dyn TokenCounter,
) -> Option<Range<usize>> {
    let mut lines: Vec<Range<usize>> = Vec::new();
    for line in text.split_inclusive('\n') {
        let start = lines.last().map_or(0, |line: &Range<usize>| line.end);
        lines.push(start..start + line.len());
    }
    let at = |line: &Range<usize>| text.get(line.clone()).unwrap_or("");
    let scores: Vec<f32> = lines.iter().map(|line| terms.weigh(at(line))).collect();
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

/// Returns a part of a line that fits, around the most telling place.
fn around(
    text: &str,
    line: &Range<usize>,
    terms: &mut Finder,
    budget: usize,
    tokens: &dyn TokenCounter,
) -> Option<Range<usize>> {
    let middle = line.start + terms.find(text.get(line.clone())?).unwrap_or(0);
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
        let mut finder = Finder::new(terms.iter().copied());
        let part = best_part(text, &mut finder, budget, &Estimate).unwrap();
        let shown = &text[part];
        assert!(shown.contains(holds), "{shown}");
        assert!(Estimate.count(shown) <= budget + budget / 4, "{shown}");
    }

    #[test]
    fn bs7_the_line_that_says_most_is_shown_with_those_around_it() {
        let mut text: String = (1..=60).map(|i| format!("{i} all is well here\n")).collect();
        text = text.replace("\n31 all is well", "\n31 ERROR E-4417 the lease expired");
        check(&text, &[("e-4417", 3.0), ("leas", 1.0)], 60, "E-4417 the lease");
        check(&text, &[("e-4417", 3.0)], 60, "\n32 all");
        check(&text.replace("lease expired", "租约过期"), &[("租约", 2.0)], 60, "租约过期");
        // As they are analysed: stems, without accents, in the usual form of their characters.
        check(&text, &[("expir", 1.0)], 60, "lease expired");
        check(&text.replace("lease expired", "ｌｅａｓｅ Café"), &[("cafe", 1.0)], 60, "Café");
        check(&text.replace("lease expired", "租約過期"), &[("租约", 1.0)], 60, "租約過期");
        let long = format!("{} NEEDLE {}\nend", "很长 的 一行 ".repeat(90), "word ".repeat(200));
        check(&long, &[("needl", 1.0)], 50, "NEEDLE");
        let long = format!("{}needle-77 {}", "İ ".repeat(900), "ﷺ 字".repeat(900));
        check(&long, &[("needle-77", 1.0)], 40, "needle-77");
        let mut none = Finder::new([("b", 1.0)]);
        assert_eq!(best_part("", &mut none, 50, &Estimate), None);
        assert_eq!(best_part("a", &mut none, 0, &Estimate), None);
    }
}
