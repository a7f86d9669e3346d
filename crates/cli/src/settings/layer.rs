//! One source of settings: a file, or an environment variable.

use super::key::{Key, built_in, values, with_value};
use super::problem::Problem;
use super::{Settings, in_force::Source};
use crate::error::CliError;
use directories::BaseDirs;
use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Value};
use std::path::{Path, PathBuf};
use toml_edit::{ImDocument, TableLike};

/// One source of settings: the values that it gives, each with its place.
pub(super) type Layer = Vec<(Key, Value, Source)>;

/// The settings that name a file or a folder. A path in a file is relative to that file.
const PATHS: [&str; 5] = [
    "memory.store",
    "memory.redaction_key_file",
    "memory.encryption_key_file",
    "tools.mcp",
    "tools.documents",
];

/// The setting that may name a folder.
const EMBEDDER: &str = "memory.embedder";

/// Reads a file.
pub(super) fn of_file(file: &Path) -> Result<Layer, CliError> {
    let text = std::fs::read_to_string(file).map_err(|source| CliError::Io {
        what: format!("the settings file {} cannot be read", file.display()),
        source,
    })?;
    let table = Toml::from_str::<Dict>(&text).map_err(|error| {
        // The parser's own error would show the line, which may have a key.
        let line = error.span().map_or(1, |span| line_at(&text, span.start));
        let what = error.message().replace('\n', ", ");
        CliError::Usage(format!("{}:{line}: this is not valid TOML: {what}", file.display()))
    })?;
    let place = |key: &[String]| Source::File {
        file: file.to_owned(),
        line: line_of(&text, key).unwrap_or(1),
    };
    if let Err(error) = Value::from(table.clone()).deserialize::<Settings>() {
        let problem = Problem::new(&error);
        return Err(problem.at(&place(&problem.path)));
    }
    let layer = values(table).into_iter().map(|(key, value)| {
        let place = place(&key.0);
        (key.clone(), from_file(&key, value, file), place)
    });
    Ok(layer.collect())
}

/// Reads environment variables.
pub(super) fn of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Result<Layer, CliError> {
    let mut layer = Layer::new();
    for (key, _) in built_in() {
        let Some(name) = key.variable() else { continue };
        let text = variable(&name).map(|text| text.trim().to_owned());
        let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
        let source = Source::Variable(name);
        layer.push((
            key.clone(),
            read(&key, &text).map_err(|problem| problem.at(&source))?,
            source,
        ));
    }
    Ok(layer)
}

/// The value of a setting that is given as a text: the text itself, its value in TOML, or a list with commas.
fn read(key: &Key, text: &str) -> Result<Value, Problem> {
    let as_toml = Toml::from_str::<Dict>(&format!("value = {text}"));
    let as_toml = as_toml.ok().and_then(|mut table| table.remove("value"));
    let items: Vec<Value> = text.split(',').map(|item| Value::from(item.trim())).collect();
    let candidates = [Some(Value::from(text)), as_toml, Some(Value::from(items))];
    let mut problem = None;
    for value in candidates.into_iter().flatten() {
        let mut table = Dict::new();
        with_value(&mut table, &key.0, value.clone());
        match Value::from(table).deserialize::<Settings>() {
            Ok(_) => return Ok(value),
            Err(error) => problem = problem.or_else(|| Some(Problem::new(&error))),
        }
    }
    Err(problem.unwrap_or_else(|| Problem { path: key.0.clone(), what: "no value".to_owned() }))
}

/// A value as meant in a file: a path is relative to it.
fn from_file(key: &Key, value: Value, file: &Path) -> Value {
    match value.as_str() {
        Some(path) if PATHS.contains(&key.to_string().as_str()) => {
            let path = full(Path::new(path), file.parent().unwrap_or(Path::new("")));
            Value::from(path.to_string_lossy().into_owned())
        }
        // The name of a model, or its folder.
        Some(name) if key.to_string() == EMBEDDER => {
            let path = full(Path::new(name), file.parent().unwrap_or(Path::new("")));
            if path.is_dir() { Value::from(path.to_string_lossy().into_owned()) } else { value }
        }
        _ => value,
    }
}

/// A path relative to a folder; `~/` is the user's own.
fn full(path: &Path, folder: &Path) -> PathBuf {
    match (path.strip_prefix("~"), BaseDirs::new()) {
        (Ok(below), Some(dirs)) => dirs.home_dir().join(below),
        _ => folder.join(path),
    }
}

/// The line of a key, counted from 1: that of its last part that occurs in the file.
fn line_of(text: &str, key: &[String]) -> Option<usize> {
    let document = ImDocument::parse(text).ok()?;
    let mut table: &dyn TableLike = document.as_table();
    let mut start = None;
    for part in key {
        let Some((key, item)) = table.get_key_value(part) else { break };
        start = key.span().map(|span| span.start).or(start);
        let Some(inner) = item.as_table_like() else { break };
        table = inner;
    }
    start.map(|start| line_at(text, start))
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::of_file;
    use crate::settings::commented_file;
    use foldback_testkit::mutation::mutated;
    use foldback_testkit::{Random, effort};

    /// R5: a settings file of any bytes is read, or refused with an error that names it.
    #[test]
    fn r5_a_damaged_settings_file_is_read_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("foldback.toml");
        let seeds = [
            commented_file().replace("\n# ", "\n").into_bytes(),
            b"[view]\nfold_policy = \"cache-aware\"\n[models.small]\nname = \"m\"\n".to_vec(),
            b"[tools]\nmcp = [\"a\", '''b''']\n[agent]\nmax_calls = 1_000\n".to_vec(),
        ];
        let (mut random, mut refused) = (Random::new(5), 0);
        for n in 0..effort(2_000) {
            std::fs::write(&file, mutated(&mut random, &seeds)).unwrap();
            if let Err(error) = of_file(&file) {
                refused += 1;
                assert!(error.to_string().contains("foldback.toml"), "case {n}: {error}");
            }
        }
        assert!(refused > 100, "only {refused} were refused");
    }
}
