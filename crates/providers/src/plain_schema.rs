//! A schema as chat templates read it: they know single types, and write out a description that is there.

use serde_json::{Map, Value};

/// Deeper schemas stay as they are.
const DEEPEST: usize = 32;

/// The schema with one type in the place of several, and a description for each property.
///
/// It is narrower than the one that it is made of, and never wider: arguments that fit it fit the tool's
/// own. Of several types the first counts that is not `null`, since a property that may be left out needs
/// none.
pub(crate) fn plain_schema(mut schema: Map<String, Value>) -> Map<String, Value> {
    simplify(&mut schema, 0);
    schema
}

fn simplify(schema: &mut Map<String, Value>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    for choice in ["anyOf", "oneOf"] {
        choose(schema, choice);
    }
    if let Some(Value::Array(types)) = schema.get("type") {
        let first = types.iter().find(|name| **name != "null").or(types.first()).cloned();
        if let Some(first) = first {
            schema.insert("type".to_owned(), first);
        }
    }
    let is_single = schema.get("type").is_some_and(|name| name != "null");
    if is_single && let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    // What is left out says it as well.
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

/// Puts the only alternative that is not `null` in the place of a choice.
fn choose(schema: &mut Map<String, Value>, key: &str) {
    let Some(Value::Array(alternatives)) = schema.get(key) else { return };
    let is_null = |schema: &&Value| schema.get("type").is_some_and(|name| name == "null");
    let mut others = alternatives.iter().filter(|schema| !is_null(schema));
    let (Some(Value::Object(only)), None) = (others.next(), others.next()) else { return };
    let only = only.clone();
    schema.shift_remove(key);
    for (key, value) in only {
        schema.entry(key).or_insert(value);
    }
}

/// Gives a property a description, where it has none: its title, or its name in words.
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
            "lines": {"type": ["string", "integer", "null"]},
            "most_hits": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
                          "default": null, "title": "Most Hits"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"城市": {"type": "string"}}}},
            "kind": {"type": ["string", "null"], "enum": ["x", null], "description": ""},
        }});
        let expected = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "boolean", "description": "If so."},
            "lines": {"type": "string", "description": "lines"},
            "most_hits": {"title": "Most Hits", "type": "integer", "minimum": 1, "description": "Most Hits"},
            "list": {"type": "array", "description": "list", "items": {"type": "object", "properties":
                {"城市": {"type": "string", "description": "城市"}}}},
            "kind": {"type": "string", "enum": ["x"], "description": "kind"},
        }});
        assert_eq!(plain(schema), expected);
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
