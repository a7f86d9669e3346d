//! JSON in fewer tokens: without white space, and with objects of the same keys as [rows](table).
//!
//! Every key, string and number keeps its spelling and its place, so that the same value can be restored from what is
//! shown.

mod table;
mod tree;

#[cfg(test)]
mod tests;

use foldback_core::{Estimate, TokenCounter};
use serde_json::value::RawValue;
use std::ops::Range;
use tree::Node;

/// A value of fewer bytes is not worth a note.
const BYTES_LEAST: usize = 80;

/// How many lines that begin like a value are tried.
const TRIES: usize = 4;

/// A text with a JSON value in it that is written in fewer tokens.
#[derive(Debug, PartialEq)]
pub(crate) struct CompactJson {
    /// The text, unchanged except for its value.
    pub(crate) text: String,
    /// Whether objects are written as rows.
    pub(crate) has_rows: bool,
}

/// Returns the note before a text whose value is written like this.
pub(crate) fn note(has_rows: bool) -> &'static str {
    match has_rows {
        true => {
            "JSON with objects as rows: (keys), then values; a value after a key holds for every row"
        }
        false => "JSON without white space",
    }
}

/// Returns `text` with its JSON value in a shorter form. `None` if it holds none, or the form is not shorter.
pub(crate) fn compact_json(text: &str) -> Option<CompactJson> {
    let place = value_in(text)?;
    let json = text.get(place.clone())?;
    let mut compact = String::with_capacity(text.len());
    compact.push_str(text.get(..place.start)?);
    let has_rows = table::write(&Node::read(json)?, &mut compact);
    let is_shorter = compact.len() - place.start < json.len();
    compact.push_str(text.get(place.end..)?);
    (is_shorter && Estimate.count(&compact) < Estimate.count(text))
        .then_some(CompactJson { text: compact, has_rows })
}

/// Returns the place of the first JSON array or object of some length that begins a line.
fn value_in(text: &str) -> Option<Range<usize>> {
    let first = text.len() - text.trim_start().len();
    let begins = text
        .match_indices(['{', '['])
        .map(|(at, _)| at)
        .filter(|at| *at == first || text.get(..*at).is_some_and(|before| before.ends_with('\n')));
    begins.take(TRIES).find_map(|start| {
        let rest = text.get(start..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let value = values.next()?.ok()?;
        (value.get().len() >= BYTES_LEAST).then(|| start..start + value.get().len())
    })
}
