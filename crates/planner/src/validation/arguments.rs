//! Whether arguments with references in them can fit a tool's schema.

use super::Scope;
use crate::catalog::Entry;
use crate::encode;
use crate::schema::{Holes, Part, kind_of};
use crate::{PathSegment, Piece, Reference, Template};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

impl Scope<'_> {
    /// Returns all faults in the arguments of a known function that remain whatever the values of the
    /// references.
    pub(super) fn argument_mismatches(&self, function: &str, arguments: &Template) -> Vec<String> {
        let Some(entry) = self.validator.catalog.entry(function) else { return Vec::new() };
        let Ok(schema) = entry.input() else { return Vec::new() };
        let mut stand_in = StandIn {
            scope: self,
            entry,
            path: Vec::new(),
            holes: Holes::default(),
            unreadable: Vec::new(),
        };
        let members = match arguments {
            Template::Object(members) => members,
            other => {
                let found = kind_of(&stand_in.of(other, false));
                return vec![format!("they are {found}; expected an object")];
            }
        };
        let mut instance = Map::new();
        for (key, value) in members {
            // An argument in a language becomes text of that language.
            let is_typed = !entry.tool.languages.contains_key(key);
            stand_in.path.push(PathSegment::Key(key.clone()));
            instance.insert(key.clone(), stand_in.of(value, is_typed));
            stand_in.path.pop();
        }
        let mut mismatches = stand_in.unreadable;
        mismatches.extend(schema.mismatches_around(&Value::Object(instance), &stand_in.holes));
        mismatches
    }

    /// Returns the references in code arguments whose position accepts no value.
    pub(super) fn refused_values(&self, function: &str, arguments: &Template) -> Vec<String> {
        let tool = self.validator.catalog.get(function);
        let (Some(tool), Template::Object(members)) = (tool, arguments) else { return Vec::new() };
        let spelling = self.plan.form.spelling();
        let mut refused = Vec::new();
        for (argument, value) in members {
            let Some(language) = tool.languages.get(argument) else { continue };
            for (reference, refusal) in encode::refusals(value, *language) {
                let reference = reference.spelled(spelling);
                refused.push(format!("`{reference}` in the argument `{argument}`: {refusal}"));
            }
        }
        refused
    }

    /// Returns the type of a reference's value, if exactly one is possible.
    fn type_of(&self, reference: &Reference) -> Option<&'static str> {
        let Part::Types(types) = self.output_part(reference)? else { return None };
        let numbers = BTreeSet::from(["integer", "number"]);
        match types.len() {
            1 => types.first().copied(),
            _ if types == numbers => Some("number"),
            _ => None,
        }
    }
}

/// Builds a value from a template, with a placeholder of the right type for each reference.
struct StandIn<'a, 'b> {
    scope: &'a Scope<'b>,
    entry: &'a Entry,
    path: Vec<PathSegment>,
    holes: Holes,
    /// Numbers that no tool could read.
    unreadable: Vec<String>,
}

impl StandIn<'_, '_> {
    fn of(&mut self, template: &Template, is_typed: bool) -> Value {
        match template {
            Template::Literal(text) => self.of_literal(text),
            Template::Text(text) => Value::String(text.clone()),
            Template::Whole(reference) => self.of_reference(reference, is_typed),
            Template::Mixed(pieces) => self.of_pieces(pieces),
            Template::Array(values) => {
                let values = values.iter().enumerate();
                let values = values
                    .map(|(place, value)| self.inside(PathSegment::Index(place), value, is_typed));
                Value::Array(values.collect())
            }
            Template::Object(members) => {
                let members = members.iter().map(|(key, value)| {
                    (key.clone(), self.inside(PathSegment::Key(key.clone()), value, is_typed))
                });
                Value::Object(members.collect())
            }
        }
    }

    fn inside(&mut self, segment: PathSegment, value: &Template, is_typed: bool) -> Value {
        self.path.push(segment);
        let value = self.of(value, is_typed);
        self.path.pop();
        value
    }

    fn of_literal(&mut self, text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|_| {
            let shown = crate::excerpt::of(text);
            self.unreadable.push(format!(
                "the number `{shown}` is out of range; expected one of at most {:e}",
                f64::MAX
            ));
            self.holes.insert(&self.path, false, String::new());
            Value::from(0)
        })
    }

    fn of_reference(&mut self, reference: &Reference, is_typed: bool) -> Value {
        let text = reference.spelled(self.scope.plan.form.spelling());
        let name = if is_typed { self.scope.type_of(reference) } else { None };
        // As binding does it.
        let becomes_text =
            name.is_some_and(|name| name != "string") && self.entry.takes_text_only(&self.path);
        let name = if becomes_text { Some("string") } else { name };
        let origin = format!("`{text}` has a value of type {}", name.unwrap_or("any"));
        self.holes.insert(&self.path, name.is_some(), origin);
        match name {
            Some("integer" | "number") => Value::from(0),
            Some("boolean") => Value::Bool(false),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            Some("null") => Value::Null,
            _ => Value::String(text),
        }
    }

    /// Text with references is text, whatever their values.
    fn of_pieces(&mut self, pieces: &[Piece]) -> Value {
        let spelling = self.scope.plan.form.spelling();
        let text: String = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Reference(reference) => reference.spelled(spelling),
            })
            .collect();
        let origin = "a text with a reference in it is always a text; let the reference be the \
                      whole value to keep its type"
            .to_owned();
        self.holes.insert(&self.path, true, origin);
        Value::String(text)
    }
}
