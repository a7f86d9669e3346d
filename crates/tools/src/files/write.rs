//! `file_write`: makes or replaces a file.

use super::text::ends_lines_as_windows;
use super::{Bounds, Kind, arguments};
use crate::workspace::{Access, Place, Workspace};
use foldback_core::{PayloadRef, thousands};
use foldback_tool::{Effect, ToolError, ToolOutput, handed_bytes};
use serde::Deserialize;
use std::io::Read;

pub(super) const KIND: Kind = Kind {
    name: "file_write",
    description: "Writes a whole file: creates it, and its parent folders, or replaces it. To change a \
        part of a file, use file_edit.",
    parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Relative to the workspace, or absolute."},"content":{"type":"string","description":"The whole content, or a reference alone (store://2-k4qd): what it names is written, byte for byte."}},"required":["path","content"],"additionalProperties":false}"#,
    output: None,
    primary: "path",
    effect: Effect::Idempotent,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

fn run(
    workspace: &Workspace,
    bounds: &Bounds,
    arguments_text: &str,
) -> Result<ToolOutput, ToolError> {
    let Arguments { path, content } = arguments(arguments_text)?;
    let (content, of) = match &bounds.handing {
        Some(handing) if PayloadRef::is_alone(&content) => {
            let bytes = handed_bytes(&**handing, &content, bounds.file_bytes)?;
            (bytes, format!(", {}", content.trim()))
        }
        _ => (content.into_bytes(), String::new()),
    };
    let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
    if size > bounds.file_bytes {
        return Err(ToolError::arguments(format!(
            "the content has {} bytes; files of up to {} bytes may be written",
            thousands(size),
            thousands(bounds.file_bytes)
        )));
    }
    let _turn = workspace.writing();
    let place = workspace.place(&path, Access::Write)?;
    if bounds.are_over() {
        return Err(ToolError::permanent(format!(
            "{} was not written: the time ran out",
            place.shown
        )));
    }
    let is_new = !place.exists();
    let changed = if is_new { String::new() } else { changed(&beginning(&place), &content) };
    place.write(&content)?;
    let done = if is_new { "made" } else { "replaced" };
    let shown = &place.shown;
    let unit = if size == 1 { "byte" } else { "bytes" };
    Ok(ToolOutput::text(format!("{done} {shown}: {} {unit}{of}{changed}", thousands(size))))
}

/// Says what changes beside the words of a file: its encoding and its line ends. `old` is its beginning.
fn changed(old: &[u8], new: &[u8]) -> String {
    let mut changed = String::new();
    if encoding(new) == Some("UTF-8") {
        match encoding(old) {
            Some("UTF-8") => {}
            Some(other) => changed = format!(". It was {other} before, and is UTF-8 now"),
            None => changed.push_str(". It was not UTF-8 before, and is now"),
        }
    }
    let has_plain_ends = new.contains(&b'\n') && !new.windows(2).any(|two| two == b"\r\n");
    if has_plain_ends && ends_lines_as_windows(&String::from_utf8_lossy(old)) {
        changed.push_str(". Its lines ended with \\r\\n before, and end with \\n now");
    }
    changed
}

/// Returns the encoding of a text, which may be cut, if it is known.
fn encoding(text: &[u8]) -> Option<&'static str> {
    match text {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [0xef, 0xbb, 0xbf, ..] => Some("UTF-8 with a byte order mark"),
        _ => match std::str::from_utf8(text) {
            Err(error) if error.error_len().is_some() => None,
            _ => Some("UTF-8"),
        },
    }
}

/// Returns the beginning of the existing file.
fn beginning(place: &Place<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = place.open_file() {
        // What cannot be read cannot be compared; writing will say why.
        let _ = file.take(HEAD).read_to_end(&mut bytes);
    }
    bytes
}

/// The number of bytes that decide which encoding and line ends a file has.
const HEAD: u64 = 64 << 10;
