//! The canonical form of a request: the same content gives the same bytes.
//!
//! A provider's cache serves a prompt as far as its bytes equal those of the one before. Tools and
//! schemas come from servers and maps that list their parts in any order, so they are sorted: the
//! keys of objects by name, arrays that are sets (`required`) by their members, tools by name.
//! Where the order has a meaning (`enum`, `oneOf`, `prefixItems`, any data), it is kept. Numbers
//! keep their digits.

mod schema;

use foldback_core::{Escape, Object, ToolDefinition, decode_literal, escape_into};
use schema::Place;
use serde_json::value::RawValue;

/// The deepest nesting that is accepted: nobody writes deeper values, and a parser would overflow its stack.
const DEEPEST: usize = 128;

/// An error for a text that has no canonical form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// It is not JSON.
    #[error("this is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Its values are nested too deep.
    #[error("values are nested deeper than {DEEPEST}")]
    Depth,
}

/// Returns JSON data in its canonical form: keys sorted by their bytes, the last value of a repeated key,
/// no white space between parts, strings with the fewest escapes, every array in its order, numbers unchanged.
///
/// # Errors
/// When `json` is not JSON, or is nested deeper than 128 values.
///
/// ```
/// let data = foldback_tool::canonical_json(r#"{"b": [2, 1.50], "a": "caf\u00e9"}"#)?;
/// assert_eq!(data, r#"{"a":"café","b":[2,1.50]}"#);
/// # Ok::<(), foldback_tool::CanonicalError>(())
/// ```
pub fn canonical_json(json: &str) -> Result<String, CanonicalError> {
    write(json, Place::Data)
}

/// Returns a JSON schema in its canonical form: as [`canonical_json`], with arrays that JSON Schema reads as
/// sets (`required`, a list of `type`s, the lists of `dependentRequired`) sorted by their members.
///
/// # Errors
/// As [`canonical_json`].
pub fn canonical_schema(json: &str) -> Result<String, CanonicalError> {
    write(json, Place::Schema)
}

/// Returns the tools sorted by name, with their schemas in canonical form. A schema that is not JSON is left
/// as it is: that fault is reported elsewhere.
#[must_use]
pub fn canonical_tools(tools: &[ToolDefinition]) -> Vec<ToolDefinition> {
    let one = |tool: &ToolDefinition| {
        let parameters = canonical_schema(&tool.parameters);
        let parameters = parameters.unwrap_or_else(|_| tool.parameters.clone());
        ToolDefinition { parameters, ..tool.clone() }
    };
    let mut tools: Vec<_> = tools.iter().map(one).collect();
    let key = |tool: &ToolDefinition| {
        (tool.name.clone(), tool.description.clone(), tool.parameters.clone())
    };
    tools.sort_by_cached_key(key);
    tools
}

/// Writes `text` as a JSON string, with its quotes.
fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, Escape::Minimal, out);
    out.push('"');
}

fn write(json: &str, place: Place) -> Result<String, CanonicalError> {
    let value: &RawValue = serde_json::from_str(json)?;
    let mut out = String::with_capacity(json.len());
    push(value, place, 0, &mut out)?;
    Ok(out)
}

fn push(
    value: &RawValue,
    place: Place,
    depth: usize,
    out: &mut String,
) -> Result<(), CanonicalError> {
    if depth > DEEPEST {
        return Err(CanonicalError::Depth);
    }
    if let Some(object) = Object::of(value) {
        // Keys with half of a surrogate pair are equal once decoded, and have no other form than the
        // one they came in.
        if object.0.iter().any(|(key, _)| key.contains(char::REPLACEMENT_CHARACTER)) {
            out.push_str(value.get());
            return Ok(());
        }
        let mut fields = object.distinct();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        out.push('{');
        for (at, (key, value)) in fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            push_string(key, out);
            out.push(':');
            push(value, place.of_key(key, value), depth + 1, out)?;
        }
        out.push('}');
    } else if let Some(values) = Object::array_of(value) {
        let mut parts = Vec::with_capacity(values.len());
        for value in values {
            let mut part = String::new();
            push(value, place.of_element(), depth + 1, &mut part)?;
            parts.push(part);
        }
        if place == Place::Set {
            parts.sort();
        }
        out.push('[');
        out.push_str(&parts.join(","));
        out.push(']');
    } else {
        push_scalar(value.get(), out);
    }
    Ok(())
}

fn push_scalar(json: &str, out: &mut String) {
    let inside = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inside.map(|literal| (literal, decode_literal(literal))) {
        // Half of a surrogate pair has no other form than the one it came in.
        Some((literal, text)) if text.contains(char::REPLACEMENT_CHARACTER) && literal != text => {
            out.push_str(json);
        }
        Some((_, text)) => push_string(&text, out),
        None => out.push_str(json),
    }
}
