//! `file_grep`: the lines of files that match.

use super::globs::Glob;
use super::text::Text;
use super::walk::walk;
use super::{Bounds, Cut, Kind, arguments};
use crate::workspace::{self, Access, Workspace, failed};
use cap_std::fs::File;
use foldback_core::{beginning, thousands};
use foldback_tool::{Data, Effect, ToolError, ToolOutput};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "file_grep",
    description: "The lines of files that match a regular expression, as path:line:text. What \
        .gitignore names is left out, and files that are not text.",
    parameters: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"A regular expression, matched against each line; (?i) at its start ignores case."},"path":{"type":["string","null"],"description":"A file or a folder; by default the workspace."},"glob":{"type":["string","null"],"description":"Only files that match: \"*.rs\", \"src/**/*.md\"."},"context":{"type":["integer","null"],"minimum":0,"description":"How many lines around each match to show as well."},"ignored":{"type":["boolean","null"],"description":"Also what .gitignore names."}},"required":["pattern"],"additionalProperties":false}"#,
    output: Some(
        r#"{"type":"object","properties":{"matches":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"},"text":{"type":"string"}},"required":["path","line","text"]}}},"required":["matches"]}"#,
    ),
    primary: "pattern",
    effect: Effect::ReadOnly,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    context: Option<usize>,
    ignored: Option<bool>,
}

/// The most lines around a match that may be asked for.
const MOST_CONTEXT: usize = 50;

/// How many characters of a line are shown.
const COLUMNS: usize = 400;

/// How many bytes of a line are searched at once; a longer one is searched in parts.
const LONGEST_PART: usize = 16 << 20;

/// The largest size of a compiled expression, in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

fn run(
    workspace: &Workspace,
    bounds: &Bounds,
    arguments_text: &str,
) -> Result<ToolOutput, ToolError> {
    let Arguments { pattern, path, glob, context, ignored } = arguments(arguments_text)?;
    let glob = glob.as_deref().map(Glob::new).transpose()?;
    let regex = RegexBuilder::new(&pattern).size_limit(LARGEST_PATTERN).build().map_err(|error| {
        let reason = error.to_string();
        let hint = if reason.contains("not supported") {
            "Look-around and back references are not supported: search for more, and read the lines \
             that match"
        } else {
            "To search for its words literally, put a backslash before each of .+*?()|[]{}^$"
        };
        ToolError::arguments(format!("pattern is not a valid regular expression: {reason}. {hint}"))
    })?;
    let place = workspace.place(path.as_deref().unwrap_or("."), Access::Read)?;
    let context = context.unwrap_or_default().min(MOST_CONTEXT);
    let matches = Matches { is_of_lines: has_line_break(&pattern), ..Matches::default() };
    let mut search = Search { regex, context, bounds, matches, part: LONGEST_PART };
    if place.exists() && !place.is_folder() {
        let file = place.open_file()?;
        let end = search.file(file, &place.shown).map_err(|error| failed(&place.shown, &error))?;
        search.matches.cut = end.break_value();
        return Ok(search.matches.answer());
    }
    let walked = walk(&place, usize::MAX, ignored == Some(true), bounds, &mut |entry| {
        if entry.is_folder || glob.as_ref().is_some_and(|glob| !glob.fits(entry.within)) {
            return ControlFlow::Continue(());
        }
        if entry.is_link {
            // Its target is searched in its own place, if it may be.
            search.matches.links += 1;
            return ControlFlow::Continue(());
        }
        let name = entry.within.file_name().map(Path::new).unwrap_or(entry.within);
        let searched = workspace::open_file(entry.folder, name)
            .and_then(|file| search.file(file, &entry.shown));
        // What cannot be read is counted, and the rest is searched.
        searched.unwrap_or_else(|_| {
            search.matches.unread += 1;
            ControlFlow::Continue(())
        })
    })?;
    search.matches.cut = walked.cut;
    search.matches.left_out = walked.left_out();
    search.matches.unread += walked.not_entered;
    Ok(search.matches.answer())
}

struct Search<'a> {
    regex: Regex,
    context: usize,
    bounds: &'a Bounds,
    matches: Matches,
    /// How many bytes of a line are searched at once.
    part: usize,
}

/// The answer so far: the lines that match, and counts of what was passed over.
#[derive(Default)]
struct Matches {
    text: String,
    lines: Vec<Match>,
    files: u64,
    binary: u64,
    unread: u64,
    links: u64,
    /// Lines that were searched in parts.
    in_parts: u64,
    left_out: Option<String>,
    cut: Option<Cut>,
    /// Whether the pattern asks for more than one line.
    is_of_lines: bool,
}

/// A line that was read: what is shown of it, and whether it matches.
struct Line {
    number: u64,
    shown: String,
    is_hit: bool,
}

/// A line that matches.
#[derive(Serialize)]
struct Match {
    path: String,
    line: u64,
    text: String,
}

impl Search<'_> {
    /// Searches one file; stops when there is no room or no time for more.
    fn file(&mut self, file: File, shown: &str) -> std::io::Result<ControlFlow<Cut>> {
        let mut text = match Text::of(file, self.bounds.file_bytes)? {
            Ok(text) => text,
            Err(_) => {
                self.matches.binary += 1;
                return Ok(ControlFlow::Continue(()));
            }
        };
        self.matches.files += 1;
        // Lines before a match that are not written yet, and the count of lines after one still to be written.
        let mut before: VecDeque<(u64, String)> = VecDeque::new();
        let (mut after, mut told) = (0, 0);
        let mut bytes = Vec::new();
        while let Some(Line { number, shown: line, is_hit }) = self.line(&mut text, &mut bytes)? {
            if let Some(cut) = self.bounds.over() {
                return Ok(ControlFlow::Break(cut));
            }
            if !is_hit {
                if after > 0 {
                    after -= 1;
                    told = number;
                    if let end @ ControlFlow::Break(_) =
                        self.matches.tell(shown, number, '-', &line, self.bounds)
                    {
                        return Ok(end);
                    }
                } else if self.context > 0 {
                    if before.len() == self.context {
                        before.pop_front();
                    }
                    before.push_back((number, line));
                }
                continue;
            }
            let begins = before.front().map_or(number, |(first, _)| *first);
            if self.context > 0 && (told == 0 || begins > told + 1) && !self.matches.text.is_empty()
            {
                self.matches.text.push_str("--\n");
            }
            for (at, line) in before.drain(..) {
                if let end @ ControlFlow::Break(_) =
                    self.matches.tell(shown, at, '-', &line, self.bounds)
                {
                    return Ok(end);
                }
            }
            if let end @ ControlFlow::Break(_) =
                self.matches.tell(shown, number, ':', &line, self.bounds)
            {
                return Ok(end);
            }
            self.matches.lines.push(Match { path: shown.to_owned(), line: number, text: line });
            (after, told) = (self.context, number);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the next line, and searches it. Of a line of several parts, the first that matches is shown.
    fn line(&mut self, text: &mut Text, bytes: &mut Vec<u8>) -> std::io::Result<Option<Line>> {
        let mut read: Option<Line> = None;
        let mut parts = 0_u64;
        while let Some(number) = text.next(bytes, self.part)? {
            parts += 1;
            if !read.as_ref().is_some_and(|read| read.is_hit) {
                let part = String::from_utf8_lossy(bytes);
                let part = part.trim_end_matches(['\n', '\r']);
                // A byte order mark is not part of the first line.
                let is_first = number == 1 && parts == 1;
                let part = part.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(part);
                let hit = self.regex.find(part);
                let is_hit = hit.is_some();
                if is_hit || read.is_none() {
                    let is_shown = is_hit || self.context > 0;
                    let at = hit.map_or(0, |hit| hit.start());
                    let shown = if is_shown { around(part, at) } else { String::new() };
                    read = Some(Line { number, shown, is_hit });
                }
            }
            let is_whole = bytes.ends_with(b"\n") || bytes.len() < self.part;
            if is_whole || self.bounds.are_over() {
                break;
            }
        }
        self.matches.in_parts += u64::from(parts > 1);
        Ok(read)
    }
}

impl Matches {
    /// Writes a line, if there is room for it.
    fn tell(
        &mut self,
        shown: &str,
        number: u64,
        mark: char,
        line: &str,
        bounds: &Bounds,
    ) -> ControlFlow<Cut> {
        let length = shown.len() + line.len() + 24;
        if self.text.len() + length > bounds.output_bytes && !self.text.is_empty() {
            return ControlFlow::Break(Cut::Room);
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{shown}{mark}{number}{mark}{line}");
        ControlFlow::Continue(())
    }

    fn answer(self) -> ToolOutput {
        let mut text = self.text;
        let mut notes = Vec::new();
        if self.lines.is_empty() && self.cut.is_none() {
            notes.push(format!("nothing matches; files searched: {}", thousands(self.files)));
        }
        if let Some(cut) = self.cut {
            notes.push(cut.told(format!(
                "there may be more after {} matches; give a narrower pattern, path or glob",
                thousands(u64::try_from(self.lines.len()).unwrap_or(u64::MAX))
            )));
        }
        if self.lines.is_empty() {
            if self.is_of_lines {
                let line_by_line = "each line is searched by itself, so a pattern with \\n matches \
                                    nothing; give a pattern for one line";
                notes.push(line_by_line.to_owned());
            }
            notes.extend(self.left_out);
            for (count, what) in [
                (self.binary, "files that are not text"),
                (self.links, "links that were not followed"),
            ] {
                if count > 0 {
                    notes.push(format!("{what}: {}", thousands(count)));
                }
            }
        }
        if self.in_parts > 0 {
            notes.push(format!(
                "lines that were searched in parts of 16 MiB: {}; a match across two parts is missed, and ^ \
                 and $ match between them",
                thousands(self.in_parts)
            ));
        }
        if self.unread > 0 {
            notes.push(format!(
                "files or folders that could not be read: {}",
                thousands(self.unread)
            ));
        }
        for note in notes {
            let _ = writeln!(text, "[{note}]");
        }
        text.truncate(text.trim_end_matches('\n').len());
        let structured = serde_json::json!({ "matches": self.lines }).to_string();
        ToolOutput { data: Data { text, structured: Some(structured) } }
    }
}

/// Returns whether a pattern asks for the end of a line and what follows it.
fn has_line_break(pattern: &str) -> bool {
    pattern.contains('\n') || (pattern.contains("\\n") && !pattern.contains("[^"))
}

/// Returns a line, or for a long one the part around the byte `at`.
fn around(line: &str, at: usize) -> String {
    if line.len() <= COLUMNS || line.chars().count() <= COLUMNS {
        return line.to_owned();
    }
    let before = line.get(..at).unwrap_or_default();
    let start = before.char_indices().rev().nth(COLUMNS / 4).map_or(0, |(start, _)| start);
    let rest = line.get(start..).unwrap_or_default();
    format!("{}{}", if start > 0 { "…" } else { "" }, beginning(rest, COLUMNS))
}

#[cfg(test)]
mod tests;
