//! Detects what a line of an input looks like, before it is read.

use crate::format::{self, Fit, LOGS, Log};
use crate::input::Line;
use crate::record::object_of;
use crate::scan::scan;
use crate::{Error, Place};
use serde_json::value::RawValue;

/// What one line looks like.
pub(crate) enum Looks {
    Log(&'static Log),
    /// A line of such a log that is not a message.
    BesideLog(&'static Log),
    Conversation,
    Foreign,
}

/// Returns what a JSON text looks like; the flag says that it is the first of its input.
pub(crate) fn what_is(text: &str, first: bool) -> Looks {
    if let Some(object) = object_of(text).filter(|object| !format::holds_messages(object)) {
        let fits = |fit: Fit| LOGS.iter().find(|log| (log.fit)(&object, first) == fit);
        if let Some(log) = fits(Fit::Yes) {
            return Looks::Log(log);
        }
        if let Some(log) = fits(Fit::Maybe) {
            return Looks::BesideLog(log);
        }
    }
    if format::knows(text) { Looks::Conversation } else { Looks::Foreign }
}

/// Returns whether a line is the beginning of a JSON value that continues after it.
pub(crate) fn is_begun(line: &Line) -> bool {
    let begin = line.bytes.trim_ascii_start().first();
    matches!(begin, Some(b'{' | b'[')) && !scan(&line.bytes).complete
}

/// Returns the lines of a text that looked like one JSON value because its first line is cut off,
/// but is not one: its second line is a whole object, or a later one is of a known format.
pub(crate) fn lines_of(text: &Line) -> Option<Vec<Line>> {
    let is_json = |bytes: &[u8]| serde_json::from_slice::<&RawValue>(bytes).is_ok();
    if is_json(&text.bytes) {
        return None;
    }
    let mut lines = Vec::new();
    let (mut number, mut offset) = (text.number, text.offset);
    for bytes in text.bytes.split_inclusive(|byte| *byte == b'\n') {
        if !bytes.trim_ascii().is_empty() {
            lines.push(Line { number, offset, bytes: bytes.to_vec() });
        }
        number += 1;
        offset += bytes.len() as u64;
    }
    let mut behind = lines.iter().enumerate().skip(1);
    let are_lines = behind.any(|(at, line)| {
        let bytes = line.bytes.trim_ascii();
        let is_known = || {
            let text = std::str::from_utf8(bytes);
            text.is_ok_and(|text| !matches!(what_is(text, false), Looks::Foreign))
        };
        bytes.starts_with(b"{") && is_json(bytes) && (at == 1 || is_known())
    });
    are_lines.then_some(lines)
}

/// Returns the text of a line, without the white space around it.
pub(crate) fn text_of<'l>(line: &'l Line, place: &Place) -> Result<&'l str, Error> {
    match std::str::from_utf8(&line.bytes) {
        Ok(text) => Ok(text.trim_matches([' ', '\t', '\r', '\n'])),
        Err(error) => {
            let good = error.valid_up_to();
            let breaks = line.bytes.iter().take(good).filter(|b| **b == b'\n').count() as u64;
            let place = Place { file: place.file.clone(), line: place.line + breaks };
            Err(Error::Utf8 { place, offset: line.offset + good as u64 })
        }
    }
}
