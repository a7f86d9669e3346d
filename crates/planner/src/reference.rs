//! A reference to another step's result, with the path to a part of it.
//!
//! The exact syntax of references:
//!
//! - In OnePlan `$$stepK.result PATH$$`, K counted from 1.
//! - In `<execute_tools>` `{results[N].data PATH}`, N counted from 0, without spaces.
//! - `PATH` is any number of `.name`, `[index]`, `["any text"]` or `['any text']`. A name contains
//!   ASCII letters, digits, `_` and `-`, and any non-ASCII character except spaces. The text in quotes
//!   has JSON's escapes.
//!
//! Everything else is text and stays unchanged: `$$` in prices and formulas, `{int(age) + 10}`,
//! `{results[0]}`, `{results[i].data}`. Text that begins like a reference and continues differently
//! (`$$step1$$`, `$$ step1.result $$`, `{results[0].data + 1}`, `{ results[-1].data }`) is neither: it
//! is reported, so that no half-written reference reaches a tool as text.

use crate::StepId;
use foldback_core::{Escape, decode_literal, escape_into, first_chars};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};

/// A place in the result of another step: `$$step1.result.rates["Exchange Rate"][0]$$`, or
/// `{results[0].data.rates}` if steps are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The step whose result is meant.
    pub step: StepId,
    /// The path into the result; empty for the whole result.
    pub path: Vec<PathSegment>,
}

/// A segment of the path into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathSegment {
    /// A key of an object; any text. In an array, a key of digits is an index.
    Key(String),
    /// An index in an array, counted from 0.
    Index(usize),
}

/// The two ways to write a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `$$step1.result$$`
    OnePlan,
    /// `{results[0].data}`
    ExecuteTools,
}

impl Reference {
    /// Returns the reference in a spelling. A step with the number 0, which no plan has, is written as
    /// the first.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> String {
        let path = PathText(&self.path);
        match spelling {
            Spelling::OnePlan => format!("$$step{}.result{path}$$", self.step.0),
            Spelling::ExecuteTools => {
                format!("{{results[{}].data{path}}}", self.step.0.saturating_sub(1))
            }
        }
    }
}

/// Prints the reference in OnePlan's spelling.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(Spelling::OnePlan))
    }
}

/// Prints the segment as it is written in a path: `.name`, `["any text"]` or `[0]`.
impl fmt::Display for PathSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(key) if !key.is_empty() && key.chars().all(is_name) => write!(f, ".{key}"),
            Self::Key(key) => {
                let mut quoted = String::new();
                escape_into(key, Escape::Minimal, &mut quoted);
                write!(f, "[\"{quoted}\"]")
            }
        }
    }
}

struct PathText<'a>(&'a [PathSegment]);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| segment.fmt(f))
    }
}

/// A part of a text: plain, or a reference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TextPart<'a> {
    Text(&'a str),
    Reference(Reference),
    /// Text that looks like a reference but is not one, and what was expected.
    Malformed {
        text: &'a str,
        expected: String,
    },
}

/// Splits a text into references and the text between them. Concatenated as written, the parts give the
/// text. One pass: referenced values are never scanned here.
pub(crate) fn cut(text: &str, spelling: Spelling) -> Vec<TextPart<'_>> {
    let mut found = Vec::new();
    let (mut plain_from, mut from) = (0, 0);
    let begin = match spelling {
        Spelling::OnePlan => "$$",
        Spelling::ExecuteTools => "{",
    };
    while let Some(at) = text[from..].find(begin).map(|at| at + from) {
        let rest = &text[at..];
        let read = match spelling {
            Spelling::OnePlan => read_one_plan(rest),
            Spelling::ExecuteTools => read_execute_tools(rest),
        };
        let (part, length) = match read {
            Read::Text => {
                from = at + 1;
                continue;
            }
            Read::Reference(reference, length) => (TextPart::Reference(reference), length),
            Read::Malformed(expected) => {
                let length = malformed_length(rest, spelling);
                (TextPart::Malformed { text: &rest[..length], expected }, length)
            }
        };
        if plain_from < at {
            found.push(TextPart::Text(&text[plain_from..at]));
        }
        found.push(part);
        from = at + length;
        plain_from = from;
    }
    if plain_from < text.len() {
        found.push(TextPart::Text(&text[plain_from..]));
    }
    found
}

enum Read {
    Text,
    /// A reference, with its length in bytes.
    Reference(Reference, usize),
    Malformed(String),
}

/// Reads what follows `$$`.
fn read_one_plan(text: &str) -> Read {
    // `$$$step1.result$$` is a dollar and a reference, which begins at the next character.
    let Some(number) = strip_step(text[2..].trim_start_matches(' ')) else { return Read::Text };
    let example = "`$$step1.result$$`, with a path after `result` for a part of it";
    let Some(rest) = text.strip_prefix("$$step").filter(|rest| rest.len() == number.len()) else {
        return Read::Malformed(example.to_owned());
    };
    let (number, rest) = split_digits(rest);
    let Some(step) = number.parse().ok().filter(|step| *step > 0) else {
        return Read::Malformed("a step number of 1 or more".to_owned());
    };
    let Some(rest) = rest.strip_prefix(".result") else {
        return Read::Malformed(example.to_owned());
    };
    finish(text, StepId(step), rest, "$$")
}

/// Returns the rest after `step`, in any case, if a number follows, possibly after `_` or `-`.
fn strip_step(text: &str) -> Option<&str> {
    let rest = text.get(..4).filter(|word| word.eq_ignore_ascii_case("step"))?;
    let rest = &text[rest.len()..];
    let number = rest.strip_prefix(['_', '-']).unwrap_or(rest);
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(rest)
}

/// Reads from `{` on.
fn read_execute_tools(text: &str) -> Read {
    let example = "`{results[0].data}`, without spaces, with a path after `data` for a part of it";
    let Some(loose) = text[1..].trim_start_matches(' ').strip_prefix("results") else {
        return Read::Text;
    };
    let Some(loose) = loose.trim_start_matches(' ').strip_prefix('[') else { return Read::Text };
    let loose = loose.trim_start_matches(' ');
    let (digits, loose) = split_digits(loose.strip_prefix('-').unwrap_or(loose));
    let Some(after) = loose.trim_start_matches(' ').strip_prefix("].data") else {
        return Read::Text;
    };
    // `{results[0].database}` is not a reference either.
    if digits.is_empty() || after.starts_with(|c: char| is_name(c) && c != '-') {
        return Read::Text;
    }
    let exact = text.strip_prefix("{results[").and_then(|rest| rest.strip_prefix(digits));
    let Some(rest) = exact.and_then(|rest| rest.strip_prefix("].data")) else {
        return Read::Malformed(example.to_owned());
    };
    match digits.parse().ok().and_then(|place: u32| place.checked_add(1)) {
        Some(step) => finish(text, StepId(step), rest, "}"),
        None => Read::Malformed("a place that is a smaller number".to_owned()),
    }
}

/// Reads the path and the end.
fn finish(text: &str, step: StepId, rest: &str, end: &str) -> Read {
    let (path, rest) = match read_path(rest) {
        Ok(read) => read,
        Err(expected) => return Read::Malformed(expected),
    };
    match rest.strip_prefix(end) {
        Some(rest) => Read::Reference(Reference { step, path }, text.len() - rest.len()),
        None => Read::Malformed(format!(
            "`.name`, `[0]`, `[\"any text\"]` or `{end}` instead of `{}`",
            rest.chars().next().map_or_else(|| "the end".to_owned(), |c| c.to_string()),
        )),
    }
}

fn read_path(mut rest: &str) -> Result<(Vec<PathSegment>, &str), String> {
    let mut path = Vec::new();
    loop {
        if let Some(name) = rest.strip_prefix('.') {
            let length = name.find(|c| !is_name(c)).unwrap_or(name.len());
            if length == 0 {
                return Err("a name after `.`; other keys are written `[\"any text\"]`".to_owned());
            }
            path.push(PathSegment::Key(name[..length].to_owned()));
            rest = &name[length..];
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (segment, after) = read_brackets(inside)?;
            path.push(segment);
            rest = after;
        } else {
            return Ok((path, rest));
        }
    }
}

/// Reads what follows `[`.
fn read_brackets(inside: &str) -> Result<(PathSegment, &str), String> {
    let expected = || "a place or a key in quotes between `[` and `]`".to_owned();
    let (segment, rest) = match inside.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let literal = &inside[1..];
            let length = literal_length(literal, quote).ok_or_else(expected)?;
            let key = decode_literal(&literal[..length]).into_owned();
            (PathSegment::Key(key), &literal[length + 1..])
        }
        _ => {
            let (digits, rest) = split_digits(inside);
            (PathSegment::Index(digits.parse().map_err(|_| expected())?), rest)
        }
    };
    Ok((segment, rest.strip_prefix(']').ok_or_else(expected)?))
}

/// Returns the number of bytes up to the quote that ends a literal.
fn literal_length(literal: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    literal.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Returns whether a character may occur in a path without quotes.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || c == '_'
        || c == '-'
        || (!c.is_ascii() && !c.is_whitespace() && !c.is_control())
}

/// Returns how much of a text to show, and to skip, as a malformed reference: up to its end if that is
/// near and on the same line.
fn malformed_length(text: &str, spelling: Spelling) -> usize {
    const NEAR: usize = 80;
    let (begin, end) = match spelling {
        Spelling::OnePlan => ("$$", "$$"),
        Spelling::ExecuteTools => ("{", "}"),
    };
    let near = first_chars(text, NEAR);
    let near = near.lines().next().unwrap_or(near);
    match near[begin.len()..].find(end) {
        Some(at) => begin.len() + at + end.len(),
        None => near.len(),
    }
}

/// Returns text that looks like a reference of a spelling, well-formed or not, and so cannot be written
/// in it.
pub(crate) fn would_be_read(text: &str, spelling: Spelling) -> bool {
    cut(text, spelling).iter().any(|part| !matches!(part, TextPart::Text(_)))
}

/// Returns the paths of references as a list for a message.
pub(crate) fn path_text(path: &[PathSegment]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", PathText(path));
    text
}
