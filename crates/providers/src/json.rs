//! Reading JSON that others wrote, leniently, and writing strings with the fewest escapes.

use foldback_core::{Escape, Object, escape_into};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Deeper values are not read: a reader would run out of stack.
const DEEPEST: usize = 128;

/// A text as JSON. Halves of surrogate pairs, which are no characters, do not fail it.
pub(crate) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| repair(serde_json::from_str(text).ok()?, 0))
}

/// A text as a JSON object.
pub(crate) fn parse_object(text: &str) -> Option<Map<String, Value>> {
    match parse(text)? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// A value read part by part, with replacement characters for what is no character.
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

/// A count of tokens; what is none counts as 0.
pub(crate) fn count(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_u64).unwrap_or(0)
}

/// A text member; of anything else, nothing.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The arguments of a call as text: the model's own where it wrote text, the JSON of anything else.
/// A call without arguments has an empty object.
pub(crate) fn arguments(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

/// A text as a JSON string, with its quotes.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, Escape::Minimal, &mut out);
    out.push('"');
    out
}
