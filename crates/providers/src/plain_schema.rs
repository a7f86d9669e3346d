//! Schemas that chat templates can read: they know single types, and always print a description.

use crate::json::parse_object;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Deeper schemas stay as they are.
const DEEPEST: usize = 32;

/// The keywords of alternatives.
const CHOICES: [&str; 2] = ["anyOf", "oneOf"];

/// Returns the schema with one type in place of several, and a description for each property.
///
/// Arguments that fit it fit the tool's own, once [`with_nulls`] has added what they leave out: a property that
/// may be `null` may be left out here, although the tool's own schema requires it. Of several types, the first
/// that a value of `enum` has is used; otherwise text, if none of them is a list or an object, because text can
/// express numbers as well.
pub(crate) fn plain_schema(mut schema: Map<String, Value>) -> Map<String, Value> {
    simplify(&mut schema, 0);
    schema
}

/// Returns arguments with `null` for each property that a tool's own schema requires and allows to be
/// `null`; `None` if there is no such property.
pub(crate) fn with_nulls(schema: &Map<String, Value>, arguments: &str) -> Option<String> {
    let mut arguments = Value::Object(parse_object(arguments)?);
    write_nulls(schema, schema, &mut arguments, 0).then(|| arguments.to_string())
}

/// Returns whether anything was written.
fn write_nulls(
    root: &Map<String, Value>,
    schema: &Map<String, Value>,
    value: &mut Value,
    depth: usize,
) -> bool {
    if depth > DEEPEST {
        return false;
    }
    let schema = meant(root, schema);
    let mut is_written = false;
    match value {
        Value::Array(items) => {
            let Some(Value::Object(schema)) = schema.get("items") else { return false };
            for item in items {
                is_written |= write_nulls(root, schema, item, depth + 1);
            }
        }
        Value::Object(members) => {
            let Some(Value::Object(properties)) = schema.get("properties") else { return false };
            let required = schema.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
            for (name, property) in properties {
                let Value::Object(property) = property else { continue };
                if let Some(member) = members.get_mut(name) {
                    is_written |= write_nulls(root, property, member, depth + 1);
                } else if is_required(name) && is_nullable(property) {
                    members.insert(name.clone(), Value::Null);
                    is_written = true;
                }
            }
        }
        _ => {}
    }
    is_written
}

/// Returns the schema that a reference leads to, or that a choice offers besides `null`.
fn meant<'s>(
    root: &'s Map<String, Value>,
    schema: &'s Map<String, Value>,
) -> &'s Map<String, Value> {
    let target = |at: &str| {
        let mut parts = at.strip_prefix("#/")?.split('/');
        let first = root.get(parts.next()?)?;
        parts.try_fold(first, |inner, part| inner.get(part))?.as_object()
    };
    let mut schema = schema;
    for _ in 0..DEEPEST {
        let at = schema.get("$ref").and_then(Value::as_str);
        let next = at.and_then(target).or_else(|| CHOICES.iter().find_map(|key| only(schema, key)));
        let Some(next) = next else { break };
        schema = next;
    }
    schema
}

/// Returns whether a property may be `null`, and something else.
fn is_nullable(schema: &Map<String, Value>) -> bool {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array).filter(|all| all.len() > 1);
    let by_type = listed("type").is_some_and(|types| types.iter().any(|name| name == "null"));
    let by_choice =
        CHOICES.iter().any(|key| listed(key).is_some_and(|all| all.iter().any(is_null)));
    let by_values = schema.get("type").is_none()
        && listed("enum").is_some_and(|all| all.contains(&Value::Null));
    by_type || by_choice || by_values
}

fn simplify(schema: &mut Map<String, Value>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    for choice in CHOICES {
        choose(schema, choice);
    }
    let_be_left_out(schema);
    single_type(schema);
    // Leaving it out means the same.
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            if let Value::Object(property) = property {
                simplify(property, depth + 1);
                describe(name, property);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            simplify(inner, depth + 1);
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(inner)) = schema.get_mut(key) {
            inner.iter_mut().filter_map(Value::as_object_mut).for_each(|inner| {
                simplify(inner, depth + 1);
            });
        }
    }
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            inner.values_mut().filter_map(Value::as_object_mut).for_each(|inner| {
                simplify(inner, depth + 1);
            });
        }
    }
}

/// Removes the properties that may be `null` from the required ones.
fn let_be_left_out(schema: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    let nullable =
        properties.iter().filter(|(_, property)| property.as_object().is_some_and(is_nullable));
    let nullable: BTreeSet<String> = nullable.map(|(name, _)| name.clone()).collect();
    let Some(Value::Array(required)) = schema.get_mut("required") else { return };
    required.retain(|name| !name.as_str().is_some_and(|name| nullable.contains(name)));
}

/// Chooses one of several types, and the values that have it.
fn single_type(schema: &mut Map<String, Value>) {
    let values = schema.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let Some(Value::Array(types)) = schema.get("type") {
        let fits =
            |name: &&Value| values.is_empty() || values.iter().any(|value| has_type(value, name));
        let others = || types.iter().filter(|name| **name != "null");
        let is_plain = others().all(|name| name != "array" && name != "object");
        let text = others().find(|name| is_plain && *name == "string" && fits(name));
        let chosen = text.or_else(|| others().find(fits)).or_else(|| types.iter().find(fits));
        if let Some(chosen) = chosen.or_else(|| others().next()).cloned() {
            schema.insert("type".to_owned(), chosen);
        }
    }
    let of_type = schema.get("type").filter(|name| name.is_string()).cloned();
    let Some(Value::Array(values)) = schema.get_mut("enum") else { return };
    let fits =
        |value: &Value| of_type.as_ref().map_or(!value.is_null(), |name| has_type(value, name));
    // An empty list of values would allow nothing.
    if values.iter().any(fits) {
        values.retain(fits);
    }
}

/// Returns whether a value has the type of that name.
fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    }
}

/// Replaces a choice with its only alternative that is not `null`.
fn choose(schema: &mut Map<String, Value>, key: &str) {
    let Some(only) = only(schema, key).cloned() else { return };
    schema.shift_remove(key);
    for (key, value) in only {
        schema.entry(key).or_insert(value);
    }
}

/// Returns the only alternative of a choice that is not `null`.
fn only<'s>(schema: &'s Map<String, Value>, key: &str) -> Option<&'s Map<String, Value>> {
    let mut others = schema.get(key)?.as_array()?.iter().filter(|schema| !is_null(schema));
    let only = others.next()?.as_object();
    only.filter(|_| others.next().is_none())
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "null")
}

/// Gives a property a description if it has none: its title, or its name in words.
fn describe(name: &str, property: &mut Map<String, Value>) {
    let has_text =
        |key: &str| property.get(key).and_then(Value::as_str).is_some_and(|t| !t.is_empty());
    if has_text("description") {
        return;
    }
    let told = match property.get("title").and_then(Value::as_str) {
        Some(title) if has_text("title") => title.to_owned(),
        _ => name.replace(['_', '-'], " "),
    };
    property.insert("description".to_owned(), Value::String(told));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(schema: Value) -> Value {
        let Value::Object(schema) = schema else { panic!("{schema}") };
        Value::Object(plain_schema(schema))
    }

    #[test]
    fn types_are_single_and_properties_described() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": ["boolean", "null"], "description": "If so."},
            "lines": {"type": ["integer", "null", "string"]},
            "paths": {"type": ["array", "string"]},
            "most_hits": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
                          "default": null, "title": "Most Hits"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"城市": {"type": "string"}}}},
            "kind": {"type": ["string", "null"], "enum": ["x", null], "description": ""},
        }});
        let expected = json!({"type": "object", "required": [], "properties": {
            "a": {"type": "boolean", "description": "If so."},
            "lines": {"type": "string", "description": "lines"},
            "paths": {"type": "array", "description": "paths"},
            "most_hits": {"title": "Most Hits", "type": "integer", "minimum": 1, "description": "Most Hits"},
            "list": {"type": "array", "description": "list", "items": {"type": "object", "properties":
                {"城市": {"type": "string", "description": "城市"}}}},
            "kind": {"type": "string", "enum": ["x"], "description": "kind"},
        }});
        assert_eq!(plain(schema), expected);
    }

    /// As in strict schemas: every property is required, and `null` means that it is left out.
    #[test]
    fn what_may_be_null_may_be_left_out() {
        let own = json!({"type": "object", "required": ["city", "unit", "days", "part"], "properties": {
            "city": {"type": "string"},
            "unit": {"type": ["string", "null"], "enum": ["C", "F", null]},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "part": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]},
        }, "$defs": {"part": {"type": "object", "required": ["of"],
            "properties": {"of": {"type": ["string", "null"]}}}}});
        let plain = plain(own.clone());
        assert_eq!(plain["required"], json!(["city"]));
        assert_eq!(plain["$defs"]["part"]["required"], json!([]));
        let own = own.as_object().unwrap();
        let written = with_nulls(own, r#"{"city": "上海", "part": {}}"#).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&written).unwrap(),
            json!({"city": "上海", "part": {"of": null}, "unit": null, "days": null})
        );
        let whole = r#"{"city": "x", "unit": "C", "days": 1, "part": {"of": null}}"#;
        assert_eq!(with_nulls(own, whole), None, "what is whole stays as it was written");
        assert_eq!(with_nulls(own, "no JSON"), None);
    }

    #[test]
    fn values_choose_the_type() {
        for (schema, expected) in [
            (
                json!({"type": ["string", "integer", "null"], "enum": [1, 2, null]}),
                json!({"type": "integer", "enum": [1, 2]}),
            ),
            (
                json!({"type": ["string", "integer"], "enum": ["a", 1]}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                json!({"type": ["string", "null"], "enum": [null]}),
                json!({"type": "null", "enum": [null]}),
            ),
            (json!({"enum": ["a", null]}), json!({"enum": ["a"]})),
            (json!({"type": "string", "enum": [null]}), json!({"type": "string", "enum": [null]})),
        ] {
            assert_eq!(plain(schema), expected);
        }
    }

    #[test]
    fn what_is_plain_stays() {
        for schema in [
            json!({"type": "object", "properties": {"n": {"type": "integer", "description": "N."}}}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"type": ["null"], "enum": [null]}),
            json!({}),
        ] {
            let expected = match schema.get("type") {
                Some(Value::Array(_)) => json!({"type": "null", "enum": [null]}),
                _ => schema.clone(),
            };
            assert_eq!(plain(schema), expected);
        }
    }
}
