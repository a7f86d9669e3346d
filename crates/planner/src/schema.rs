//! JSON schemas of tools: which values fit, and what a part of a value may be.

mod child;
mod holes;
mod place;

pub(crate) use child::Part;
pub(crate) use holes::Holes;

use crate::{PathSegment, catalog};
use child::{Child, child, property_names, types_of};
use foldback_core::beginning;
use holes::{DEPENDS, Verdict, verdict};
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use place::{place_of, plain_path, segments};
use serde_json::Value;
use std::collections::BTreeSet;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Value,
    validator: Validator,
}

impl Schema {
    /// Compiles the text of a schema; a blank text allows everything. All `$ref`s must resolve within
    /// it.
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

    /// Returns all mismatches.
    pub(crate) fn mismatches(&self, instance: &Value) -> Vec<String> {
        self.mismatches_around(instance, &Holes::default())
    }

    /// Returns all mismatches that remain whatever the holes are filled with later.
    pub(crate) fn mismatches_around(&self, instance: &Value, holes: &Holes) -> Vec<String> {
        // More than anyone reads.
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

    /// Returns what the schema says about the part at the end of a path.
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

    /// Returns whether it allows only a string at a place.
    pub(crate) fn takes_text_only(&self, path: &[PathSegment]) -> bool {
        self.part(path) == Part::Types(BTreeSet::from(["string"]))
    }

    /// Returns the schemas, with references and alternatives expanded.
    fn expanded<'a>(&'a self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        // More alternatives than anyone writes; a schema may refer to itself.
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

    /// Returns the name that was probably meant, if a name is unknown.
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

/// Returns the kind of a JSON value, for a sentence.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a Boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns at most twelve names, for a sentence.
fn some<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().take(12).collect()
}

/// The number of characters of a message that are shown: it may contain a long value.
const SHOWN: usize = 400;
