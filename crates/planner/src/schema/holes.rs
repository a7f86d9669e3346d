//! Values of an instance that are not known yet.

use crate::PathSegment;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::LocationSegment;
use rustc_hash::{FxHashMap, FxHashSet};

/// A value that is not known yet, at a place of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Hole {
    /// Its depth.
    depth: usize,
    /// Whether its placeholder has the type that it will have.
    is_typed: bool,
    /// The message for a type that does not fit.
    pub(super) origin: String,
}

/// The values of an instance that are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    /// The holes, by the text of their path.
    at: FxHashMap<String, Hole>,
    /// The paths of all values that contain a hole.
    above: FxHashSet<String>,
}

impl Holes {
    /// Adds a hole. `origin` says where its value comes from, for a message.
    pub(crate) fn insert(&mut self, path: &[PathSegment], is_typed: bool, origin: String) {
        let mut text = String::new();
        for segment in path {
            self.above.insert(text.clone());
            text += &segment.to_string();
        }
        self.at.insert(text, Hole { depth: path.len(), is_typed, origin });
    }

    /// Returns the hole that a place is, or is in.
    fn around(&self, path: &[PathSegment]) -> Option<&Hole> {
        let mut text = String::new();
        path.iter().find_map(|segment| {
            text += &segment.to_string();
            self.at.get(&text)
        })
    }

    /// Returns whether a place contains a hole.
    fn are_in(&self, path: &[PathSegment]) -> bool {
        self.above.contains(&path.iter().map(ToString::to_string).collect::<String>())
    }
}

/// Whether an error remains whatever the holes are filled with.
pub(super) enum Verdict<'a> {
    Holds,
    /// The hole will be filled with a value of the wrong type.
    Type(&'a Hole),
    /// It may disappear.
    Depends,
}

pub(super) fn verdict<'a>(
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
    // A condition may have examined any hole.
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

/// Keywords that constrain a value further, depending on its contents or on which schema refers to this
/// one.
pub(super) const DEPENDS: [&str; 8] = [
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedProperties",
    "unevaluatedItems",
];
