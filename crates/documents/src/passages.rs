//! Cuts a document into passages: paragraphs under their headings.

use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// A passage ends at the next empty line once it has this many bytes.
const ENOUGH_BYTES: usize = 600;

/// No passage is longer; a longer line is cut between sentences.
const MAX_BYTES: usize = 1_200;

/// A document in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The document's title, if it has one.
    pub(crate) title: Option<String>,
    /// Its passages, in order.
    pub(crate) passages: Vec<Passage>,
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Its bytes in the document, without white space around.
    pub(crate) bytes: Range<usize>,
    /// The headings above it, the topmost first.
    pub(crate) headings: Vec<String>,
}

/// Cuts a text. If `is_markdown` is set, Markdown headings begin passages and are kept with them.
pub(crate) fn cut(text: &str, is_markdown: bool) -> Cut {
    let mut cutter = Cutter { text, start: 0, end: 0, headings: Vec::new(), passages: Vec::new() };
    let mut title = None;
    let mut fence = None;
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    cutter.begin(at);
    for line in text.get(at..).unwrap_or_default().split_inclusive('\n') {
        let bytes = at..at + line.len();
        at = bytes.end;
        fence = if is_markdown { fence_behind(fence, line) } else { None };
        let is_fenced = fence.is_some();
        let heading = (is_markdown && !is_fenced).then(|| heading(line)).flatten();
        if let Some((level, words)) = heading {
            cutter.finish();
            if level == 1 && title.is_none() {
                title = Some(bounded(words));
            }
            cutter.under(level, words);
            cutter.begin(bytes.start);
        } else if line.trim().is_empty() && !is_fenced && cutter.len() >= ENOUGH_BYTES {
            cutter.finish();
            cutter.begin(bytes.end);
        } else if cutter.len() + line.trim_end().len() > MAX_BYTES {
            cutter.finish();
            cutter.begin(bytes.start);
        }
        cutter.take(bytes);
    }
    cutter.finish();
    Cut { title, passages: cutter.passages }
}

/// Returns the part of a heading that is kept with its passages.
fn bounded(heading: &str) -> String {
    heading.chars().take(MAX_HEADING).collect()
}

/// How much of a heading is kept, in characters.
const MAX_HEADING: usize = 120;

/// Returns the level and the words of a heading: `## Leases`. A closing run of `#` follows a space.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let words = line.get(level..)?.strip_prefix(' ')?.trim();
    let open = words.trim_end_matches('#');
    let is_closed = open.is_empty() || open.ends_with(char::is_whitespace);
    let words = if is_closed { open.trim_end() } else { words };
    ((1..=6).contains(&level) && !words.is_empty()).then_some((level, words))
}

/// Returns the code fence that is open after a line, as its character and length. It may begin in a
/// list item or a quotation; its own character closes it, at least as often, with nothing after it.
fn fence_behind(open: Option<(char, usize)>, line: &str) -> Option<(char, usize)> {
    // What looks like a list item inside is a line of the code: `+` in a diff.
    let line = if open.is_some() { unquoted(line) } else { without_marks(line) }.trim_end();
    let Some(mark) = line.chars().next().filter(|c| ['`', '~'].contains(c)) else { return open };
    let behind = line.trim_start_matches(mark);
    let count = line.len() - behind.len();
    match open {
        Some((own, least)) if own == mark && count >= least && behind.is_empty() => None,
        None if count >= 3 && !behind.contains('`') => Some((mark, count)),
        _ => open,
    }
}

/// Returns a line without the marks of the lists and quotations that begin in it; a list's mark is
/// followed by a space.
fn without_marks(line: &str) -> &str {
    let mut line = unquoted(line);
    while let Some(rest) = behind_mark(line).filter(|rest| rest.starts_with(char::is_whitespace)) {
        line = unquoted(rest);
    }
    line
}

fn unquoted(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || c == '>')
}

/// Returns what follows the mark of a list item: `-`, `*`, `+`, `1.`, `1)`.
fn behind_mark(line: &str) -> Option<&str> {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match numbered.len() < line.len() {
        true => numbered.strip_prefix(['.', ')']),
        false => line.strip_prefix(['-', '*', '+']),
    }
}

struct Cutter<'t> {
    text: &'t str,
    /// Where the current passage begins, and how far it goes.
    start: usize,
    end: usize,
    headings: Vec<(usize, String)>,
    passages: Vec<Passage>,
}

impl Cutter<'_> {
    fn begin(&mut self, at: usize) {
        (self.start, self.end) = (at, at);
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    fn under(&mut self, level: usize, words: &str) {
        self.headings.retain(|(other, _)| *other < level);
        self.headings.push((level, bounded(words)));
    }

    /// Adds a line. One that is too long for a passage becomes several.
    fn take(&mut self, line: Range<usize>) {
        self.end = line.end;
        while self.len() > MAX_BYTES {
            let text = self.text.get(self.start..self.end).unwrap_or_default();
            if text.trim().len() <= MAX_BYTES {
                break;
            }
            let (from, to) = (self.start, self.end);
            self.end = from + sentence_end(text);
            let cut = self.end;
            self.finish();
            (self.start, self.end) = (cut, to);
        }
    }

    fn finish(&mut self) {
        let text = self.text.get(self.start..self.end).unwrap_or_default();
        let start = self.start + text.len() - text.trim_start().len();
        let bytes = start..start + text.trim().len();
        if !bytes.is_empty() {
            let headings = self.headings.iter().map(|(_, words)| words.clone()).collect();
            self.passages.push(Passage { bytes, headings });
        }
        self.start = self.end;
    }
}

/// Returns the end of the last sentence that fits a passage, else of the last word or character. More than 0.
fn sentence_end(text: &str) -> usize {
    let most = text.floor_char_boundary(MAX_BYTES);
    let window = text.get(..most).unwrap_or(text);
    let mut sentences = window.char_indices().filter(|(at, c)| {
        let next = window.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        match c {
            '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' => next.is_some_and(char::is_whitespace),
            _ => false,
        }
    });
    let sentence = sentences.next_back().map(|(at, c)| at + c.len_utf8());
    let word = || {
        let space = |c: char| c.is_whitespace() || matches!(c, '，' | '、' | ',' | ';');
        window.char_indices().rfind(|(_, c)| space(*c)).map(|(at, c)| at + c.len_utf8())
    };
    let character = || window.grapheme_indices(true).next_back().map(|(at, _)| at);
    let far_enough = |end: &usize| *end >= MAX_BYTES / 4;
    let end = sentence.filter(far_enough).or_else(|| word().filter(far_enough));
    end.or_else(|| character().filter(far_enough)).unwrap_or(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts<'t>(text: &'t str, cut: &Cut) -> Vec<&'t str> {
        cut.passages.iter().map(|passage| &text[passage.bytes.clone()]).collect()
    }

    #[test]
    fn headings_begin_passages_and_are_told_with_them() {
        let text = "\u{feff}# 租约\n\n开头。\n\n## Renewal\n\nTwice.\n\n```sh\n# no heading\n```\n\n# Other\nx\n";
        let cut = cut(text, true);
        assert_eq!(cut.title.as_deref(), Some("租约"));
        assert_eq!(
            texts(text, &cut),
            ["# 租约\n\n开头。", "## Renewal\n\nTwice.\n\n```sh\n# no heading\n```", "# Other\nx"]
        );
        let headings: Vec<String> =
            cut.passages.iter().map(|passage| passage.headings.join(" > ")).collect();
        assert_eq!(headings, ["租约", "租约 > Renewal", "Other"]);
    }

    #[test]
    fn a_fence_is_closed_by_its_own_kind() {
        for fenced in [
            "1. Run it:\n2. ```sh\n   # no\n   ```\n",
            "- ~~~\n  ```\n# no\n  ~~~\n",
            "````md\n```\n# no\n```\n# no\n````\n",
            "> ```\n> # no\n> ```\n",
            "```sh\n# no\n``` no end\n# no\n```\n",
            "```inline``` 码\n",
            "```diff\n+```\n-```\n# no\n```\n",
            "```\n- ```\n# no\n1. ```\n# no\n```\n",
            "+``` no fence\n",
            "> 1. - ```\n>      # no\n>      ```\n",
        ] {
            let text = format!("{fenced}\n# 续期\n\nTwice.\n");
            let cut = cut(&text, true);
            assert_eq!(cut.title.as_deref(), Some("续期"), "{text}");
            assert_eq!(texts(&text, &cut), [fenced.trim(), "# 续期\n\nTwice."], "{text}");
        }
    }

    #[test]
    fn a_heading_is_closed_behind_a_space() {
        let words = ["# C#\n", "# C# ##\n", "## a ##", "### ##", "# 中#文"].map(heading);
        assert_eq!(
            words,
            [Some((1, "C#")), Some((1, "C#")), Some((2, "a")), None, Some((1, "中#文"))]
        );
    }

    #[test]
    fn a_long_line_is_cut_between_sentences() {
        let text = "租约过期后重试三次，然后放弃。".repeat(300);
        let cut = cut(&text, false);
        assert!(cut.passages.len() > 10);
        assert!(texts(&text, &cut).iter().all(|passage| passage.ends_with('。')));
        let family = "👩‍👩‍👧".repeat(400);
        let whole = |passage: &&str| passage.graphemes(true).all(|c| c == "👩‍👩‍👧");
        assert!(texts(&family, &super::cut(&family, false)).iter().all(whole));
    }

    proptest! {
        /// All of a document is in its passages, in order and once, except for white space.
        #[test]
        fn nothing_is_lost_or_told_twice(
            text in "(#{0,3} [a-z中]{0,9}\n|[a-z中é。. ]{0,60}\n|\n|```\n|[中。x ]{900,2000}|e\u{301}){0,24}",
            is_markdown: bool,
        ) {
            let cut = cut(&text, is_markdown);
            let mut from = 0;
            for passage in &cut.passages {
                prop_assert!(text[from..passage.bytes.start].trim().is_empty());
                prop_assert!(passage.bytes.len() <= MAX_BYTES && !passage.bytes.is_empty());
                from = passage.bytes.end;
            }
            prop_assert!(text[from..].trim().is_empty());
        }
    }
}
