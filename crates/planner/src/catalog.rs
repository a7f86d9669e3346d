//! The tools that a plan may use.

use crate::PathSegment;
use crate::schema::Schema;
use foldback_tool::ToolSpec;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The tools that a plan may use, by name. Their schemas are compiled once, when they are first
/// needed; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    tools: BTreeMap<String, Arc<Entry>>,
}

/// Arguments that cannot be passed to a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// There is no such tool.
    #[error("{}", unknown_function(.function, .nearest.as_deref()))]
    UnknownFunction {
        /// The requested name.
        function: String,
        /// The name that was probably meant.
        nearest: Option<String>,
    },
    /// The arguments are not a JSON object.
    #[error("the arguments of {function} are not a JSON object: {reason}")]
    NoObject {
        /// The tool.
        function: String,
        /// What they are instead.
        reason: String,
    },
    /// The arguments do not fit the schema.
    #[error("the arguments do not fit {function}: {}", .mismatches.join("; "))]
    Mismatch {
        /// The tool.
        function: String,
        /// Everything that does not fit.
        mismatches: Vec<String>,
    },
    /// The tool's own schema cannot be used.
    #[error("the schema of {function} cannot be used: {reason}")]
    Schema {
        /// The tool.
        function: String,
        /// The reason.
        reason: String,
    },
}

impl Catalog {
    /// Returns the tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.get(name).map(|entry| &entry.tool)
    }

    /// Returns all tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|entry| &entry.tool)
    }

    /// Returns the name that a misspelt one was probably meant to be: the most similar one, if it is
    /// similar enough.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.tools.keys().map(String::as_str))
    }

    /// Checks whether a tool can be called with these arguments, given as JSON text without references.
    ///
    /// # Errors
    /// When there is no such tool, the arguments are not a JSON object or do not fit its schema (all
    /// mismatches are listed), or that schema cannot be used.
    pub fn check_arguments(&self, function: &str, arguments: &str) -> Result<(), ArgumentsError> {
        let function = || function.to_owned();
        let Some(entry) = self.tools.get(&function()) else {
            let nearest = self.nearest(&function()).map(str::to_owned);
            return Err(ArgumentsError::UnknownFunction { function: function(), nearest });
        };
        let no_object = |reason| ArgumentsError::NoObject { function: function(), reason };
        let arguments: Value =
            serde_json::from_str(arguments).map_err(|error| no_object(error.to_string()))?;
        if !arguments.is_object() {
            return Err(no_object(format!("they are {}", crate::schema::kind_of(&arguments))));
        }
        let schema = entry.input().map_err(|reason| ArgumentsError::Schema {
            function: function(),
            reason: reason.to_owned(),
        })?;
        let mismatches = schema.mismatches(&arguments);
        if mismatches.is_empty() {
            return Ok(());
        }
        Err(ArgumentsError::Mismatch { function: function(), mismatches })
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools.get(name).map(AsRef::as_ref)
    }
}

impl FromIterator<ToolSpec> for Catalog {
    /// If several tools have the same name, the last counts.
    fn from_iter<I: IntoIterator<Item = ToolSpec>>(tools: I) -> Self {
        let entry = |tool: ToolSpec| {
            let name = tool.name().to_owned();
            (name, Arc::new(Entry { tool, input: OnceLock::new(), output: OnceLock::new() }))
        };
        Self { tools: tools.into_iter().map(entry).collect() }
    }
}

/// A tool and its compiled schemas.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) tool: ToolSpec,
    input: OnceLock<Result<Schema, String>>,
    output: OnceLock<Result<Schema, String>>,
}

impl Entry {
    /// Returns the schema of the arguments. `Err` says why it cannot be used.
    pub(crate) fn input(&self) -> Result<&Schema, &str> {
        let schema = || Schema::compile(&self.tool.definition.parameters);
        self.input.get_or_init(schema).as_ref().map_err(String::as_str)
    }

    /// Returns whether the schema allows only a string at a place in the arguments.
    pub(crate) fn takes_text_only(&self, path: &[PathSegment]) -> bool {
        self.input().is_ok_and(|schema| schema.takes_text_only(path))
    }

    /// Returns the schema of the tool's answer, if it has one. `Err` says why it cannot be used.
    pub(crate) fn output(&self) -> Option<Result<&Schema, &str>> {
        let output = self.tool.output.as_deref()?;
        let schema = || Schema::compile(output);
        Some(self.output.get_or_init(schema).as_ref().map_err(String::as_str))
    }
}

/// Returns a sentence about a name that no tool has.
pub(crate) fn unknown_function(name: &str, nearest: Option<&str>) -> String {
    let name = crate::excerpt::of(name);
    match nearest {
        Some(nearest) => format!("there is no function `{name}`; did you mean `{nearest}`?"),
        None => format!("there is no function `{name}`"),
    }
}

/// Returns the most similar name, if it is similar enough to be meant: the same letters, or at least
/// half of the characters in place.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(name, names, 0.5)
}

/// Returns the name of which this one is a typing slip: at least four of five characters are in place.
pub(crate) fn misspelt<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(name, names, 0.8)
}

/// Returns the most similar of the names that are similar enough: 1 is identical, 0 has nothing in
/// common.
fn nearest_of<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
    enough: f64,
) -> Option<&'a str> {
    // Comparing takes time in proportion to both lengths. This is the longest tool name that the chat
    // APIs allow.
    const LONGEST: usize = 64;
    let is_long = |name: &str| name.chars().nth(LONGEST).is_some();
    let plain = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    if is_long(name) {
        return None;
    }
    let wanted = plain(name);
    let mut best: Option<(f64, &str)> = None;
    for candidate in names.filter(|candidate| !is_long(candidate)) {
        let alike = strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate));
        if alike >= enough && best.is_none_or(|(most, _)| alike > most) {
            best = Some((alike, candidate));
        }
    }
    best.map(|(_, name)| name)
}
