//! The settings in force, and their sources.

use super::key::{Key, built_in, with_value};
use super::layer::{self, Layer};
use super::problem::{Problem, SECRET};
use super::{Settings, project};
use crate::error::CliError;
use crate::run::CALLS;
use directories::ProjectDirs;
use figment::value::{Dict, Value};
use foldback_providers::public_url;
use foldback_reference_agent::ReferenceAgent;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The name of a settings file.
pub(super) const FILE_NAME: &str = "foldback.toml";

/// The variables that name a file if no `--config` does; the second is its older name.
const CONFIG: [&str; 2] = ["FOLDBACK_CONFIG", "FOLDBACK_SETTINGS"];

/// The settings in force, and their sources.
#[derive(Clone, Default)]
pub(crate) struct InForce {
    pub(crate) settings: Settings,
    values: BTreeMap<Key, (Value, Source)>,
    /// The project's file, if one was read.
    pub(crate) project: Option<PathBuf>,
    /// The file that was named.
    pub(crate) named: Option<PathBuf>,
}

/// The files that settings are read from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The user's own.
    pub(crate) user: Option<PathBuf>,
    /// The project's, if there is one.
    pub(crate) project: Option<PathBuf>,
    /// The one that was named.
    pub(crate) named: Option<PathBuf>,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    BuiltIn,
    File {
        file: PathBuf,
        line: usize,
    },
    Variable(String),
    Flag(&'static str),
    /// The user's own, followed by the project's.
    Both(Box<Source>, Box<Source>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
            Self::Both(one, other) => write!(f, "{one} and {other}"),
        }
    }
}

impl Deref for InForce {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Places {
    /// Those of this process, with the file that `--config` or the environment names.
    pub(crate) fn of_process(config: Option<&Path>) -> Self {
        let variable = |name| std::env::var_os(name).filter(|file| !file.is_empty());
        let named = || CONFIG.into_iter().find_map(variable).map(PathBuf::from);
        let folder = std::env::current_dir().ok();
        Self {
            user: user_file(),
            project: folder.and_then(|folder| project::file_of(&folder)),
            named: config.map(Path::to_owned).or_else(named),
        }
    }
}

/// The user's own settings file, whether it exists or not.
fn user_file() -> Option<PathBuf> {
    let dirs = ProjectDirs::from("", "", "foldback")?;
    Some(dirs.config_dir().join(FILE_NAME))
}

impl InForce {
    /// The settings of this process.
    ///
    /// # Errors
    /// When a file cannot be read, or a value makes no sense: the error names key, file and line.
    pub(crate) fn of_process(config: Option<&Path>) -> Result<Self, CliError> {
        let is_unreadable = |name: &std::ffi::OsString, value: &std::ffi::OsString| {
            name.to_string_lossy().starts_with("FOLDBACK_") && value.to_str().is_none()
        };
        if let Some((name, _)) = std::env::vars_os().find(|(name, of)| is_unreadable(name, of)) {
            let name = name.to_string_lossy();
            return Err(CliError::Usage(format!("the value of {name} is not valid UTF-8")));
        }
        let variable = |name: &str| std::env::var(name).ok();
        Self::read(&Places::of_process(config), &variable)
    }

    /// Reads these files and environment variables: the environment overrides the named file, which overrides the
    /// project's, which overrides the user's.
    pub(crate) fn read(
        places: &Places,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, CliError> {
        let built_in = built_in().into_iter().filter(|(key, _)| !key.is_of_named_model());
        let values = built_in.map(|(key, value)| (key, (value, Source::BuiltIn))).collect();
        let mut read = Self { values, ..Self::default() };
        if let Some(user) = places.user.as_ref().filter(|file| file.is_file()) {
            read.lay(layer::of_file(user)?);
        }
        if let Some(file) = places.project.as_ref().filter(|file| !places.has_named(file)) {
            let layer = layer::of_file(file)?;
            project::check(&layer, file)?;
            read.lay_projects(layer);
            read.project = Some(file.clone());
        }
        if let Some(named) = &places.named {
            read.lay(layer::of_file(named)?);
            read.named = Some(named.clone());
        }
        read.lay(layer::of_environment(variable)?);
        read.settings = read.put_together()?;
        Ok(read)
    }

    fn lay(&mut self, layer: Layer) {
        for (key, value, source) in layer {
            self.values.insert(key, (value, source));
        }
    }

    /// Lays the project's settings over the user's: limits can only become lower, the user's choice of callable tools
    /// stays, and instructions follow the user's.
    fn lay_projects(&mut self, layer: Layer) {
        let is_set = |read: &Self, key: &&str| {
            let value = read.values.get(&Key::new(key));
            value.is_some_and(|(value, _)| !matches!(value, Value::Empty(..)))
        };
        let is_users = project::BOUNDS.iter().any(|key| is_set(self, key));
        let is_chosen = project::UNLESS_SAID.iter().any(|key| is_set(self, key));
        let share = (Value::from(ReferenceAgent::SUB_AGENT_SHARE * 100.0), Source::BuiltIn);
        for (key, value, source) in layer {
            let own = self.values.get(&key);
            let own = own.filter(|(value, _)| !matches!(value, Value::Empty(..)));
            match own.or((key == Key::new(project::SHARE)).then_some(&share)) {
                Some((own, _)) if project::is_no_lower(&key, own, &value) => {}
                _ if is_chosen && project::UNLESS_SAID.contains(&key.to_string().as_str()) => {}
                Some((Value::String(_, own), from)) if key == Key::new(project::INSTRUCTIONS) => {
                    let both = format!("{own}\n\n{}", value.as_str().unwrap_or_default());
                    let source = Source::Both(Box::new(from.clone()), Box::new(source));
                    self.values.insert(key, (Value::from(both), source));
                }
                _ => drop(self.values.insert(key, (value, source))),
            }
        }
        // A run without any limit has a limit on calls; a high one of a project does not remove that.
        if !is_users && project::BOUNDS.iter().any(|key| is_set(self, key)) {
            let (calls, built_in) = (Key::new(project::CALLS), Value::from(CALLS));
            let own = self.values.get(&calls).map(|(value, _)| value);
            if own.is_none_or(|own| project::is_no_lower(&calls, &built_in, own)) {
                self.values.insert(calls, (built_in, Source::BuiltIn));
            }
        }
    }

    fn put_together(&self) -> Result<Settings, CliError> {
        let mut table = Dict::new();
        for (key, (value, _)) in &self.values {
            with_value(&mut table, &key.0, value.clone());
        }
        let settings = Value::from(table).deserialize::<Settings>();
        let settings = settings.map_err(|error| Problem::new(&error).at(&Source::BuiltIn))?;
        match settings.check() {
            Ok(()) => Ok(settings),
            Err((key, what)) => {
                let source = self.source(&Key::new(key));
                Err(CliError::Usage(format!("{source}: {key}: {what}")))
            }
        }
    }

    fn source(&self, key: &Key) -> Source {
        self.values.get(key).map_or(Source::BuiltIn, |(_, source)| source.clone())
    }

    /// Sets a setting from a flag.
    pub(crate) fn with_flag(mut self, key: &str, value: &str, flag: &'static str) -> Self {
        self.values.insert(Key::new(key), (Value::from(value), Source::Flag(flag)));
        self
    }

    /// The source of a setting, if it is not built in.
    pub(crate) fn source_of(&self, key: &str) -> Option<String> {
        let source = self.source(&Key::new(key));
        (source != Source::BuiltIn).then(|| source.to_string())
    }

    /// Each setting with its value and source, in the order of keys. Secret values are masked.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&Key, serde_json::Value, &Source)> {
        self.values.iter().map(|(key, (value, source))| (key, shown(key, value), source))
    }

    /// Those of them whose value is not the built-in one.
    pub(crate) fn differing(&self) -> impl Iterator<Item = (&Key, serde_json::Value, &Source)> {
        let built_in: BTreeMap<Key, Value> = built_in().into_iter().collect();
        self.shown().filter(move |(key, value, _)| {
            let built_in = built_in.get(key).map(|value| shown(key, value));
            !built_in.is_some_and(|built_in| is_same(&built_in, value))
        })
    }
}

impl Places {
    /// Whether a file is the one that was named, which then no longer counts as a project's.
    fn has_named(&self, file: &Path) -> bool {
        let Some(named) = &self.named else { return false };
        match (named.canonicalize(), file.canonicalize()) {
            (Ok(named), Ok(file)) => named == file,
            _ => false,
        }
    }
}

/// Whether two values are the same: 1 is 1.0.
fn is_same(one: &serde_json::Value, other: &serde_json::Value) -> bool {
    one == other || one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}

/// A value in the form that may be shown.
fn shown(key: &Key, value: &Value) -> serde_json::Value {
    let json = serde_json::to_value(value).unwrap_or_default();
    let masked = |text: &str| match key.last() {
        SECRET => "[key]".to_owned(),
        "base_url" | "workers" | "kind" => public_url(text),
        _ => text.to_owned(),
    };
    match json {
        serde_json::Value::String(text) => masked(&text).into(),
        serde_json::Value::Array(items) => items
            .into_iter()
            .map(|item| item.as_str().map_or(item.clone(), |text| masked(text).into()))
            .collect(),
        json => json,
    }
}

#[cfg(test)]
mod tests;
