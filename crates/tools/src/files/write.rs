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
    let was_of_windows = content.contains(&b'\n')
        && !content.windows(2).any(|two| two == b"\r\n")
        && beginning(&place).is_some_and(|text| ends_lines_as_windows(&text));
    place.write(&content)?;
    let done = if is_new { "made" } else { "replaced" };
    let ends = if was_of_windows {
        ". Its lines ended with \\r\\n before, and end with \\n now"
    } else {
        ""
    };
    Ok(ToolOutput::text(format!("{done} {}: {} bytes{of}{ends}", place.shown, thousands(size))))
}

/// Returns the beginning of the existing file, if there is one.
fn beginning(place: &Place<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    place.open_file().ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number of bytes that decide which line ends a file has.
const HEAD: u64 = 64 << 10;
