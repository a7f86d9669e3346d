//! What a schema says about a part of an instance.

use super::holes::DEPENDS;
use super::place::plain_segment;
use super::some;
use crate::{PathSegment, catalog};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What a schema says about a part of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// It has one of these types, or any type if the list is empty.
    Types(BTreeSet<&'static str>),
    /// Nothing is said about it, although its neighbours are declared; with a sentence that says so.
    Undeclared(String),
    /// There is no such part, with a sentence that says why.
    Missing(String),
}

/// Returns what a schema without references or choices says about a part of an instance.
pub(super) enum Child<'a> {
    Of(&'a Value),
    Any,
    Undeclared(String),
    /// It may exist, but another is surely meant.
    Misspelt(String),
    Missing(String),
}

pub(super) fn child<'a>(schema: &'a Value, segment: &PathSegment) -> Child<'a> {
    let Some(object) = schema.as_object() else {
        return if schema == &Value::Bool(false) {
            Child::Missing("never exists".to_owned())
        } else {
            Child::Any
        };
    };
    let types = types_of(schema);
    let may_be = |kind| types.is_empty() || types.contains(kind);
    let is_not = || {
        let types: Vec<&str> = types.iter().copied().collect();
        Child::Missing(format!(
            "is {}, so it has no `{}`",
            types.join(" or "),
            plain_segment(segment)
        ))
    };
    match segment {
        PathSegment::Key(key) if may_be("object") => property(object, key),
        PathSegment::Key(key) => match key.parse() {
            // A key of digits is an index if the value is an array.
            Ok(place) if may_be("array") => item(object, place),
            _ => is_not(),
        },
        PathSegment::Index(place) if may_be("array") => item(object, *place),
        PathSegment::Index(_) => is_not(),
    }
}

fn property<'a>(schema: &'a Map<String, Value>, key: &str) -> Child<'a> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
        return Child::Of(schema);
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if schema.contains_key("patternProperties") || (depends(schema) && !is_closed) {
        return Child::Any;
    }
    let names: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {}
        // If anything is declared, a name that is not declared is a guess.
        None if !names.is_empty() => {}
        None | Some(Value::Bool(true)) => return Child::Any,
        Some(schema) => return Child::Of(schema),
    }
    let (key_text, listed) = (crate::excerpt::of(key), some(&names).join("`, `"));
    let likely = |nearest| format!("has no `{key_text}`; did you mean `{nearest}`?");
    if !is_closed {
        return match catalog::misspelt(key, names.iter().copied()) {
            Some(nearest) => Child::Misspelt(likely(nearest)),
            None => Child::Undeclared(format!("does not declare `{key_text}`; it has `{listed}`")),
        };
    }
    Child::Missing(match catalog::nearest(key, names.iter().copied()) {
        Some(nearest) => likely(nearest),
        None if names.is_empty() => format!("has no `{key_text}`"),
        None => format!("has no `{key_text}`; it has `{listed}`"),
    })
}

fn depends(schema: &Map<String, Value>) -> bool {
    DEPENDS.iter().any(|key| schema.contains_key(*key))
}

fn item(schema: &Map<String, Value>, place: usize) -> Child<'_> {
    let most = schema.get("maxItems").and_then(Value::as_u64);
    if let Some(most) = most.filter(|most| usize::try_from(*most).is_ok_and(|most| place >= most)) {
        return Child::Missing(format!("has at most {most} items, so there is no `[{place}]`"));
    }
    let list = |key| schema.get(key).and_then(Value::as_array);
    let first = list("prefixItems").or_else(|| list("items"));
    if let Some(schema) = first.and_then(|items| items.get(place)) {
        return Child::Of(schema);
    }
    let rest = if list("items").is_some() { "additionalItems" } else { "items" };
    match schema.get(rest) {
        _ if depends(schema) => Child::Any,
        Some(Value::Bool(false)) => Child::Missing(format!("has no item `[{place}]`")),
        Some(schema) => Child::Of(schema),
        None => Child::Any,
    }
}

/// Returns the types that a schema without references or choices allows; none if it does not say.
pub(super) fn types_of(schema: &Value) -> BTreeSet<&'static str> {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let known = |name: &str| TYPES.iter().copied().find(|known| *known == name);
    let of_value = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    match (schema.get("type"), schema.get("const"), schema.get("enum")) {
        (Some(Value::String(name)), _, _) => known(name).into_iter().collect(),
        (Some(Value::Array(names)), _, _) => {
            names.iter().filter_map(|name| known(name.as_str()?)).collect()
        }
        (_, Some(value), _) => BTreeSet::from([of_value(value)]),
        (_, _, Some(Value::Array(values))) => values.iter().map(of_value).collect(),
        _ => BTreeSet::new(),
    }
}

pub(super) fn property_names(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str)
}
