//! `grep` and `read_file` over the files that the policy wrote.

use super::files::Files;
use crate::tool::tool;
use foldback_core::{ToolAnswer, ToolCall, ToolDefinition};
use regex::Regex;
use serde::Deserialize;

/// The maximum number of characters in an answer: 20,000 tokens of 4.
const ANSWER_CHARACTERS: usize = 80_000;

/// The maximum number of lines that `grep` returns.
const MATCHES: usize = 1_000;

/// The number of lines that `read_file` returns by default.
const LINES: usize = 100;

/// Returns the two tools.
pub(super) fn definitions() -> Vec<ToolDefinition> {
    vec![
        tool(
            "grep",
            "Finds lines in the saved conversation history and in large results, literally or by \
             regular expression.",
            r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"A file or folder; by default all."},"regex":{"type":"boolean"}},"required":["pattern"]}"#,
        ),
        tool(
            "read_file",
            "Reads lines of a saved file.",
            r#"{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"integer","description":"Lines to skip, default 0."},"limit":{"type":"integer","description":"Lines to read, default 100."}},"required":["file_path"]}"#,
        ),
    ]
}

/// Runs a call of one of the tools; `None` if it is of neither.
pub(super) fn call(files: &Files, call: &ToolCall) -> Option<ToolAnswer> {
    let result = match call.name.as_str() {
        "grep" => arguments(call).and_then(|asked| grep(files, &asked)),
        "read_file" => arguments(call).and_then(|asked| read_file(files, &asked)),
        _ => return None,
    };
    let is_error = result.is_err();
    Some(ToolAnswer { text: result.unwrap_or_else(|error| error), is_error })
}

#[derive(Deserialize)]
struct Grep {
    pattern: String,
    path: Option<String>,
    regex: Option<bool>,
}

#[derive(Deserialize)]
struct ReadFile {
    file_path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

fn arguments<'a, T: Deserialize<'a>>(call: &'a ToolCall) -> Result<T, String> {
    serde_json::from_str(&call.arguments)
        .map_err(|error| format!("The arguments of {} do not fit: {error}.", call.name))
}

/// Returns the matching lines, each with its number counted from 1, under the path of their file.
fn grep(files: &Files, asked: &Grep) -> Result<String, String> {
    let pattern = match asked.regex {
        Some(true) => asked.pattern.clone(),
        _ => regex::escape(&asked.pattern),
    };
    let regex = Regex::new(&pattern)
        .map_err(|error| format!("{:?} is not a regular expression: {error}", asked.pattern))?;
    let mut searched = files.under(asked.path.as_deref()).peekable();
    if let (Some(path), None) = (&asked.path, searched.peek()) {
        return Err(no_file(files, path));
    }
    let mut answer = Bounded::default();
    let mut found = 0;
    for (path, text) in searched {
        let mut is_named = false;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| regex.is_match(line)) {
            if found == MATCHES {
                answer.end(&format!("... more than {MATCHES} lines match: be more specific."));
                return Ok(answer.text);
            }
            found += 1;
            if !is_named {
                is_named = true;
                answer.line(&format!("{path}:"));
            }
            if !answer.line(&format!("{}: {line}", at + 1)) {
                answer.end("... more lines match: be more specific.");
                return Ok(answer.text);
            }
        }
    }
    Ok(if found == 0 { "No line matches.".to_owned() } else { answer.text })
}

/// Returns the lines after the first `offset`, under a line that says which they are.
fn read_file(files: &Files, asked: &ReadFile) -> Result<String, String> {
    let Some(text) = files.get(&asked.file_path) else {
        return Err(no_file(files, &asked.file_path));
    };
    let total = text.lines().count();
    let (offset, limit) = (asked.offset.unwrap_or(0), asked.limit.unwrap_or(LINES));
    if offset >= total {
        return Err(format!(
            "{} has {total} lines, and {offset} were to be skipped.",
            asked.file_path
        ));
    }
    let mut answer = Bounded::default();
    let mut next = offset;
    for line in text.lines().skip(offset).take(limit.max(1)) {
        let is_whole = answer.line(line);
        // The next answer begins with the line that this one cut, unless it is too long for any answer.
        next += usize::from(is_whole || next == offset);
        if !is_whole {
            break;
        }
    }
    let rest = if next < total { format!(", next offset {next}") } else { String::new() };
    Ok(format!("lines {}-{next} of {total}{rest}\n{}", offset + 1, answer.text))
}

fn no_file(files: &Files, path: &str) -> String {
    let known: Vec<&str> = files.under(None).map(|(path, _)| path).collect();
    let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
    format!("There is no file or folder {path:?}. Files: {known}.")
}

/// An answer of lines up to a number of characters.
#[derive(Default)]
struct Bounded {
    text: String,
    characters: usize,
}

impl Bounded {
    /// Adds a line, and returns whether the whole of it had room. Otherwise as much as fits is added.
    fn line(&mut self, line: &str) -> bool {
        let characters = line.chars().count() + 1;
        let room = ANSWER_CHARACTERS - self.characters;
        if characters <= room {
            self.end(line);
            self.characters += characters;
            return true;
        }
        self.end(&line.chars().take(room).collect::<String>());
        self.characters = ANSWER_CHARACTERS;
        false
    }

    /// Adds a line of any length.
    fn end(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }
}
