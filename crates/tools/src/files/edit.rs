//! `file_edit`: replaces one text in a file with another.

use super::near_miss::{LINES, nearest};
use super::text::{ends_lines_as_windows, whole};
use super::{Bounds, Kind, arguments};
use crate::workspace::{Access, Workspace};
use foldback_core::thousands;
use foldback_tool::{Effect, ToolError, ToolOutput};
use serde::Deserialize;
use std::ops::Range;

pub(super) const KIND: Kind = Kind {
    name: "file_edit",
    description: "Replaces one text with another in a file. The old text must occur there exactly, \
        and only once unless all is true.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Relative to the workspace, or absolute."},"old":{"type":"string","description":"As file_read shows it, with enough around it to be unique."},"new":{"type":"string"},"all":{"type":["boolean","null"],"description":"Every occurrence."}},"required":["path","old","new"],"additionalProperties":false}"#,
    output: None,
    primary: "path",
    effect: Effect::Effectful,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    all: Option<bool>,
}

/// The most lines that are named when a text occurs several times.
const NAMED: usize = 10;

fn run(
    workspace: &Workspace,
    bounds: &Bounds,
    arguments_text: &str,
) -> Result<ToolOutput, ToolError> {
    let Arguments { path, mut old, mut new, all } = arguments(arguments_text)?;
    if old.is_empty() {
        return Err(ToolError::arguments("old is empty; file_write makes a new file"));
    }
    let _turn = workspace.writing();
    let place = workspace.place(&path, Access::Write)?;
    let shown = &place.shown;
    let text = whole(place.open_file()?, bounds.file_bytes, shown)?;
    // A reader sees no difference between a file with the line ends of Windows and one without.
    if ends_lines_as_windows(&text) {
        (old, new) = (of_windows(&old), of_windows(&new));
    }
    let places = places(&text, &old);
    let found = lines_of(&text, &places);
    if old == new {
        return Err(ToolError::arguments("old and new are the same; nothing would change"));
    }
    let named = found.iter().take(NAMED).map(u64::to_string).collect::<Vec<_>>().join(", ");
    let more = if found.len() > NAMED { " and more" } else { "" };
    match found.len() {
        0 => return Err(not_found(shown, &text, &old)),
        1 => {}
        _ if all == Some(true) => {}
        times => {
            return Err(ToolError::permanent(format!(
                "old occurs {times} times in {shown}, at the lines {named}{more}. Give more of the \
                 text around the one that is meant, or all: true."
            )));
        }
    }
    let new_of_windows = of_windows(&new);
    // In a file with both line ends, each place keeps its own, unless the call names them.
    let keeps = |place: &Range<usize>| {
        !old.contains('\r') && ends_lines_as_windows(text.get(place.clone()).unwrap_or_default())
    };
    let put = |place: &Range<usize>| if keeps(place) { &*new_of_windows } else { &*new };
    // Computed before the edit is made: many places times a long text may be more than memory holds.
    let removed: usize = places.iter().map(Range::len).sum();
    let kept = text.len().saturating_sub(removed);
    let size = places.iter().map(|place| put(place).len()).fold(kept, usize::saturating_add);
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    if size > bounds.file_bytes {
        return Err(ToolError::permanent(format!(
            "{shown} would have {} bytes; files of up to {} bytes may be written",
            thousands(size),
            thousands(bounds.file_bytes)
        )));
    }
    if bounds.are_over() {
        return Err(ToolError::permanent(format!("{shown} was not changed: the time ran out")));
    }
    place.write(with(&text, &places, put).as_bytes())?;
    let lines = if found.len() == 1 { "line" } else { "lines" };
    Ok(ToolOutput::text(format!("changed {shown} at {lines} {named}{more}")))
}

/// Returns the text with the line ends of Windows throughout.
fn of_windows(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Returns the places of `old`, none of which overlaps another. If its line ends are plain, it also matches where
/// the text has those of Windows.
fn places(text: &str, old: &str) -> Vec<Range<usize>> {
    if old.contains('\r') || !old.contains('\n') || !text.contains("\r\n") {
        return text.match_indices(old).map(|(at, old)| at..at + old.len()).collect();
    }
    let plain = text.replace("\r\n", "\n");
    // The line ends in `plain` that have a \r before them in `text`.
    let ends: Vec<usize> =
        text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect();
    let in_text = |at: usize| at + ends.partition_point(|end| *end < at);
    plain.match_indices(old).map(|(at, old)| in_text(at)..in_text(at + old.len())).collect()
}

/// Returns the numbers of the lines in which these places begin.
fn lines_of(text: &str, places: &[Range<usize>]) -> Vec<u64> {
    let (mut line, mut counted) = (1, 0);
    places
        .iter()
        .map(|place| {
            let newlines = text[counted..place.start].bytes().filter(|byte| *byte == b'\n').count();
            line += u64::try_from(newlines).unwrap_or_default();
            counted = place.start;
            line
        })
        .collect()
}

/// Returns the text with something else in these places.
fn with<'a>(
    text: &'a str,
    places: &[Range<usize>],
    put: impl Fn(&Range<usize>) -> &'a str,
) -> String {
    let (mut edited, mut rest) = (String::with_capacity(text.len()), 0);
    for place in places {
        edited.push_str(&text[rest..place.start]);
        edited.push_str(put(place));
        rest = place.end;
    }
    edited.push_str(&text[rest..]);
    edited
}

fn not_found(shown: &str, text: &str, old: &str) -> ToolError {
    let is_long = text.split_inclusive('\n').nth(LINES).is_some();
    let lines = u64::try_from(LINES).unwrap_or(u64::MAX);
    let part = if is_long {
        format!(" Only the first {} lines were searched.", thousands(lines))
    } else {
        String::new()
    };
    let next = match nearest(text, old) {
        Some(near) => {
            let but = if near.is_spacing { ", but with other spacing" } else { "" };
            let cut = if near.is_cut {
                " A line that ends with … is cut; file_read shows it."
            } else {
                ""
            };
            format!(
                "The nearest is at the lines {}-{}{but}:\n{}\nTake old from there.{cut}{part}",
                near.first, near.last, near.text
            )
        }
        None => format!("Nothing in the file is similar; file_grep finds where a text is.{part}"),
    };
    ToolError::permanent(format!("old does not occur in {shown}. {next}"))
}
