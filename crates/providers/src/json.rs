//! Reads JSON from others leniently, and writes strings with the fewest escapes.

use foldback_core::{Escape, Object, escape_into};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Deeper values are not read: a reader would overflow the stack.
const DEEPEST: usize = 128;

/// Parses a text as JSON. Unpaired surrogates, which are not characters, are tolerated.
pub(crate) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| repair(serde_json::from_str(text).ok()?, 0))
}

/// Parses a text as a JSON object.
pub(crate) fn parse_object(text: &str) -> Option<Map<String, Value>> {
    match parse(text)? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Reads a value part by part, with replacement characters for what is not a character.
fn repair(value: &RawValue, depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    if let Ok(value) = serde_json::from_str(value.get()) {
        return Some(value);
    }
    if let Some(text) = Object::text_of(value) {
        return Some(Value::String(text.into_owned()));
    }
    if let Some(object) = Object::of(value) {
        let members = object.distinct().into_iter();
        return members
            .map(|(key, value)| Some((key.into_owned(), repair(value, depth + 1)?)))
            .collect::<Option<Map<_, _>>>()
            .map(Value::Object);
    }
    let items = Object::array_of(value)?.into_iter();
    items.map(|item| repair(item, depth + 1)).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// Returns a count of tokens; anything else counts as 0.
pub(crate) fn count(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_u64).unwrap_or(0)
}

/// Returns a text member; of anything else, an empty text.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the arguments of a call as text: the model's own if it wrote text, otherwise the JSON. A
/// call without arguments has an empty object.
pub(crate) fn arguments(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

/// Returns a text as a JSON string, with its quotes.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, Escape::Minimal, &mut out);
    out.push('"');
    out
}
