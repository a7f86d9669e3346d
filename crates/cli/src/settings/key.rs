//! The keys of settings: `agent.max_steps`, and `models.NAME.base_url` for further models.

use super::Settings;
use figment::value::{Dict, Value};
use foldback_providers::{ModelSettings, ModelSources};
use std::fmt;

/// The key of a setting, part by part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(super) Vec<String>);

/// The section whose tables are models, by names of the user's choice.
const MODELS: &str = "models";

/// Replaces a name of the user's choice.
pub(super) const NAME: &str = "NAME";

/// The prefix of the environment variables of settings.
const PREFIX: &str = "FOLDBACK";

/// The environment variables that do not follow the rule, besides those of a model.
const VARIABLES: [(&str, &str); 4] = [
    ("memory.store", "FOLDBACK_STORE"),
    ("memory.payloads", "FOLDBACK_PAYLOADS"),
    ("search.number_of_initial_queries", "FOLDBACK_NUMBER_OF_INITIAL_QUERIES"),
    ("search.max_research_loops", "FOLDBACK_MAX_RESEARCH_LOOPS"),
];

impl Key {
    /// Reads a key.
    pub(super) fn new(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// Its last part.
    pub(super) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    fn section(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Whether it is not a setting itself, but a part of the value of one.
    pub(super) fn is_below_settings(&self) -> bool {
        self.0.len() > if self.is_of_named_model() { 3 } else { 2 }
    }

    /// Whether it is a setting of a named model.
    pub(super) fn is_of_named_model(&self) -> bool {
        self.section() == MODELS
    }

    /// The environment variable that sets it.
    pub(super) fn variable(&self) -> Option<String> {
        if self.is_of_named_model() {
            return None;
        }
        let key = self.to_string();
        if let Some((_, variable)) = VARIABLES.iter().find(|(of, _)| *of == key) {
            return Some((*variable).to_owned());
        }
        let of_model = key.strip_prefix("model.").and_then(ModelSources::variable_of);
        let by_rule = || format!("{PREFIX}_{}", self.0.join("_").to_uppercase());
        Some(of_model.map_or_else(by_rule, str::to_owned))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// The values of a table by their keys: those of its sections, and of each named model. A table below them is one
/// value.
pub(super) fn values(table: Dict) -> Vec<(Key, Value)> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<String>, Dict)> = vec![(Vec::new(), table)];
    while let Some((path, table)) = open.pop() {
        for (name, value) in table {
            let path = [path.clone(), vec![name]].concat();
            let depth = if path[0] == MODELS { 3 } else { 2 };
            match value {
                Value::Dict(_, inner) if path.len() < depth => open.push((path, inner)),
                value => found.push((Key(path), value)),
            }
        }
    }
    found
}

/// A table with this value at its key.
pub(super) fn with_value(table: &mut Dict, key: &[String], value: Value) {
    match key {
        [] => {}
        [last] => drop(table.insert(last.clone(), value)),
        [first, rest @ ..] => {
            let inner = table.entry(first.clone()).or_insert_with(|| Value::from(Dict::new()));
            if let Value::Dict(_, inner) = inner {
                with_value(inner, rest, value);
            }
        }
    }
}

/// Every setting with its built-in value. The models that a user may name are represented by one, `NAME`.
pub(super) fn built_in() -> Vec<(Key, Value)> {
    let models = [(NAME.to_owned(), ModelSettings::default())].into();
    let settings = Settings { models, ..Settings::default() };
    match Value::serialize(&settings) {
        Ok(Value::Dict(_, table)) => values(table),
        _ => Vec::new(),
    }
}

/// The key or section that was probably meant by an unknown one.
pub(super) fn nearest(unknown: &Key) -> Option<String> {
    if let [section] = &unknown.0[..] {
        let built_in = built_in();
        let sections = built_in.iter().map(|(key, _)| key.section());
        let alike = |name: &&str| strsim::jaro_winkler(name, section);
        let best = sections.max_by(|one, other| alike(one).total_cmp(&alike(other)));
        return best.filter(|best| alike(best) > ALIKE).map(|best| format!("[{best}]"));
    }
    let mut known: Vec<Key> = built_in().into_iter().map(|(key, _)| key).collect();
    if let [section, name, ..] = &unknown.0[..]
        && section == MODELS
    {
        for key in known.iter_mut().filter(|key| key.is_of_named_model()) {
            key.0[1].clone_from(name);
        }
    }
    known.sort();
    // Prefer a right name in the wrong section to a misspelt one.
    let elsewhere = known.iter().find(|key| key.last() == unknown.last() && key.0[0] != MODELS);
    let alike = |key: &&Key| {
        let section = strsim::jaro_winkler(key.section(), unknown.section());
        (section + 2.0 * strsim::jaro_winkler(key.last(), unknown.last())) / 3.0
    };
    let best = known.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    elsewhere.or(best.filter(|best| alike(best) > ALIKE)).map(ToString::to_string)
}

/// Names that are less alike than this are different words.
pub(super) const ALIKE: f64 = 0.8;
