//! Checks whether one order of calls explains what each of them saw.

use super::{Event, Span};
use std::collections::{BTreeMap, HashMap};

/// Returns what no order of the calls explains, given this final order of the messages.
pub(super) fn contradictions(history: &[(Span, Event)], order: &[(u32, u64)]) -> Vec<String> {
    let mut appended = HashMap::new();
    let mut weeds: BTreeMap<(u32, u64), (Option<Span>, Option<Span>)> = BTreeMap::new();
    for (span, event) in history {
        match *event {
            Event::Appended { writer, n } => drop(appended.insert((writer, n), *span)),
            Event::Made { writer, weed } => {
                weeds.entry((writer, weed)).or_default().0 = Some(*span);
            }
            Event::Forgot { writer, weed } => {
                weeds.entry((writer, weed)).or_default().1 = Some(*span);
            }
            _ => {}
        }
    }
    let mut wrong = Vec::new();
    if order.len() != appended.len() || !order.iter().all(|name| appended.contains_key(name)) {
        wrong.push(format!(
            "{} messages were appended, but {} are there",
            appended.len(),
            order.len()
        ));
        return wrong;
    }
    let spans: Vec<Span> = order.iter().map(|name| appended[name]).collect();
    // Of two messages, the one that was there before the other was begun comes first.
    let mut ends_first = u64::MAX;
    for (at, span) in spans.iter().enumerate().rev() {
        if ends_first < span.begin {
            wrong.push(format!(
                "message {at}, {:?}, comes before one that was there earlier",
                order[at]
            ));
        }
        ends_first = ends_first.min(span.end);
    }
    for (span, event) in history {
        match *event {
            Event::Searched { writer, n, is_found } => {
                let message = appended.get(&(writer, n));
                if is_found && message.is_none_or(|message| message.begin > span.end) {
                    wrong.push(format!("message {n} of {writer} was found before it was appended"));
                }
                if !is_found && message.is_some_and(|message| message.end < span.begin) {
                    wrong.push(format!("message {n} of {writer} was there, but was not found"));
                }
            }
            Event::Looked { writer, weed, is_there } => {
                let (made, forgot) = weeds.get(&(writer, weed)).copied().unwrap_or_default();
                let begun = made.is_some_and(|made| made.begin <= span.end);
                let ended = forgot.is_some_and(|forgot| forgot.end < span.begin);
                if is_there && (!begun || ended) {
                    wrong
                        .push(format!("todo {weed} of {writer} was seen before or after its time"));
                }
                let was_made = made.is_some_and(|made| made.end < span.begin);
                let forgetting = forgot.is_some_and(|forgot| forgot.begin <= span.end);
                if !is_there && was_made && !forgetting {
                    wrong.push(format!("todo {weed} of {writer} was there, but was not seen"));
                }
            }
            _ => {}
        }
    }
    let counts = history.iter().filter_map(|(span, event)| match event {
        Event::Counted { messages } => Some((*span, *messages as usize)),
        _ => None,
    });
    wrong.extend(miscounted(&spans, counts.collect()));
    wrong
}

/// Returns the counts of messages that the order of these messages does not explain.
fn miscounted(spans: &[Span], mut counted: Vec<(Span, usize)>) -> Vec<String> {
    let mut wrong = Vec::new();
    counted.sort_by_key(|(span, _)| span.begin);
    let mut ended: Vec<(u64, usize)> =
        spans.iter().enumerate().map(|(at, span)| (span.end, at + 1)).collect();
    ended.extend(counted.iter().map(|(span, messages)| (span.end, *messages)));
    ended.sort_unstable();
    // For each message: when the last one up to it was begun.
    let begun: Vec<u64> = spans
        .iter()
        .scan(0, |last, span| {
            *last = span.begin.max(*last);
            Some(*last)
        })
        .collect();
    let (mut least, mut next) = (0, 0);
    for (span, messages) in counted {
        // The messages that were there, or were counted, before this began.
        while let Some((_, count)) = ended.get(next).filter(|(end, _)| *end < span.begin) {
            least = least.max(*count);
            next += 1;
        }
        if messages < least {
            wrong.push(format!("{messages} messages were counted after {least} had been there"));
        }
        if let Some(begun) = messages.checked_sub(1).map(|last| begun.get(last))
            && begun.is_none_or(|begun| *begun > span.end)
        {
            wrong.push(format!("{messages} messages were counted before they were appended"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn found(lines: &str, order: &[(u32, u64)]) -> usize {
        let history: Vec<_> = lines.lines().filter_map(|line| read(line.trim())).collect();
        assert_eq!(history.len(), lines.lines().count());
        contradictions(&history, order).len()
    }

    #[test]
    fn what_no_order_explains_is_found() {
        let two = "0 10 appended 0 0 1\n5 15 appended 1 0 1";
        let (first, second) = ([(0, 0), (1, 0)], [(1, 0), (0, 0)]);
        assert_eq!((found(two, &first), found(two, &second)), (0, 0), "they overlap");
        let two = "0 10 appended 0 0 1\n11 15 appended 1 0 1";
        assert_eq!((found(two, &first), found(two, &second)), (0, 1));
        assert_eq!(found(two, &first[..1]), 1, "one is lost");
        for (line, wrong) in [
            ("0 3 counted 0 1 1", 0),
            ("0 3 counted 0 0 1", 0),
            ("0 3 counted 0 2 1", 1),
            ("11 12 counted 0 0 1", 1),
            ("16 17 counted 0 1 1", 1),
            ("12 13 counted 0 2 1\n14 15 counted 0 1 1", 1),
            ("0 3 searched 0 0 0", 0),
            ("11 12 searched 0 0 0", 1),
            ("0 3 searched 1 0 1", 1),
            ("12 13 searched 1 0 1", 0),
            ("0 1 looked 0 0 1", 1),
            ("0 5 made 0 0 1\n6 7 looked 0 0 0", 1),
            ("0 5 made 0 0 1\n6 7 looked 0 0 0\n7 9 forgot 0 0 1", 0),
            ("0 5 made 0 0 1\n6 9 forgot 0 0 1\n10 11 looked 0 0 1", 1),
        ] {
            assert_eq!(found(&format!("{two}\n{line}"), &first), wrong, "{line}");
        }
    }
}
