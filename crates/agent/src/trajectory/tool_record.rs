//! A tool as a record holds it.

use foldback_core::ToolDefinition;
use foldback_tool::{Concurrency, Effect, Language, ToolSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tool, with all that plans know about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// The name to call it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments, as text.
    pub parameters: String,
    /// The JSON schema of its answers, as text, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The server that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The argument that a bare text is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// The languages of arguments that are code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub languages: BTreeMap<String, LanguageRecord>,
    /// The effect of running it on the world.
    #[serde(with = "EffectRecord")]
    pub effect: Effect,
    /// What may run beside it.
    #[serde(with = "ConcurrencyRecord")]
    pub concurrency: Concurrency,
    /// Whether it is given the whole context.
    #[serde(default)]
    pub global_context: bool,
    /// Whether its answers say nothing about their own failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_data: bool,
}

/// A language, in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LanguageRecord(#[serde(with = "LanguageNames")] pub Language);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Language", rename_all = "snake_case")]
enum LanguageNames {
    Python,
    Shell,
    Sql,
    Json,
    Raw,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Effect", rename_all = "snake_case")]
enum EffectRecord {
    ReadOnly,
    Idempotent,
    Effectful,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Concurrency", rename_all = "snake_case")]
enum ConcurrencyRecord {
    Parallel,
    Exclusive,
}

impl From<&ToolSpec> for ToolRecord {
    fn from(spec: &ToolSpec) -> Self {
        let ToolDefinition { name, description, parameters } = spec.definition.clone();
        let languages = spec.languages.iter();
        Self {
            name,
            description,
            parameters,
            output: spec.output.clone(),
            server: spec.server.clone(),
            primary: spec.primary.clone(),
            languages: languages.map(|(name, of)| (name.clone(), LanguageRecord(*of))).collect(),
            effect: spec.effect,
            concurrency: spec.concurrency,
            global_context: spec.global_context,
            answers_data: spec.answers_data,
        }
    }
}

impl From<&ToolRecord> for ToolSpec {
    fn from(record: &ToolRecord) -> Self {
        let record = record.clone();
        let languages = record.languages.into_iter();
        let mut spec = Self::new(ToolDefinition {
            name: record.name,
            description: record.description,
            parameters: record.parameters,
        });
        spec.output = record.output;
        spec.server = record.server;
        spec.primary = record.primary;
        spec.languages = languages.map(|(name, LanguageRecord(of))| (name, of)).collect();
        spec.effect = record.effect;
        spec.concurrency = record.concurrency;
        spec.global_context = record.global_context;
        spec.answers_data = record.answers_data;
        spec
    }
}
