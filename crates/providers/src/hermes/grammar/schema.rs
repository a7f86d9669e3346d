//! The values of a JSON schema, as rules.
//!
//! Types, properties, items, enumerations and references of a schema are enforced; patterns, lengths and
//! ranges are left to whatever validates the arguments. Properties come in the order of the schema. What
//! is not understood allows any value.

use super::rules::{Rules, literal};
use crate::json;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Space between the parts of a value: enough for any layout, but bounded.
const SPACE: &str = r#"(" " | "\n" [ \t]{0,20})?"#;

const STRING: &str = r#""\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]))* "\"""#;

const INTEGER: &str = r#""-"? ("0" | [1-9] [0-9]*)"#;

const NUMBER: &str = r#""-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?"#;

/// Deeper schemas allow any value.
const DEEPEST: usize = 32;

/// Returns the rule for the arguments of a tool: an object, by its schema.
pub(super) fn arguments(schema: &str, rules: &mut Rules) -> String {
    let schema = json::parse_object(schema).unwrap_or_default();
    let (root, any) = (Value::Object(schema), Map::new());
    let mut writer = Writer { rules, root: &root, known: HashMap::new(), direct: Vec::new() };
    match root.as_object().filter(|schema| schema.contains_key("properties")) {
        Some(schema) => writer.object(schema, 0),
        None => writer.object(&any, 0),
    }
}

struct Writer<'w> {
    rules: &'w mut Rules,
    root: &'w Value,
    /// The rules of referenced schemas, by reference.
    known: HashMap<String, String>,
    /// The references that are being followed since something was last written before them: following
    /// one of them again would never reach a value.
    direct: Vec<&'w str>,
}

impl<'w> Writer<'w> {
    /// Returns the rule for a schema's values.
    fn value(&mut self, schema: &'w Value, depth: usize) -> String {
        let Value::Object(object) = schema else { return self.any() };
        if depth > DEEPEST {
            return self.any();
        }
        if let Some(place) = object.get("$ref").and_then(Value::as_str) {
            return self.referred(place, depth);
        }
        if let Some(value) = object.get("const") {
            return self.rules.add(literal(&value.to_string()));
        }
        if let Some(Value::Array(values)) = object.get("enum") {
            return self.one_of(values.iter().map(|value| literal(&value.to_string())).collect());
        }
        if object.contains_key("properties") {
            return self.object(object, depth);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = object.get(key) {
                let rules = schemas.iter().map(|schema| self.value(schema, depth + 1)).collect();
                return self.one_of(rules);
            }
        }
        match object.get("type") {
            Some(Value::String(kind)) => self.kind(kind, object, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let rules = kinds.map(|kind| self.kind(kind, object, depth)).collect();
                self.one_of(rules)
            }
            _ if object.contains_key("items") => self.kind("array", object, depth),
            _ => match object.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
                Some([one]) => self.value(one, depth + 1),
                _ => self.any(),
            },
        }
    }

    fn kind(&mut self, kind: &str, schema: &'w Map<String, Value>, depth: usize) -> String {
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => self.string(),
            "integer" => self.rules.add(INTEGER.to_owned()),
            "number" => self.rules.add(NUMBER.to_owned()),
            "boolean" => self.rules.add(r#""true" | "false""#.to_owned()),
            "null" => self.rules.add(r#""null""#.to_owned()),
            _ => self.any(),
        }
    }

    /// Returns the rule for a reference within the schema; it may refer to itself.
    fn referred(&mut self, place: &'w str, depth: usize) -> String {
        if self.direct.contains(&place) {
            return self.any();
        }
        if let Some(rule) = self.known.get(place) {
            return rule.clone();
        }
        let root = self.root;
        let Some(schema) = place.strip_prefix('#').and_then(|at| root.pointer(at)) else {
            return self.any();
        };
        let name = self.rules.name();
        self.known.insert(place.to_owned(), name.clone());
        self.direct.push(place);
        let body = self.value(schema, depth + 1);
        self.direct.pop();
        self.rules.define(&name, body);
        name
    }

    fn one_of(&mut self, rules: Vec<String>) -> String {
        if rules.is_empty() { self.any() } else { self.rules.add(rules.join(" | ")) }
    }

    fn array(&mut self, schema: &'w Map<String, Value>, depth: usize) -> String {
        let direct = std::mem::take(&mut self.direct);
        let item = match schema.get("items") {
            Some(items) => self.value(items, depth + 1),
            None => self.any(),
        };
        self.direct = direct;
        let is_any = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) == 0;
        let space = self.space();
        let items = format!(r#"{item} ("," {space} {item})*"#);
        let items = if is_any { format!("({items})?") } else { items };
        self.rules.add(format!(r#""[" {space} {items} {space} "]""#))
    }

    fn object(&mut self, schema: &'w Map<String, Value>, depth: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        // The content of a member comes after a brace, so it may refer to anything that is open here.
        let direct = std::mem::take(&mut self.direct);
        let others = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(other) => Some(self.value(other, depth + 1)),
            // If properties are declared, only those are meant.
            None if properties.is_some() => None,
            None => Some(self.any()),
        };
        let required: Vec<&str> = match schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut members = Vec::new();
        for (name, value) in properties.into_iter().flatten() {
            let value = self.value(value, depth + 1);
            members.push((self.member(name, &value), required.contains(&name.as_str())));
        }
        let is_declared = |name: &str| properties.is_some_and(|all| all.contains_key(name));
        for name in required.iter().filter(|name| !is_declared(name)) {
            let any = self.any();
            members.push((self.member(name, &any), true));
        }
        self.direct = direct;
        let space = self.space();
        let members = self.members(&members, others.as_deref());
        self.rules.add(format!(r#""{{" {space} {members} {space} "}}""#))
    }

    fn member(&mut self, name: &str, value: &str) -> String {
        let name = literal(&format!("{}:", json::string(name)));
        format!("{name} {} {value}", self.space())
    }

    /// Returns members in their order, each with whether it is required, and any others after them.
    fn members(&mut self, members: &[(String, bool)], others: Option<&str>) -> String {
        let (space, string) = (self.space(), self.string());
        let comma = format!(r#""," {space}"#);
        // What may follow a member, and what may follow if there is none yet.
        let (mut behind, mut first) = (String::new(), String::new());
        if let Some(value) = others {
            let other = format!(r#"{string} ":" {space} {value}"#);
            behind = self.rules.add(format!("({comma} {other})*"));
            first = format!("({other} {behind})?");
        }
        for (member, is_required) in members.iter().rev() {
            first = match (is_required, first.as_str()) {
                (true, _) => format!("{member} {behind}"),
                (false, "") => format!("({member} {behind})?"),
                (false, first) => self.rules.add(format!("{member} {behind} | {first}")),
            };
            behind = self.rules.add(match is_required {
                true => format!("{comma} {member} {behind}"),
                false => format!("({comma} {member})? {behind}"),
            });
        }
        first
    }

    fn space(&mut self) -> String {
        self.rules.add(SPACE.to_owned())
    }

    fn string(&mut self) -> String {
        self.rules.add(STRING.to_owned())
    }

    /// Returns the rule for any value.
    fn any(&mut self) -> String {
        if let Some(any) = &self.rules.any {
            return any.clone();
        }
        let any = self.rules.name();
        self.rules.any = Some(any.clone());
        let (space, string) = (self.space(), self.string());
        let number = self.rules.add(NUMBER.to_owned());
        let object = self.members(&[], Some(&any));
        self.rules.define(
            &any,
            format!(
                r#""{{" {space} {object} {space} "}}" | "[" {space} ({any} ("," {space} {any})*)? {space} "]" | {string} | {number} | "true" | "false" | "null""#
            ),
        );
        any
    }
}
