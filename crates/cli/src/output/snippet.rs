//! The lines of a block that best show why it was found.

use super::{style, text};
use foldback_core::{Message, SeqNo, ToolCall};

/// A line of a message, and how many words of a question it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Snippet {
    /// The message.
    pub(crate) seq: SeqNo,
    /// The speaker, or the tool.
    pub(crate) role: String,
    /// The line.
    pub(crate) line: String,
    found: usize,
}

/// A line of a hit with the message that holds it.
pub(crate) fn snippet_line(snippet: &Snippet, words: &[String], width: usize) -> String {
    let place =
        format!("{:>4} {:<9} ", snippet.seq.0, text::fit(&text::one_line(&snippet.role), 9));
    let room = width.saturating_sub(text::columns(&place));
    format!("{}{}", style::paint(style::DIM, place), show(&snippet.line, words, room))
}

/// The best lines, at most `most`, in the order of the block: those with most of the words, and the
/// first among equals. A block without any of the words gives its first line.
pub(crate) fn snippets(
    messages: &[(SeqNo, &Message)],
    words: &[String],
    most: usize,
) -> Vec<Snippet> {
    let mut found: Vec<Snippet> = Vec::new();
    let mut first = None;
    for (seq, message) in messages {
        let arguments: Vec<String> = message.tool_calls().iter().flat_map(arguments).collect();
        let content = message.text();
        let texts = std::iter::once(content.as_ref()).chain(arguments.iter().map(String::as_str));
        for line in texts.flat_map(str::lines) {
            if line.trim().is_empty() {
                continue;
            }
            let count = present(line, words);
            let snippet = || Snippet {
                seq: *seq,
                role: message.role().as_str().to_owned(),
                line: line.to_owned(),
                found: count,
            };
            if first.is_none() {
                first = Some(snippet());
            }
            // Few lines are kept at any time, however long the block is.
            if count > 0 && found.iter().filter(|kept| kept.found >= count).count() < most {
                found.push(snippet());
                if found.len() > most {
                    let worst = found
                        .iter()
                        .enumerate()
                        .min_by_key(|(at, kept)| (kept.found, std::cmp::Reverse(*at)));
                    if let Some((at, _)) = worst {
                        found.remove(at);
                    }
                }
            }
        }
    }
    if found.is_empty() { first.into_iter().collect() } else { found }
}

/// A line on at most `width` columns, around its first match, with the words marked.
pub(crate) fn show(line: &str, words: &[String], width: usize) -> String {
    let line = text::one_line(line);
    let lower = Lower::of(&line);
    let first =
        words.iter().filter_map(|word| lower.find_from(word, 0)).map(|(from, _)| from).min();
    let from = first.unwrap_or(0);
    let before = line.get(..from).unwrap_or_default();
    // A little of the text before the match is kept.
    let keep = width / 4;
    if text::columns(before) <= keep || text::columns(&line) <= width {
        return mark(&text::fit(&line, width), words);
    }
    let mut room = keep;
    let back = before.chars().rev().take_while(|c| {
        let wide = text::columns(c.encode_utf8(&mut [0; 4]));
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    });
    let start = from - back.map(char::len_utf8).sum::<usize>();
    let rest = format!("…{}", line.get(start..).unwrap_or_default().trim_start());
    mark(&text::fit(&rest, width), words)
}

/// The text of a call's arguments: for a string its text, for any other value its JSON.
fn arguments(call: &ToolCall) -> Vec<String> {
    let Some(members) = call.members() else { return vec![call.arguments.clone()] };
    let said =
        |json: &str| serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
    members.into_iter().map(|(key, value)| format!("{key}: {}", said(value.get()))).collect()
}

/// The text with every word in the style of a match.
fn mark(line: &str, words: &[String]) -> String {
    let lower = Lower::of(line);
    let mut out = String::new();
    let mut at = 0;
    while at < line.len() {
        let next = words.iter().filter_map(|word| lower.find_from(word, at));
        // Of several words at the same place, the longest.
        let next = next.min_by_key(|(from, to)| (*from, std::cmp::Reverse(*to)));
        let Some((from, to)) = next.filter(|(from, to)| from < to) else { break };
        out.push_str(line.get(at..from).unwrap_or_default());
        out.push_str(&style::paint(style::MATCH, line.get(from..to).unwrap_or_default()));
        at = to;
    }
    out.push_str(line.get(at..).unwrap_or_default());
    out
}

fn present(line: &str, words: &[String]) -> usize {
    let lower = line.to_lowercase();
    words.iter().filter(|word| lower.contains(word.as_str())).count()
}

/// A text in lower case, with the position of each of its bytes in the original: lower case may
/// take more or fewer bytes than upper case.
struct Lower {
    text: String,
    origin: Vec<usize>,
}

impl Lower {
    fn of(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut origin = Vec::with_capacity(original.len() + 1);
        for (at, c) in original.char_indices() {
            text.extend(c.to_lowercase());
            origin.resize(text.len(), at);
        }
        origin.push(original.len());
        Self { text, origin }
    }

    /// The first place of `word` at or after byte `at` of the original, as bytes of the original.
    fn find_from(&self, word: &str, at: usize) -> Option<(usize, usize)> {
        let start = self.origin.partition_point(|origin| *origin < at);
        let found = start + self.text.get(start..)?.find(word)?;
        Some((*self.origin.get(found)?, *self.origin.get(found + word.len())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback::question_words;

    #[test]
    fn the_best_lines_are_shown_in_their_order() {
        let a = Message::user("nothing here\nthe retry limit is 7\nretry");
        let b = Message::assistant("limit\nthe limit of a retry");
        let messages = [(SeqNo(3), &a), (SeqNo(4), &b)];
        let words = question_words("retry limit");
        let best = snippets(&messages, &words, 2);
        let lines: Vec<_> = best.iter().map(|s| (s.seq.0, s.line.as_str())).collect();
        assert_eq!(lines, [(3, "the retry limit is 7"), (4, "the limit of a retry")]);
        let none = snippets(&messages, &question_words("quokka"), 2);
        assert_eq!(none[0].line, "nothing here");
    }

    #[test]
    fn arguments_are_shown_as_the_texts_that_they_are() {
        let call =
            ToolCall::new("c", "write", r#"{"path": "a.py", "text": "x\n  find = 1", "n": 3}"#);
        let message = Message::calls("", vec![call]);
        let found = snippets(&[(SeqNo(0), &message)], &question_words("find"), 1);
        assert_eq!(found[0].line, "  find = 1");
    }

    #[test]
    fn a_long_line_is_cut_around_the_match() {
        let long = format!("{} the Needle 中文 {}", "x ".repeat(80), "y ".repeat(80));
        let message = Message::user(&long);
        let words = question_words("needle 中文");
        let [snippet] = &snippets(&[(SeqNo(0), &message)], &words, 1)[..] else { panic!() };
        let shown = show(&snippet.line, &words, 60);
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert!(plain.contains("Needle 中文"), "{plain}");
        assert!(text::columns(&plain) <= 60);
        assert!(plain.starts_with('…') && plain.ends_with('…'));
        assert!(shown.contains(&style::paint(style::MATCH, "Needle")));
    }

    #[test]
    fn letters_that_grow_in_small_do_not_shift_the_marks() {
        // The lower case of İ takes more bytes than İ.
        let line = "İİ Straße İ find";
        let marked = mark(line, &["find".to_owned()]);
        assert_eq!(marked, format!("İİ Straße İ {}", style::paint(style::MATCH, "find")));
    }
}
