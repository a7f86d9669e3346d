//! The text of `load` around what it returns: where that begins and ends, and how to continue.

use super::argument::Arguments;
use crate::cut::one_line;
use crate::quoted_text::QuotedText;
use crate::raw::string;
use foldback_backend_store::Position;
use foldback_core::thousands;

/// Says where the text is not word for word.
pub(super) fn tell_escapes(answer: &mut QuotedText) {
    if answer.is_escaped() {
        answer.push("(Marks in the text are escaped with a backslash.)\n");
    }
}

pub(super) fn end_line(answer: &mut QuotedText) {
    if !answer.text().ends_with('\n') {
        answer.push("\n");
    }
}

/// Returns where the shown part begins: in the line `first` or, if a byte in it was requested,
/// there.
pub(super) fn begun(asked: Position, first: u64) -> Position {
    if asked.line == first { asked } else { Position::from(first) }
}

/// Returns what is shown: from `first` to the last of this many lines, unless there is a `next` place. With a pattern,
/// lines between these were left out. With `is_all`, these lines are all there is.
pub(super) fn head(
    name: &str,
    first: Position,
    (last, total): (u64, u64),
    next: Option<Position>,
    (has_pattern, is_all): (bool, bool),
) -> String {
    let total_lines = thousands(total);
    if has_pattern {
        format!("[load: {name}, lines {first}-{last} of {total_lines}, only around matches]\n")
    } else if first <= Position::from(1) && last >= total && next.is_none() {
        format!("[load: {name}, {}]\n", if is_all { "whole" } else { "all of its text" })
    } else {
        format!("[load: {name}, lines {first}-{last} of {total_lines}]\n")
    }
}

pub(super) fn nothing_matches(name: &str, arguments: &Arguments) -> String {
    match arguments.text("match") {
        Some(pattern) => format!(
            "[load: no line of {name} matches {:?}]\nTry a shorter pattern, or (?i) before it to \
             ignore case.\n",
            one_line(pattern, 60)
        ),
        None => format!("[load: {name} is empty]\n"),
    }
}

/// Says that there is no such place: `has` is how many lines there are or, where the line itself is too short, how many
/// bytes are in which.
pub(super) fn no_such_place(name: &str, from: Position, has: &str, lines: u64) -> String {
    if from.skip > 0 && (1..=lines).contains(&from.line) {
        return format!("{name} has {has}; ask for a place before the end of that line.");
    }
    format!("{name} has {lines} lines; ask for lines from 1 to {lines}.")
}

/// A longer pattern, in bytes, is not repeated in the text of an answer.
const PATTERN_SHOWN: usize = 200;

/// Says how to continue, and returns the arguments of that call.
pub(super) fn tell_rest(
    answer: &mut QuotedText,
    name: &str,
    arguments: &Arguments,
    next: Option<Position>,
) -> Option<String> {
    let next = next?;
    let last = arguments.lines("lines").map(|(_, last)| last).filter(|last| *last != u64::MAX);
    let last = last.map_or(String::new(), |last| last.to_string());
    let lines = string(&format!("{next}-{last}"));
    let pattern = arguments.text("match");
    let call = |pattern: Option<&str>| {
        let matching = pattern.map_or(String::new(), |p| format!(", \"match\": {}", string(p)));
        format!("{{\"ref\": \"{name}\", \"lines\": {lines}{matching}}}")
    };
    let shown = call(pattern.filter(|pattern| pattern.len() <= PATTERN_SHOWN));
    let and_match = match pattern {
        Some(pattern) if pattern.len() > PATTERN_SHOWN => " and the same \"match\"",
        _ => "",
    };
    answer.push(&format!("For the rest, call load with {shown}{and_match}."));
    Some(call(pattern))
}
