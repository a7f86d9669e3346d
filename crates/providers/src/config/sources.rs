//! The sources of settings.

use super::{CallIds, Family, Provider, SystemRole, ToolCalls, Turns, public_url, wrong};
use crate::ApiKey;
use figment::error::Kind;
use figment::providers::{Format, Serialized, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile};
use foldback_core::Prices;
use foldback_llm::{ModelError, TokenPrices};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variables and the settings that they set.
const VARIABLES: [(&str, &str); 6] = [
    ("FOLDBACK_MODEL", "name"),
    ("FOLDBACK_BASE_URL", "base_url"),
    ("FOLDBACK_API_KEY", API_KEY),
    ("FOLDBACK_PROVIDER", "provider"),
    ("FOLDBACK_TOOL_CALLS", "tool_calls"),
    ("FOLDBACK_GRAMMAR", GRAMMAR),
];

/// The setting whose value is never shown.
const API_KEY: &str = "api_key";

/// The one setting of the environment that is not text.
const GRAMMAR: &str = "grammar";

/// Settings from the command line.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelFlags {
    /// The model's name.
    pub name: Option<String>,
    /// Its address.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<ApiKey>,
    /// Whose API is used: `openai`, `openai-compatible` or `anthropic`.
    pub provider: Option<String>,
    /// How tools are declared and calls are read: `native` or `hermes`.
    pub tool_calls: Option<String>,
}

impl ModelFlags {
    /// Sets the model's name.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Sets the address.
    #[must_use]
    pub fn with_base_url(self, base_url: &str) -> Self {
        Self { base_url: Some(base_url.to_owned()), ..self }
    }

    /// Sets the key.
    #[must_use]
    pub fn with_api_key(self, key: ApiKey) -> Self {
        Self { api_key: Some(key), ..self }
    }

    /// Sets whose API is used, by name.
    #[must_use]
    pub fn with_provider(self, provider: &str) -> Self {
        Self { provider: Some(provider.to_owned()), ..self }
    }

    /// Sets how tools are declared, by name.
    #[must_use]
    pub fn with_tool_calls(self, tool_calls: &str) -> Self {
        Self { tool_calls: Some(tool_calls.to_owned()), ..self }
    }
}

impl fmt::Debug for ModelFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFlags")
            .field("name", &self.name)
            .field("base_url", &self.base_url.as_deref().map(public_url))
            .field("api_key", &self.api_key)
            .field("provider", &self.provider)
            .field("tool_calls", &self.tool_calls)
            .finish()
    }
}

/// The sources of settings, in order of precedence. `Debug` shows the names of environment
/// variables but not their values, since some are keys.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ModelSources {
    /// The command line.
    pub flags: ModelFlags,
    /// Environment variables; those with other names are ignored.
    pub environment: BTreeMap<String, String>,
    /// A TOML file with a table `[model]`.
    pub file: Option<PathBuf>,
    /// Settings that a program has read elsewhere.
    pub settings: ModelSettings,
}

impl fmt::Debug for ModelSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSources")
            .field("flags", &self.flags)
            .field("environment", &self.environment.keys())
            .field("file", &self.file)
            .finish()
    }
}

/// The table `[model]`: missing settings have the provider's defaults. When it is written, its key is masked.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
#[expect(missing_docs, reason = "`ModelConfig` documents each")]
pub struct ModelSettings {
    pub name: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<ApiKey>,
    pub provider: Option<Provider>,
    pub connect_seconds: Option<u64>,
    pub answer_seconds: Option<u64>,
    pub silence_seconds: Option<u64>,
    pub attempts: Option<u32>,
    pub wait_seconds: Option<u64>,
    pub total_seconds: Option<u64>,
    pub retry_seed: Option<u64>,
    pub prefill: Option<bool>,
    pub allowed_tools: Option<bool>,
    pub cache_marks: Option<bool>,
    pub long_cache: Option<bool>,
    pub session_header: Option<String>,
    pub workers: Vec<String>,
    pub tool_calls: Option<ToolCalls>,
    pub grammar: Option<bool>,
    pub diversity: Option<u64>,
    pub context_tokens: Option<usize>,
    pub max_tokens: Option<u32>,
    pub stream: Option<bool>,
    pub family: Option<Family>,
    pub call_ids: Option<CallIds>,
    pub parallel_calls: Option<bool>,
    pub turns: Option<Turns>,
    pub system: Option<SystemRole>,
    pub required_calls: Option<bool>,
    pub prices: Option<Prices>,
    pub token_prices: Option<TokenPrices>,
    pub least_cached_tokens: Option<u64>,
    pub cache_life_seconds: Option<u64>,
}

impl ModelSources {
    /// Sets the flags.
    #[must_use]
    pub fn with_flags(self, flags: ModelFlags) -> Self {
        Self { flags, ..self }
    }

    /// Sets the environment variables.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Sets the file.
    #[must_use]
    pub fn with_file(self, file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// Sets settings that were read elsewhere, which have the lowest precedence.
    #[must_use]
    pub fn with_settings(self, settings: ModelSettings) -> Self {
        Self { settings, ..self }
    }

    /// Returns the environment variable that sets a key of the table `[model]`, if there is one.
    #[must_use]
    pub fn variable_of(key: &str) -> Option<&'static str> {
        VARIABLES.iter().find(|(_, of)| *of == key).map(|(variable, _)| *variable)
    }

    /// Returns the sources of this process: flags, its environment, and a file.
    #[must_use]
    pub fn of_process(flags: ModelFlags, file: Option<PathBuf>) -> Self {
        let known = VARIABLES.iter().map(|(variable, _)| *variable);
        let usual = [Provider::OpenAi, Provider::Anthropic].into_iter();
        let environment = known
            .chain(usual.filter_map(Provider::usual_key))
            .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
            .collect();
        Self { flags, environment, file, settings: ModelSettings::default() }
    }

    /// Returns the value of an environment variable; an empty one counts as not set.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    pub(super) fn read(&self) -> Result<ModelSettings, ModelError> {
        let mut figment = Figment::from(Serialized::defaults(&self.settings));
        if let Some(key) = &self.settings.api_key {
            figment = figment.merge(Given::one("the settings".to_owned(), API_KEY, key.expose()));
        }
        if let Some(file) = &self.file {
            check_file(file)?;
            let file = Figment::from(Toml::file_exact(file)).focus("model");
            figment = figment.merge(file);
        }
        for (variable, key) in VARIABLES {
            if let Some(value) = self.variable(variable) {
                figment = figment.merge(Given::one(
                    format!("the environment variable {variable}"),
                    key,
                    value,
                ));
            }
        }
        let flags = &self.flags;
        for (flag, key, value) in [
            ("--model", "name", flags.name.as_deref()),
            ("--base-url", "base_url", flags.base_url.as_deref()),
            ("--api-key", API_KEY, flags.api_key.as_ref().map(ApiKey::expose)),
            ("--provider", "provider", flags.provider.as_deref()),
            ("--tool-calls", "tool_calls", flags.tool_calls.as_deref()),
        ] {
            if let Some(value) = value {
                figment = figment.merge(Given::one(format!("the flag {flag}"), key, value));
            }
        }
        figment.extract().map_err(|error| explain(&error))
    }
}

/// Checks that a file exists and is TOML. The parser's own error would show the line, which may contain a key.
fn check_file(file: &Path) -> Result<(), ModelError> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        wrong(format!("the settings file {} cannot be read: {error}", file.display()))
    })?;
    let Err(error) = Toml::from_str::<Dict>(&text) else { return Ok(()) };
    let place = error.span().and_then(|span| text.get(..span.start)).map(|before| {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(" (line {line}, column {column})")
    });
    Err(wrong(format!(
        "the settings file {}{} is not TOML: {}",
        file.display(),
        place.unwrap_or_default(),
        error.message().replace('\n', ", "),
    )))
}

/// One setting from a source that is not a file.
struct Given {
    source: String,
    values: Dict,
}

impl Given {
    fn one(source: String, key: &str, value: &str) -> Self {
        let value = match value.parse::<bool>() {
            Ok(value) if key == GRAMMAR => Value::from(value),
            _ => Value::from(value),
        };
        Self { source, values: Dict::from([(key.to_owned(), value)]) }
    }
}

impl figment::Provider for Given {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.source.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Turns the error into a sentence that names source and key, without the value of an API key.
fn explain(error: &figment::Error) -> ModelError {
    let source = error.metadata.as_ref().map(|metadata| match &metadata.source {
        Some(source) => source.to_string(),
        None => metadata.name.to_string(),
    });
    let source = source.unwrap_or_else(|| "the settings".to_owned());
    let key = match error.path.join(".") {
        path if path.is_empty() => "[model]".to_owned(),
        path => format!("model.{path}"),
    };
    let what = match &error.kind {
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected)
            if error.path.iter().any(|part| part == API_KEY) =>
        {
            format!("expected {expected}")
        }
        kind => kind.to_string(),
    };
    wrong(format!("{source}: {key}: {what}"))
}
