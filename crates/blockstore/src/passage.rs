//! The text of a payload, cut into pieces that are searched separately.

use foldback_core::is_json_like;
use std::ops::Range;

/// A passage is a run of whole lines of at most this many bytes. A longer line is cut.
pub(crate) const PASSAGE_BYTES: usize = 2 << 10;

/// A part of a payload's text. The passages of a payload are all of it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) place: PassagePlace,
    pub(crate) text: String,
    /// Whether the payload begins as JSON does.
    pub(crate) is_json: bool,
}

/// The place of a passage in its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassagePlace {
    /// Its bytes in the payload.
    pub(crate) bytes: Range<u64>,
    /// Its lines, counted from 1, the last one included. A line ends after its line feed.
    pub(crate) lines: (u64, u64),
    /// How many bytes of the first line precede it.
    pub(crate) skip: u64,
}

/// Cuts a text that arrives in parts.
pub(crate) struct Cutter {
    /// The text that is not cut off yet.
    rest: Vec<u8>,
    /// Where `rest` begins, in which line, and where that line begins.
    at: u64,
    line: u64,
    line_start: u64,
    is_json: bool,
}

impl Cutter {
    pub(crate) fn new() -> Self {
        Self { rest: Vec::new(), at: 0, line: 1, line_start: 0, is_json: false }
    }

    /// Takes the next part of the text, and passes on the passages that are complete.
    pub(crate) fn push(&mut self, part: &[u8], take: &mut impl FnMut(Passage)) {
        self.rest.extend_from_slice(part);
        self.cut_while(|left| left > PASSAGE_BYTES, take);
    }

    /// Passes on what is left.
    pub(crate) fn finish(mut self, take: &mut impl FnMut(Passage)) {
        self.cut_while(|left| left > 0, take);
    }

    fn cut_while(&mut self, more: impl Fn(usize) -> bool, take: &mut impl FnMut(Passage)) {
        let rest = std::mem::take(&mut self.rest);
        let mut left = rest.as_slice();
        while more(left.len()) {
            let (passage, after) = left.split_at(end_of_passage(left));
            left = after;
            take(self.passage(passage));
        }
        self.rest = left.to_vec();
    }

    fn passage(&mut self, bytes: &[u8]) -> Passage {
        let feeds = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let inner = feeds - u64::from(bytes.ends_with(b"\n"));
        let lines = (self.line, self.line + inner);
        let end = self.at + bytes.len() as u64;
        let place = PassagePlace { bytes: self.at..end, lines, skip: self.at - self.line_start };
        if let Some(feed) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.line_start = self.at + feed as u64 + 1;
        }
        self.at = end;
        self.line += feeds;
        let text = String::from_utf8_lossy(bytes).into_owned();
        if place.bytes.start == 0 {
            self.is_json = is_json_like(&text);
        }
        Passage { place, text, is_json: self.is_json }
    }
}

/// Returns how much of `text` the next passage takes: whole lines, or, if the first line alone is
/// too long, as much of it as ends between two words.
fn end_of_passage(text: &[u8]) -> usize {
    if text.len() <= PASSAGE_BYTES {
        return text.len();
    }
    let most = text.get(..PASSAGE_BYTES).unwrap_or(text);
    if let Some(feed) = most.iter().rposition(|byte| *byte == b'\n') {
        return feed + 1;
    }
    let end = floor_char(text, PASSAGE_BYTES);
    let from = floor_char(text, PASSAGE_BYTES - PASSAGE_BYTES / 4);
    let last = text.get(from..end).and_then(|last| std::str::from_utf8(last).ok()).unwrap_or("");
    let gap = last.char_indices().rfind(|(_, c)| parts_words(*c));
    gap.map_or_else(|| before_escape(text, end), |(at, c)| from + at + c.len_utf8())
}

/// Returns the place before an escape of JSON, `\u4f1a`, that would be cut here, or before the first of two escapes that
/// are one character.
fn before_escape(text: &[u8], mut end: usize) -> usize {
    let behind = |end: usize, bytes: usize| text.get(end.saturating_sub(bytes)..end).unwrap_or(&[]);
    let cut = behind(end, 5);
    if let Some(at) = cut.iter().rposition(|byte| *byte == b'\\') {
        end -= cut.len() - at;
    }
    if let [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _] =
        behind(end, 6)
    {
        end -= 6;
    }
    end
}

/// Returns whether no word continues after this character.
fn parts_words(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, ',' | ';' | '"' | '\'' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>')
        || matches!(c, '|' | '&' | '=' | '!' | '?')
        // 、。〈〉《》「」『』【】〔〕〖〗〜 and the full-width ！＂（），：；？［］｛｝｟｠｡｢｣､
        || matches!(c, '\u{3000}'..='\u{3004}' | '\u{3008}'..='\u{301f}')
        || matches!(c, '\u{ff01}' | '\u{ff02}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0c}' | '\u{ff1a}')
        || matches!(c, '\u{ff1b}' | '\u{ff1f}' | '\u{ff3b}' | '\u{ff3d}' | '\u{ff5b}' | '\u{ff5d}')
        || matches!(c, '\u{ff5f}'..='\u{ff64}' | '\u{201c}' | '\u{201d}' | '\u{2014}')
}

/// Returns the greatest cut at or before `at` that is not inside a character.
fn floor_char(text: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &[u8], step: usize) -> Vec<Passage> {
        let mut passages = Vec::new();
        let mut cutter = Cutter::new();
        for part in text.chunks(step.max(1)) {
            cutter.push(part, &mut |passage| passages.push(passage));
        }
        cutter.finish(&mut |passage| passages.push(passage));
        passages
    }

    /// The passages are the text, and their lines are counted as those of a payload are.
    #[track_caller]
    fn check(text: &str) -> Vec<Passage> {
        let passages = cut(text.as_bytes(), 700);
        let joined: String = passages.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(joined, text);
        for Passage { place, text: passage, .. } in &passages {
            assert!(passage.len() <= PASSAGE_BYTES && !passage.is_empty());
            let bytes = place.bytes.start as usize..place.bytes.end as usize;
            assert_eq!(&text[bytes.clone()], passage);
            let before = |at: usize| text.bytes().take(at);
            let line_of = |at: usize| 1 + before(at).filter(|b| *b == b'\n').count() as u64;
            assert_eq!(place.lines, (line_of(bytes.start), line_of(bytes.end - 1)));
            let line_start = text[..bytes.start].rfind('\n').map_or(0, |feed| feed + 1);
            assert_eq!(place.skip, (bytes.start - line_start) as u64);
        }
        passages
    }

    #[test]
    fn bs7_a_passage_is_a_run_of_whole_lines() {
        let text: String = (1..=200).map(|i| format!("line {i} of the log\n")).collect();
        let passages = check(&text);
        assert!(passages.len() > 1 && passages.iter().all(|p| p.text.ends_with('\n')));
        check(&text.replace('\n', "\r\n"));
        check("no line feed");
        check("\n\n\n");
        check(&format!("{}\nend", "中文的一行\n".repeat(400)));
        assert_eq!(check(""), []);
        let last = check(&format!("{text}the end")).pop().unwrap();
        assert_eq!(last.place.lines.1, 201);
    }

    #[test]
    fn bs7_no_escape_of_json_is_cut() {
        for escapes in [r"\u4f1a\u8bae", r"\ud83d\ude00"] {
            for before in ["", "a", "ab", "abc", "abcd", "abcde"] {
                let json = format!("{{\"{before}{}\"}}", escapes.repeat(900));
                let passages = check(&json);
                assert!(passages.len() > 4);
                let ends = passages.iter().map(|passage| passage.text.trim_end_matches("\"}"));
                let last = &escapes[escapes.len() / 2..];
                assert!(ends.clone().all(|text| text.ends_with(last) || text.ends_with(r"\u4f1a")));
            }
        }
    }

    #[test]
    fn bs7_a_long_line_is_cut_between_words_and_inside_no_character() {
        let words = check(&format!("short\n{}\nshort", "error-4417 ".repeat(900)));
        let long = words.iter().filter(|passage| passage.place.lines == (2, 2));
        assert_eq!(long.clone().count(), 4);
        assert!(long.clone().all(|p| p.text.trim_end().ends_with("error-4417")), "a word is cut");
        check(&"很长的一行".repeat(5_000));
        // Between the marks of other scripts too.
        for mark in ["。", "」", "！", "；", "、", "》", "：", "？", "）", "”"] {
            let marked = check(&format!("租约过期重试三次{mark}").repeat(900));
            let before = |p: &&Passage| p.place.bytes.end < 20_000;
            let is_whole = |p: &Passage| p.text.ends_with(mark);
            assert!(marked.iter().filter(before).all(is_whole), "{mark}");
        }
        check(&"x".repeat(10_000));
        check(&"é".repeat(9_999));
        let json = format!("[{}]", "{\"id\":\"a\",\"说明\":\"值\"},".repeat(240_000));
        assert!(json.len() > 5 << 20);
        let is_of_json = |p: &Passage| p.place.lines == (1, 1) && p.is_json;
        assert!(cut(json.as_bytes(), 1 << 20).iter().all(is_of_json));
    }

    #[test]
    fn bs7_bytes_that_are_no_text_are_cut_all_the_same() {
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i * 37 % 251) as u8 | 0x80).collect();
        let passages = cut(&bytes, 999);
        assert_eq!(passages.last().unwrap().place.bytes.end, 20_000);
    }

    proptest! {
        #[test]
        fn bs7_parts_do_not_matter(
            text in "([a-z中é ]{0,40}\n|[a-z]{500,3000}|\r\n){0,12}",
            step in 1usize..3_000,
        ) {
            prop_assert_eq!(cut(text.as_bytes(), step), cut(text.as_bytes(), usize::MAX));
        }
    }
}
