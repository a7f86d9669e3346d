//! An extractive summary: sentences of the messages that left, chosen by rule. It stands in for the
//! summary that a model would write, so that the same conversation gives the same bytes.

use foldback_core::{Message, Role, TokenCounter};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What every summary begins with.
const HEAD: &str =
    "Here is a summary of the conversation to date (extracted by rule, not written by a model):";

/// The greatest number of tokens of one line.
const LINE_TOKENS: usize = 60;

/// What a line takes besides its text: the mark in front and the line break behind.
const LINE_OVERHEAD: usize = 2;

/// The lines of a summary, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digest {
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    weight: Weight,
    text: String,
    tokens: usize,
}

/// What is dropped first when there is no room: calls, then what the model said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Call,
    Said,
    Asked,
}

impl Digest {
    /// Takes a message that leaves: its first sentence, and which tools it calls on what.
    pub(crate) fn take(&mut self, message: &Message, counter: &dyn TokenCounter) {
        let weight = match message.role() {
            Role::Tool => return,
            Role::User => Weight::Asked,
            _ => Weight::Said,
        };
        let sentence = first_sentence(&message.text());
        if !sentence.is_empty() {
            self.push(weight, &format!("{}: {sentence}", message.role().as_str()), counter);
        }
        for call in message.tool_calls() {
            let members = call.members().unwrap_or_default();
            let target = members.first().map(|(_, value)| foldback_core::argument_text(value));
            let target = first_sentence(&target.unwrap_or_default());
            self.push(Weight::Call, format!("called {} {target}", call.name).trim(), counter);
        }
    }

    /// Drops lines until the whole is at most `max` tokens: what weighs least first, of equal ones
    /// the oldest.
    pub(crate) fn shrink(&mut self, max: usize, counter: &dyn TokenCounter) {
        let room = max.saturating_sub(counter.count(HEAD) + LINE_OVERHEAD);
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|at| Reverse((self.lines.get(*at).map(|line| line.weight), *at)));
        let mut used = 0;
        let mut stay = BTreeSet::new();
        for at in order {
            let cost = self.lines.get(at).map_or(0, |line| line.tokens + LINE_OVERHEAD);
            if used + cost > room {
                break;
            }
            used += cost;
            stay.insert(at);
        }
        let mut at = 0;
        self.lines.retain(|_| {
            at += 1;
            stay.contains(&(at - 1))
        });
    }

    /// The summary.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from(HEAD);
        for line in &self.lines {
            text.push_str("\n- ");
            text.push_str(&line.text);
        }
        text
    }

    fn push(&mut self, weight: Weight, text: &str, counter: &dyn TokenCounter) {
        let text = cut(text, LINE_TOKENS, counter);
        if self.lines.last().is_some_and(|last| last.text == text) {
            return;
        }
        let tokens = counter.count(&text);
        self.lines.push(Line { weight, text, tokens });
    }
}

/// The first sentence, on one line. A sentence ends behind its mark and white space, behind a
/// full-width mark, or with the line.
fn first_sentence(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut end = line.len();
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let stops = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if stops {
            end = at + c.len_utf8();
            break;
        }
    }
    line.get(..end).unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The longest beginning of at most `max` tokens, with an ellipsis where something is missing.
fn cut(text: &str, max: usize, counter: &dyn TokenCounter) -> String {
    if counter.count(text) <= max {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits = |end: &usize| {
        let head = text.get(..*end).unwrap_or_default();
        counter.count(&format!("{head}…")) <= max
    };
    let end = ends.get(ends.partition_point(fits).saturating_sub(1)).copied().unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{Estimate, ToolCall};

    #[test]
    fn a_sentence_ends_with_its_mark_or_its_line() {
        for (text, expected) in [
            ("One. Two.", "One."),
            ("v1.5 is out! Good", "v1.5 is out!"),
            ("\n  no mark\nnext", "no mark"),
            ("船闸重复了吗？另外一件事。", "船闸重复了吗？"),
            ("a   b", "a b"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }

    #[test]
    fn a_cut_line_has_at_most_its_tokens() {
        for text in ["word ".repeat(300), "数".repeat(300), "🙂".repeat(80)] {
            let line = cut(&text, LINE_TOKENS, &Estimate);
            assert!(Estimate.count(&line) <= LINE_TOKENS && line.ends_with('…'), "{line}");
            assert!(line.chars().count() > 10, "{line}");
        }
    }

    #[test]
    fn what_was_asked_outlives_what_was_called() {
        let mut digest = Digest::default();
        let arguments = r#"{"path": "src/a.rs", "n": 1}"#;
        digest.take(&Message::user("Repair the gate. It sticks."), &Estimate);
        for _ in 0..50 {
            let call = ToolCall::new("c", "read_file", arguments);
            digest.take(&Message::calls("I look.", vec![call]), &Estimate);
        }
        digest.shrink(60, &Estimate);
        let text = digest.text();
        assert!(text.starts_with(HEAD) && text.contains("\n- user: Repair the gate."), "{text}");
        assert!(Estimate.count(&text) <= 60, "{text}");
        digest.shrink(1_000, &Estimate);
        assert_eq!(digest.text(), text, "what was dropped does not come back");
        let mut wide = Digest::default();
        wide.take(&Message::calls("", vec![ToolCall::new("c", "read_file", arguments)]), &Estimate);
        assert!(wide.text().ends_with("\n- called read_file src/a.rs"), "{}", wide.text());
    }
}
