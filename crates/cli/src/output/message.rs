//! One message as a person reads it.

use super::{Output, style, text};
use crate::error::CliError;
use foldback_core::{Content, Message, Part, Role};

/// The indentation of a message's text.
const INDENT: &str = "    ";

/// The length to which the JSON of a part that is not text is cut.
const OTHER_CHARS: usize = 160;

/// Prints a whole message: its number, who speaks, what it calls or answers, and its text. `mark`
/// is printed dimmed after the head.
pub(crate) fn print(
    out: &Output,
    number: u64,
    message: &Message,
    mark: &str,
) -> Result<(), CliError> {
    let mut head = format!("{number:>3} {}", style::paint(style::HEAD, role(message)));
    if let Some(name) = message.name() {
        head.push_str(&format!(" ({})", text::one_line(name)));
    }
    if let Some(id) = message.tool_call_id() {
        head.push_str(&style::paint(style::DIM, format!(" ← {}", text::one_line(id.as_str()))));
    }
    if let Some(at) = message.timestamp() {
        head.push_str(&style::paint(style::DIM, format!(" · {}", text::utc(at))));
    }
    if !mark.is_empty() {
        head.push_str(&style::paint(style::DIM, format!(" · {mark}")));
    }
    out.line(head)?;
    match message.content() {
        Content::Empty => {}
        Content::Text(text) => body(out, text)?,
        Content::Parts(parts) => {
            for part in parts {
                match part {
                    Part::Text(text) => body(out, text)?,
                    Part::Other(json) => {
                        let shown: String = json.chars().take(OTHER_CHARS).collect();
                        let size = text::bytes(json.len() as u64);
                        let line = format!("[{size} of another kind] {}", text::one_line(&shown));
                        out.line(format!("{INDENT}{}", style::paint(style::DIM, line)))?;
                    }
                }
            }
        }
    }
    for call in message.tool_calls() {
        let name = style::paint(style::NAME, text::one_line(&call.name));
        let id = style::paint(style::DIM, text::one_line(call.id.as_str()));
        out.line(format!("{INDENT}→ {name} {id}"))?;
        body(out, &call.arguments)?;
    }
    Ok(())
}

/// The speaker's role; one that is unknown here is shown as it was written.
fn role(message: &Message) -> String {
    match message.role() {
        Role::Other(role) => text::one_line(role),
        role => role.as_str().to_owned(),
    }
}

fn body(out: &Output, body: &str) -> Result<(), CliError> {
    let body = text::plain(body);
    body.lines().try_for_each(|line| {
        out.line(if line.is_empty() { String::new() } else { format!("{INDENT}{line}") })
    })
}
