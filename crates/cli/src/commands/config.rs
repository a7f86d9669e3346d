//! `foldback config`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::outfile;
use crate::output::{Output, style, text};
use crate::settings::{Key, Places, Source, commented_file, default_of};
use crate::store;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// Print every setting in force and where it comes from
///
/// Settings come from flags, then environment variables, then the file that --config names, then the project's
/// foldback.toml (in the working folder, or in one above it up to the root of its repository), then your own
/// foldback.toml. docs/settings.md explains each setting. API keys are never shown.
///
/// JSON: [{"key", "value", "source", "default"}]; `source` is "built-in", a file with its line, an environment
/// variable or a flag; `default` is there if `value` is null, and says in words what applies then.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Config {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Print the files that settings are read from, lowest precedence first
    ///
    /// JSON: [{"path", "read"}]; `read` says whether the file exists.
    Path,
    /// Write your own foldback.toml, with every setting commented out
    Init,
}

const EXAMPLES: &str = "\
Examples:
  foldback config
  foldback config --json | jq '.[] | select(.source != \"built-in\")'
  foldback config init";

/// A setting in force.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) key: String,
    value: Value,
    pub(super) source: String,
    /// What applies, in words, if no value is set or built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

#[derive(Serialize)]
struct File {
    path: PathBuf,
    read: bool,
}

impl Row {
    pub(super) fn of((key, value, source): (&Key, Value, &Source)) -> Self {
        let default = value.is_null().then(|| default(key)).flatten();
        Self { key: key.to_string(), value, source: source.to_string(), default }
    }

    /// Its value, as printed.
    pub(super) fn value(&self) -> String {
        match &self.default {
            Some(default) => default.clone(),
            None if self.value.is_null() => "-".to_owned(),
            None => self.value.to_string(),
        }
    }
}

/// What applies, in words, if nothing is set; for the store, its folder.
fn default(key: &Key) -> Option<String> {
    let folder = || store::usual().map(|folder| folder.display().to_string());
    let is_store = key.to_string() == "memory.store";
    is_store.then(folder).flatten().or_else(|| default_of(key))
}

impl Config {
    /// Whether the command reads the settings. `files` and `init` do not, so that they work although a file is broken.
    pub(crate) fn reads_settings(&self) -> bool {
        self.what.is_none()
    }

    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self.what {
            None => print(globals, out)?,
            Some(What::Path) => print_files(globals, out)?,
            Some(What::Init) => write_file(globals, out)?,
        }
        Ok(Outcome::Done)
    }
}

fn print(globals: &Globals, out: &Output) -> Result<(), CliError> {
    let rows: Vec<Row> = globals.settings.shown().map(Row::of).collect();
    if out.is_json() {
        return out.json(&rows);
    }
    for row in rows {
        let (key, source) = (
            style::paint(style::NAME, &row.key),
            style::paint(style::DIM, text::plain(&row.source)),
        );
        out.line(format!("{key} = {}  {source}", text::plain(&row.value())))?;
    }
    Ok(())
}

fn print_files(globals: &Globals, out: &Output) -> Result<(), CliError> {
    let Places { user, project, named } = Places::of_process(globals.config.as_deref());
    let files = [user, project, named].into_iter().flatten();
    let files: Vec<File> = files.map(|path| File { read: path.is_file(), path }).collect();
    if out.is_json() {
        return out.json(&files);
    }
    for File { path, read } in files {
        let absent = if read { "" } else { "  (not there)" };
        let path = path.display().to_string();
        out.line(format!("{}{}", text::plain(&path), style::paint(style::DIM, absent)))?;
    }
    Ok(())
}

fn write_file(globals: &Globals, out: &Output) -> Result<(), CliError> {
    let Some(path) = Places::of_process(globals.config.as_deref()).user else {
        let what = "your settings folder is unknown; name a file with --config";
        return Err(CliError::Usage(what.to_owned()));
    };
    if path.exists() {
        return Err(CliError::Usage(format!("{} already exists", path.display())));
    }
    let failed = |source| CliError::Io {
        what: format!("the settings file {} cannot be written", path.display()),
        source,
    };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    outfile::write(&path, |file| file.write_all(commented_file().as_bytes()).map_err(failed))?;
    out.line(format!("wrote {}", path.display()))
}
