//! The lines of an input whose lines belong together.

use crate::input::Line;
use crate::looks::text_of;
use crate::object::Object;
use crate::scan::{check_depth, json_error};
use crate::{Error, Limits, Place};
use serde_json::value::RawValue;

/// One line of a session log, or the whole of a log that is one JSON value: valid JSON, without the
/// white space around it.
#[derive(Clone)]
pub(crate) struct Record {
    /// The number of its first line, counted from 1.
    pub(crate) line: u64,
    /// Its exact text.
    pub(crate) text: String,
}

/// Raw data is nested some levels deeper in the conversation than in its source, and must still be
/// readable.
pub(crate) const ROOM: usize = 8;

impl Record {
    /// Returns the record on a line.
    ///
    /// # Errors
    /// When the line is not UTF-8, not JSON, or nested too deeply.
    pub(crate) fn of(line: &Line, place: &Place, limits: &Limits) -> Result<Self, Error> {
        let text = json_of(line, place, &limits.without_depth(ROOM))?;
        Ok(Self { line: line.number, text: text.to_owned() })
    }

    /// Returns its fields; `None` if it is not an object.
    pub(crate) fn object(&self) -> Option<Object<'_>> {
        object_of(&self.text)
    }
}

/// Returns the JSON text of a line.
///
/// # Errors
/// When the line is not UTF-8, not JSON, or nested too deeply.
pub(crate) fn json_of<'l>(
    line: &'l Line,
    place: &Place,
    limits: &Limits,
) -> Result<&'l str, Error> {
    let text = text_of(line, place)?;
    check_depth(text, place, limits)?;
    serde_json::from_str::<&RawValue>(text).map_err(|e| json_error(&e, text, place))?;
    Ok(text)
}

/// Returns the fields of a JSON text that is an object.
pub(crate) fn object_of(text: &str) -> Option<Object<'_>> {
    if text.starts_with('{') { serde_json::from_str(text).ok() } else { None }
}
