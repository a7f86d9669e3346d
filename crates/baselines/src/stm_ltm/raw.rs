//! The raw words of every message, kept separately under an id, and the tools that search and read
//! them.

use crate::note::head_of;
use crate::tool::tool;
use crate::words::words;
use foldback_core::{
    Message, SeqNo, TokenCounter, ToolAnswer, ToolCall, ToolDefinition, argument_text,
};
use regex::{Regex, RegexBuilder};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tool that finds words.
pub(crate) const SEARCH: &str = "search_raw";
/// The tool that reads a message.
pub(crate) const READ: &str = "read_raw";

/// Each message as it was recorded. The message number 7 has the id `r7`.
#[derive(Debug, Default)]
pub(crate) struct RawStore {
    kept: Vec<Raw>,
}

/// A recorded message.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) message: Arc<Message>,
    /// Its tokens in a prompt.
    pub(crate) tokens: usize,
    /// Whether it repeats others: an answer of a tool of this store. It is not searched.
    pub(crate) is_recalled: bool,
    /// Whether it is an instruction before all other messages, which every prompt shows. It is not
    /// searched.
    pub(crate) is_head: bool,
}

impl RawStore {
    pub(crate) fn push(&mut self, raw: Raw) -> SeqNo {
        let seq = SeqNo(self.kept.len() as u64);
        self.kept.push(raw);
        seq
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn get(&self, seq: SeqNo) -> Option<&Raw> {
        usize::try_from(seq.0).ok().and_then(|at| self.kept.get(at))
    }

    /// Returns the words under an id such as `r7`: for a result or a plain message its text, byte for
    /// byte; for a message that calls tools its text, and each call with its arguments on a line.
    pub(crate) fn words(&self, id: &str) -> Option<String> {
        let digits = id.trim().strip_prefix('r')?;
        let seq = digits.parse().ok().map(SeqNo)?;
        self.get(seq).map(|raw| words(&raw.message))
    }

    /// Answers a call of [`SEARCH`] with the matching lines, best first.
    pub(crate) fn search(
        &self,
        call: &ToolCall,
        room: usize,
        counter: &dyn TokenCounter,
    ) -> ToolAnswer {
        let Some(pattern) = argument(call, "pattern").filter(|pattern| !pattern.is_empty()) else {
            return wrong("search_raw takes {\"pattern\": a regular expression or plain words}.");
        };
        let Some(pattern) = regex(&pattern) else {
            return wrong("The pattern is too large to search with; take a shorter one.");
        };
        let (mut found, mut more, mut used) = (String::new(), 0, 0);
        for hit in self.hits(&pattern) {
            let tokens = counter.count(&hit.line);
            if more > 0 || used + tokens > room {
                more += 1;
                continue;
            }
            used += tokens;
            found.push_str(&hit.line);
        }
        let text = match (found.is_empty(), more) {
            (true, 0) => "No line matches.".to_owned(),
            (_, 0) => found,
            _ => format!("{found}({more} more lines match; take a narrower pattern.)"),
        };
        ToolAnswer { text, is_error: false }
    }

    /// Returns the matching lines: first those that match in the most different ways (for `gate|stuck`,
    /// a line that contains both); among equals, those of the newest message.
    fn hits(&self, pattern: &Regex) -> Vec<Hit> {
        let mut hits = Vec::new();
        for (at, raw) in self.kept.iter().enumerate().rev() {
            if raw.is_recalled || raw.is_head {
                continue;
            }
            for (number, line) in words(&raw.message).lines().enumerate() {
                let Some(first) = pattern.find(line) else { continue };
                let ways = ways(pattern, line);
                let line = format!("r{at}:{}: {}\n", number + 1, around(line, first.range()));
                hits.push(Hit { ways, line });
            }
        }
        hits.sort_by_key(|hit| Reverse(hit.ways));
        hits
    }

    /// Answers a call of [`READ`] with as many of the requested lines as fit.
    pub(crate) fn read(
        &self,
        call: &ToolCall,
        room: usize,
        counter: &dyn TokenCounter,
    ) -> ToolAnswer {
        let Some(id) = argument(call, "id") else {
            return wrong(
                "read_raw takes {\"id\": \"r7\", \"lines\": \"10-40\"}; the id is missing.",
            );
        };
        let Some(words) = self.words(&id) else {
            let known = match self.kept.len() {
                0 => "nothing is kept yet".to_owned(),
                len => format!("there are r0 to r{}", len - 1),
            };
            return wrong(&format!("There is no message {id:?}; {known}."));
        };
        let lines: Vec<&str> = words.split_inclusive('\n').collect();
        let asked = argument(call, "lines").unwrap_or_else(|| "1-".to_owned());
        let Some(span) = Span::parse(&asked).filter(|span| span.first <= lines.len().max(1)) else {
            let count = lines.len();
            return wrong(&format!(
                "\"lines\" has to be such as \"10-40\", \"10-\" or \"10+4096-\" (from byte 4096 of \
                 line 10), not {asked:?}; {id} has {count} lines."
            ));
        };
        span.cut(id.trim(), &lines, room, counter)
    }
}

/// Returns in how many different ways a line matches, ignoring case: counted up to [`MOST_WAYS`],
/// because a pattern such as `.` matches a long line in thousands of ways.
fn ways(pattern: &Regex, line: &str) -> usize {
    let (mut seen, mut ways) = (BTreeSet::new(), BTreeSet::new());
    for hit in pattern.find_iter(line) {
        if seen.insert(hit.as_str())
            && ways.insert(hit.as_str().to_lowercase())
            && ways.len() == MOST_WAYS
        {
            break;
        }
    }
    ways.len()
}

/// More different words than a question has.
const MOST_WAYS: usize = 64;

/// A line that matches.
struct Hit {
    /// The number of different ways in which it matches.
    ways: usize,
    /// The line after its id and number.
    line: String,
}

/// The requested lines, counted from 1: from byte `skip` of the first to the end of the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: usize,
    skip: usize,
    last: usize,
}

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (first, skip) = from.split_once('+').unwrap_or((from, "0"));
        let first: usize = first.trim().parse().ok()?;
        let skip = skip.trim().parse().ok()?;
        let last = match to.split('+').next().unwrap_or_default().trim() {
            "" => usize::MAX,
            to => to.parse().ok()?,
        };
        (0 < first && first <= last).then_some(Self { first, skip, last })
    }

    fn cut(self, id: &str, lines: &[&str], room: usize, counter: &dyn TokenCounter) -> ToolAnswer {
        let mut text = String::new();
        let mut used = 0;
        let mut next = None;
        for (at, line) in lines.iter().enumerate().take(self.last).skip(self.first - 1) {
            let skip = if at + 1 == self.first { line.ceil_char_boundary(self.skip) } else { 0 };
            let line = line.get(skip..).unwrap_or_default();
            let tokens = counter.count(line);
            if used + tokens <= room {
                used += tokens;
                text.push_str(line);
                continue;
            }
            // A line that is too long for any answer is given in pieces of at least one character.
            let piece = if text.is_empty() { piece_of(line, room, counter) } else { "" };
            if piece == line {
                used = room;
                text.push_str(line);
                continue;
            }
            text.push_str(piece);
            next = Some((at + 1, if piece.is_empty() { 0 } else { skip + piece.len() }));
            break;
        }
        let last =
            next.map_or(self.last.min(lines.len()), |(line, skip)| line - usize::from(skip == 0));
        let mut answer = format!("[{id}, lines {}-{last} of {}]\n{text}", self.first, lines.len());
        if let Some((line, skip)) = next {
            let place = if skip == 0 { line.to_string() } else { format!("{line}+{skip}") };
            let end = if self.last == usize::MAX { String::new() } else { self.last.to_string() };
            if !answer.ends_with('\n') {
                answer.push('\n');
            }
            answer.push_str(&format!("[For the rest: \"lines\": \"{place}-{end}\"]"));
        }
        ToolAnswer { text: answer, is_error: false }
    }
}

/// Returns the longest beginning of a line that fits, at least one character.
fn piece_of<'a>(line: &'a str, room: usize, counter: &dyn TokenCounter) -> &'a str {
    let head = head_of(line, room, counter);
    let first = line.chars().next().map_or(0, char::len_utf8);
    if head.is_empty() { line.get(..first).unwrap_or_default() } else { head }
}

/// Returns the declarations of the two tools.
pub(crate) fn tools() -> Vec<ToolDefinition> {
    vec![
        tool(
            READ,
            "Reads a message of this conversation as it was, by its id.",
            r#"{"type":"object","properties":{"id":{"type":"string"},"lines":{"type":"string","description":"such as 10-40 or 10-"}},"required":["id"]}"#,
        ),
        tool(
            SEARCH,
            "Searches all messages of this conversation for a regular expression; gives id, line \
             number and line of each match.",
            r#"{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}"#,
        ),
    ]
}

/// Returns a string argument of a call.
fn argument(call: &ToolCall, name: &str) -> Option<String> {
    let members = call.members()?;
    let (_, value) =
        members.into_iter().find(|(key, value)| key == name && value.get() != "null")?;
    Some(argument_text(value).into_owned())
}

/// Returns the expression or, if it is not one, the plain words; case does not matter.
fn regex(pattern: &str) -> Option<Regex> {
    let build = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build().ok();
    build(pattern).or_else(|| build(&regex::escape(pattern)))
}

/// Returns a line or, for a long one, the text around the match.
fn around(line: &str, hit: std::ops::Range<usize>) -> String {
    const SIDE: usize = 160;
    let begin = line.floor_char_boundary(hit.start.saturating_sub(SIDE));
    let end = line.ceil_char_boundary(hit.end.min(hit.start + SIDE) + SIDE);
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    let part = line.get(begin..end).unwrap_or_default();
    format!("{}{part}{}", mark(begin > 0), mark(end < line.len()))
}

fn wrong(text: &str) -> ToolAnswer {
    ToolAnswer { text: text.to_owned(), is_error: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Estimate;

    fn store(texts: &[&str]) -> RawStore {
        let mut store = RawStore::default();
        for text in texts {
            store.push(Raw {
                message: Arc::new(Message::user(text)),
                tokens: 0,
                is_recalled: false,
                is_head: false,
            });
        }
        store
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new("c", name, arguments)
    }

    #[test]
    fn a_span_is_read_as_it_is_written() {
        let span = |first, skip, last| Some(Span { first, skip, last });
        for (text, expected) in [
            ("10-40", span(10, 0, 40)),
            (" 10- ", span(10, 0, usize::MAX)),
            ("10", span(10, 0, 10)),
            ("10+4096-", span(10, 4096, usize::MAX)),
            ("10+4096", span(10, 4096, 10)),
            ("0-3", None),
            ("9-3", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(Span::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn cx5_pages_joined_are_the_text() {
        let long = format!("首行\r\n{}\n\nend without a break", "数 word ".repeat(3_000));
        let store = store(&[&long]);
        let (mut joined, mut lines) = (String::new(), "1-".to_owned());
        for _ in 0..1_000 {
            let arguments = format!(r#"{{"id":"r0","lines":"{lines}"}}"#);
            let answer = store.read(&call(READ, &arguments), 300, &Estimate);
            assert!(!answer.is_error, "{}", answer.text);
            let (_, body) = answer.text.split_once("]\n").unwrap();
            let Some((body, rest)) = body.rsplit_once("[For the rest: \"lines\": \"") else {
                joined.push_str(body);
                break;
            };
            // A line break is added after a piece of a line.
            let is_piece = rest.contains('+');
            joined.push_str(if is_piece { body.strip_suffix('\n').unwrap() } else { body });
            lines = rest.trim_end_matches("\"]").to_owned();
        }
        assert_eq!(joined, long);
    }

    #[test]
    fn cx8_search_gives_the_best_first_and_says_what_it_leaves_out() {
        let texts: Vec<String> = (0..200).map(|n| format!("a\nError E{n:04} at 船闸")).collect();
        let store = store(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let search = |pattern: &str| {
            let arguments = format!(r#"{{"pattern":{pattern:?}}}"#);
            store.search(&call(SEARCH, &arguments), 200, &Estimate).text
        };
        assert_eq!(search("e0007"), "r7:2: Error E0007 at 船闸\n");
        assert_eq!(search("E00(07|12)"), "r12:2: Error E0012 at 船闸\nr7:2: Error E0007 at 船闸\n");
        let all = search("船闸");
        assert!(all.starts_with("r199:2: ") && all.ends_with("take a narrower pattern.)"), "{all}");
        assert!(Estimate.count(&all) < 230, "{all}");
        let both = search("船闸|E0003|error");
        assert!(both.starts_with("r3:2: Error E0003 at 船闸\nr199:2: "), "{both}");
        assert_eq!(search("nowhere"), "No line matches.");
        assert_eq!(search("(unclosed"), "No line matches.");
    }

    #[test]
    fn what_is_wrong_with_a_call_is_said() {
        let store = store(&["one\ntwo"]);
        let read = |arguments: &str| store.read(&call(READ, arguments), 100, &Estimate);
        assert_eq!(read(r#"{"id":"r0"}"#).text, "[r0, lines 1-2 of 2]\none\ntwo");
        assert_eq!(read(r#"{"id":"r0","lines":"2"}"#).text, "[r0, lines 2-2 of 2]\ntwo");
        for (arguments, expected) in [
            ("{}", "the id is missing"),
            ("no json", "the id is missing"),
            (r#"{"id":"r1"}"#, "no message \"r1\"; there are r0 to r0"),
            (r#"{"id":"船"}"#, "no message \"船\""),
            (r#"{"id":"r0","lines":"3-"}"#, "r0 has 2 lines"),
            (r#"{"id":"r0","lines":"x"}"#, "not \"x\""),
        ] {
            let answer = read(arguments);
            assert!(answer.is_error && answer.text.contains(expected), "{}", answer.text);
        }
        let answer = store.search(&call(SEARCH, "{}"), 100, &Estimate);
        assert!(answer.is_error && answer.text.contains("pattern"));
    }
}
