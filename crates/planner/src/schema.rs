//! JSON schemas of tools: what fits, and what stands where.

use crate::{PathSegment, catalog};
use foldback_core::beginning;
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::LocationSegment;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Value,
    validator: Validator,
}

/// A value that is not known yet, at a place of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Hole {
    /// How deep it is.
    depth: usize,
    /// Whether the type of what stands in for it is the type that it will have.
    is_typed: bool,
    /// What to say when that type does not fit.
    origin: String,
}

/// The values of an instance that are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// By the text of their path.
    at: FxHashMap<String, Hole>,
    /// The paths of everything that has a hole in it.
    above: FxHashSet<String>,
}

impl Holes {
    /// Adds one. `origin` says where its value comes from, for a message.
    pub(crate) fn insert(&mut self, path: &[PathSegment], is_typed: bool, origin: String) {
        let mut text = String::new();
        for segment in path {
            self.above.insert(text.clone());
            text += &segment.to_string();
        }
        self.at.insert(text, Hole { depth: path.len(), is_typed, origin });
    }

    /// The hole that a place is, or is in.
    fn around(&self, path: &[PathSegment]) -> Option<&Hole> {
        let mut text = String::new();
        path.iter().find_map(|segment| {
            text += &segment.to_string();
            self.at.get(&text)
        })
    }

    /// Whether a place has a hole in it.
    fn are_in(&self, path: &[PathSegment]) -> bool {
        self.above.contains(&path.iter().map(ToString::to_string).collect::<String>())
    }
}

/// What a schema says about a part of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// It is of one of these types; of any, when empty.
    Types(BTreeSet<&'static str>),
    /// Nothing is said about it, though its neighbours are declared; with a sentence that says so.
    Undeclared(String),
    /// There is no such part, with a sentence that says why.
    Missing(String),
}

impl Schema {
    /// Compiles the text of a schema; a blank text allows everything. What it refers to must be in it.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let source: Value = if text.trim().is_empty() {
            Value::Bool(true)
        } else {
            serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?
        };
        let validator = jsonschema::options().offline().build(&source).map_err(|error| {
            beginning(&format!("{error} (at {})", error.instance_path()), SHOWN).into_owned()
        })?;
        Ok(Self { source, validator })
    }

    /// Everything that does not fit.
    pub(crate) fn mismatches(&self, instance: &Value) -> Vec<String> {
        self.mismatches_around(instance, &Holes::default())
    }

    /// Everything that does not fit, whatever stands in the holes later.
    pub(crate) fn mismatches_around(&self, instance: &Value, holes: &Holes) -> Vec<String> {
        // More than anybody reads.
        const MOST: usize = 50;
        let mut mismatches = Vec::new();
        for error in self.validator.iter_errors(instance) {
            if mismatches.len() == MOST {
                mismatches.push("and more".to_owned());
                break;
            }
            let path = segments(error.instance_path().as_str(), instance);
            match verdict(&path, error.kind(), error.evaluation_path(), holes) {
                Verdict::Depends => continue,
                Verdict::Type(hole) => {
                    let place = place_of(&path);
                    mismatches.push(format!("{place}: {}, and {error}", hole.origin));
                }
                Verdict::Holds => {
                    let place = place_of(&path);
                    let hint = self.hint(&path, error.kind()).unwrap_or_default();
                    mismatches
                        .push(beginning(&format!("{place}: {error}"), SHOWN).into_owned() + &hint);
                }
            }
        }
        mismatches
    }

    /// What the schema says about the part at the end of a path.
    pub(crate) fn part(&self, path: &[PathSegment]) -> Part {
        let mut schemas = vec![&self.source];
        for (depth, segment) in path.iter().enumerate() {
            let mut inner = Vec::new();
            let (mut misspelt, mut undeclared, mut missing) = (None, None, None);
            for schema in self.expanded(&schemas) {
                match child(schema, segment) {
                    Child::Of(schema) => inner.push(schema),
                    Child::Any => return Part::Types(BTreeSet::new()),
                    Child::Undeclared(reason) => undeclared = undeclared.or(Some(reason)),
                    Child::Misspelt(reason) => misspelt = misspelt.or(Some(reason)),
                    Child::Missing(reason) => missing = missing.or(Some(reason)),
                }
            }
            if inner.is_empty() {
                let at = if depth == 0 {
                    "the result".to_owned()
                } else {
                    format!("`{}` of the result", plain_path(&path[..depth]))
                };
                match (misspelt, undeclared, missing) {
                    (Some(reason), _, _) | (None, None, Some(reason)) => {
                        return Part::Missing(format!("{at} {reason}"));
                    }
                    (None, Some(reason), _) => {
                        return Part::Undeclared(format!("{at} {reason}"));
                    }
                    (None, None, None) => {}
                }
            }
            schemas = inner;
        }
        let mut types = BTreeSet::new();
        for schema in self.expanded(&schemas) {
            let own = types_of(schema);
            if own.is_empty() {
                return Part::Types(own);
            }
            types.extend(own);
        }
        Part::Types(types)
    }

    /// Whether it wants a string at a place, and nothing else.
    pub(crate) fn takes_text_only(&self, path: &[PathSegment]) -> bool {
        self.part(path) == Part::Types(BTreeSet::from(["string"]))
    }

    /// The schemas, with those that they refer to or choose from in their place.
    fn expanded<'a>(&'a self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        // More alternatives than anybody writes; a schema may refer to itself.
        const MOST: usize = 256;
        let mut open: Vec<&Value> = schemas.iter().rev().copied().collect();
        let mut expanded = Vec::new();
        let mut looked_at = 0;
        while let Some(schema) = open.pop() {
            looked_at += 1;
            if looked_at > MOST {
                return vec![&Value::Bool(true)];
            }
            let Some(object) = schema.as_object() else {
                expanded.push(schema);
                continue;
            };
            let before = open.len();
            for key in ["allOf", "oneOf", "anyOf"] {
                let choices = object.get(key).and_then(Value::as_array);
                open.extend(choices.into_iter().flatten().rev());
            }
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                match reference.strip_prefix('#').and_then(|at| self.source.pointer(at)) {
                    Some(target) => open.push(target),
                    None => return vec![&Value::Bool(true)],
                }
            }
            const SAYS_MORE: [&str; 5] =
                ["properties", "patternProperties", "additionalProperties", "items", "prefixItems"];
            let says = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
            if open.len() == before || says(&SAYS_MORE) || says(&DEPENDS) {
                expanded.push(schema);
            }
        }
        expanded
    }

    /// The name that was meant, where one is unknown.
    fn hint(&self, path: &[PathSegment], kind: &Kind) -> Option<String> {
        let (Kind::AdditionalProperties { unexpected }
        | Kind::UnevaluatedProperties { unexpected }) = kind
        else {
            return None;
        };
        let mut schemas = vec![&self.source];
        for segment in path {
            schemas = self
                .expanded(&schemas)
                .into_iter()
                .filter_map(|schema| match child(schema, segment) {
                    Child::Of(schema) => Some(schema),
                    _ => None,
                })
                .collect();
        }
        let schemas = self.expanded(&schemas);
        let known: Vec<&str> = schemas.iter().flat_map(|schema| property_names(schema)).collect();
        let meant = unexpected.iter().filter_map(|name| {
            let nearest = catalog::nearest(name, known.iter().copied())?;
            Some(format!("; instead of `{}`, did you mean `{nearest}`?", crate::excerpt::of(name)))
        });
        Some(meant.collect())
    }
}

/// What kind of JSON value it is, for a sentence.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Whether an error is one whatever stands in the holes.
enum Verdict<'a> {
    Holds,
    /// What will stand in the hole is of the wrong type.
    Type(&'a Hole),
    /// It may go away.
    Depends,
}

fn verdict<'a>(
    path: &[PathSegment],
    kind: &Kind,
    evaluation: &jsonschema::paths::Location,
    holes: &'a Holes,
) -> Verdict<'a> {
    if let Some(hole) = holes.around(path) {
        let is_at = path.len() == hole.depth;
        let is_type = matches!(kind, Kind::Type { .. }) && hole.is_typed && is_at;
        return if is_type { Verdict::Type(hole) } else { Verdict::Depends };
    }
    // A condition may have looked at any hole.
    let is_conditional = !holes.at.is_empty()
        && evaluation.iter().any(
            |part| matches!(part, LocationSegment::Property(name) if name == "then" || name == "else"),
        );
    let looks_inside = !matches!(
        kind,
        Kind::AdditionalItems { .. }
            | Kind::AdditionalProperties { .. }
            | Kind::FalseSchema
            | Kind::MaxItems { .. }
            | Kind::MaxProperties { .. }
            | Kind::MinItems { .. }
            | Kind::MinProperties { .. }
            | Kind::PropertyNames { .. }
            | Kind::Required { .. }
            | Kind::Type { .. }
    );
    if is_conditional || (looks_inside && holes.are_in(path)) {
        Verdict::Depends
    } else {
        Verdict::Holds
    }
}

/// Keywords that say more about a value, depending on what is in it or on who refers to the schema.
const DEPENDS: [&str; 8] = [
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// What a schema without references or choices says about a part of an instance.
enum Child<'a> {
    Of(&'a Value),
    Any,
    Undeclared(String),
    /// It may be there, but another is surely meant.
    Misspelt(String),
    Missing(String),
}

fn child<'a>(schema: &'a Value, segment: &PathSegment) -> Child<'a> {
    let Some(object) = schema.as_object() else {
        return if schema == &Value::Bool(false) {
            Child::Missing("is never there".to_owned())
        } else {
            Child::Any
        };
    };
    let types = types_of(schema);
    let may_be = |kind| types.is_empty() || types.contains(kind);
    let is_not = || {
        let types: Vec<&str> = types.iter().copied().collect();
        Child::Missing(format!("is {}, it has no `{}`", types.join(" or "), plain_segment(segment)))
    };
    match segment {
        PathSegment::Key(key) if may_be("object") => property(object, key),
        PathSegment::Key(key) => match key.parse() {
            // A key of digits is a place where the value is an array.
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
        // What is not declared is a guess, where anything is declared.
        None if !names.is_empty() => {}
        None | Some(Value::Bool(true)) => return Child::Any,
        Some(schema) => return Child::Of(schema),
    }
    let (key_text, listed) = (crate::excerpt::of(key), some(&names).join("`, `"));
    let likely = |nearest| format!("has no `{key_text}`; did you mean `{nearest}`?");
    if !is_closed {
        return match catalog::misspelt(key, names.iter().copied()) {
            Some(nearest) => Child::Misspelt(likely(nearest)),
            None => {
                Child::Undeclared(format!("is not said to have `{key_text}`; it has `{listed}`"))
            }
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
        return Child::Missing(format!("has at most {most} items, there is no `[{place}]`"));
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

/// The types that a schema without references or choices allows; none when it does not say.
fn types_of(schema: &Value) -> BTreeSet<&'static str> {
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

fn property_names(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str)
}

/// At most twelve names, for a sentence.
fn some<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().take(12).collect()
}

/// The path that a JSON pointer takes through an instance: digits are a place in an array, and a key
/// of an object.
fn segments(pointer: &str, instance: &Value) -> Vec<PathSegment> {
    let mut value = Some(instance);
    let own = pointer.split('/').skip(1).map(|token| {
        let key = token.replace("~1", "/").replace("~0", "~");
        match (value, key.parse()) {
            (Some(Value::Array(values)), Ok(place)) => {
                value = values.get::<usize>(place);
                PathSegment::Index(place)
            }
            _ => {
                value = value.and_then(|value| value.get(&key));
                PathSegment::Key(key)
            }
        }
    });
    own.collect()
}

fn place_of(path: &[PathSegment]) -> String {
    if path.is_empty() {
        "the arguments".to_owned()
    } else {
        format!("argument `{}`", plain_path(path))
    }
}

/// A path without the dot that it would begin with.
fn plain_path(path: &[PathSegment]) -> String {
    let text: String = path.iter().map(ToString::to_string).collect();
    crate::excerpt::of(text.strip_prefix('.').unwrap_or(&text))
}

fn plain_segment(segment: &PathSegment) -> String {
    plain_path(std::slice::from_ref(segment))
}

/// How many characters of a message are shown: it may hold a long value.
const SHOWN: usize = 400;
