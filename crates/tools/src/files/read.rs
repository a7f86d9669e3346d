//! `file_read`: the text of a file.

use super::text::{Text, char_safe};
use super::{Bounds, Kind, arguments};
use crate::workspace::{Access, Workspace, failed};
use foldback_core::thousands;
use foldback_tool::{Effect, ToolError, ToolOutput};
use serde::Deserialize;

pub(super) const KIND: Kind = Kind {
    name: "file_read",
    description: "The exact text of a file. A long file is cut; the last line of the answer then says \
        how to continue.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Relative to the workspace, or absolute."},"lines":{"type":["string","integer","null"],"description":"Only these, counted from 1: \"10-40\", \"10-\" or \"10\"."}},"required":["path"],"additionalProperties":false}"#,
    output: None,
    primary: "path",
    effect: Effect::ReadOnly,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    lines: Option<Lines>,
}

/// Lines as models write them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(u64),
    Range(String),
}

fn run(
    workspace: &Workspace,
    bounds: &Bounds,
    arguments_text: &str,
) -> Result<ToolOutput, ToolError> {
    let Arguments { path, lines } = arguments(arguments_text)?;
    let lines = lines.map(|lines| match lines {
        Lines::One(number) => number.to_string(),
        Lines::Range(range) => range,
    });
    let range = Range::parse(lines.as_deref())?;
    let place = workspace.place(&path, Access::Read)?;
    let shown = &place.shown;
    let io = |error: std::io::Error| failed(shown, &error);
    let mut text = match Text::of(place.open_file()?, bounds.file_bytes).map_err(io)? {
        Ok(text) => text,
        Err(binary) => return Err(binary.error(shown)),
    };
    let mut passage = Passage::default();
    let mut part = Vec::new();
    // One byte more than fits shows whether a line fits.
    let most = bounds.output_bytes.saturating_add(1);
    while let Some(number) = text.next(&mut part, most).map_err(io)? {
        passage.lines_seen = number;
        if range.last.is_some_and(|last| number > last) {
            break;
        }
        if bounds.are_over() {
            passage.is_cut = true;
            break;
        }
        if number < range.first {
            continue;
        }
        if passage.bytes.len() + part.len() > bounds.output_bytes {
            passage.cut(&part, bounds.output_bytes);
            break;
        }
        passage.bytes.extend_from_slice(&part);
        passage.last = number;
    }
    passage.answer(shown, range, text.size)
}

/// The part of a file that is answered.
#[derive(Default)]
struct Passage {
    bytes: Vec<u8>,
    /// The number of its last line.
    last: u64,
    lines_seen: u64,
    is_cut: bool,
    /// Whether its only line is not whole.
    is_line_cut: bool,
}

impl Passage {
    /// Ends the passage before this line. Of a line that is too long for any answer, the beginning is kept.
    fn cut(&mut self, line: &[u8], most: usize) {
        self.is_cut = true;
        if self.bytes.is_empty() && line.len() > most {
            self.bytes.extend_from_slice(char_safe(line, most));
            self.last = self.lines_seen;
            self.is_line_cut = true;
        }
    }

    fn answer(self, shown: &str, range: Range, size: u64) -> Result<ToolOutput, ToolError> {
        let (first, last) = (range.first, self.last);
        if self.bytes.is_empty() && self.is_cut {
            return Err(ToolError::permanent(format!(
                "line {first} of {shown} was not reached in time; file_grep finds lines by their \
                 words"
            )));
        }
        if self.bytes.is_empty() && self.lines_seen > 0 {
            return Err(ToolError::permanent(format!(
                "{shown} has only {} lines; line {first} was asked for",
                self.lines_seen
            )));
        }
        let mut notes = Vec::new();
        if self.lines_seen == 0 {
            notes.push(format!("{shown} is empty"));
        }
        let (mut text, is_utf_8) = match String::from_utf8(self.bytes) {
            Ok(text) => (text, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        };
        if !is_utf_8 {
            notes.push(
                "the file is not UTF-8: bytes that are not text are shown as \u{fffd}".into(),
            );
        }
        if self.is_line_cut {
            notes.push(format!(
                "line {last} is too long to be shown whole: this is its beginning. file_grep shows \
                 the part of it that matches. Read on after it with lines \"{}-\"",
                last + 1
            ));
        } else if self.is_cut {
            notes.push(format!(
                "lines {first}-{last} of a file of {} bytes: read on with lines \"{}-\"",
                thousands(size),
                last + 1
            ));
        }
        for note in notes {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{note}]"));
        }
        Ok(ToolOutput::text(text))
    }
}

/// The lines that were asked for, counted from 1.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    last: Option<u64>,
}

impl Range {
    fn parse(lines: Option<&str>) -> Result<Self, ToolError> {
        let Some(lines) = lines.map(str::trim).filter(|lines| !lines.is_empty()) else {
            return Ok(Self { first: 1, last: None });
        };
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        let range = match (number(first), last.trim()) {
            (Some(first), "") => Some(Self { first, last: None }),
            (Some(first), last) => number(last)
                .filter(|last| *last >= first)
                .map(|last| Self { first, last: Some(last) }),
            (None, _) => None,
        };
        range.ok_or_else(|| {
            ToolError::arguments(format!(
                "lines {lines:?} is not a range; \"10-40\", \"10-\" or \"10\" was expected, counted from 1"
            ))
        })
    }
}
