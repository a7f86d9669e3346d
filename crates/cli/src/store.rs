//! Which store a command works on, and opening it.

use crate::cli::Globals;
use crate::error::CliError;
use crate::output::Output;
use directories::ProjectDirs;
use foldback::{Memory, Options};
use foldback_kv::{Engine, Mode};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Names the store where no `--store` does.
const ENVIRONMENT: &str = "FOLDBACK_STORE";

/// The store's folder: `--store`, else the environment's, else the user's data folder.
pub(crate) fn folder(globals: &Globals) -> Result<PathBuf, CliError> {
    let named = globals.store.clone();
    let named = named.or_else(|| std::env::var_os(ENVIRONMENT).map(PathBuf::from));
    if let Some(dir) = named {
        if dir.as_os_str().is_empty() {
            return Err(CliError::Usage("the store's folder is named by an empty text".to_owned()));
        }
        return Ok(dir);
    }
    let project = ProjectDirs::from("", "", "foldback").ok_or_else(|| {
        let what = "the user's data folder is not known here; name a folder with --store DIR";
        CliError::Usage(what.to_owned())
    })?;
    Ok(project.data_dir().to_owned())
}

/// Opens the store for writing, making it where there is none.
pub(crate) fn open_for_writing(globals: &Globals, out: &Output) -> Result<Memory, CliError> {
    let options = options(globals, Mode::ReadWrite);
    if options.engine == Engine::Memory {
        out.note("the memory engine keeps nothing once this command ends");
    }
    Ok(Memory::open(&folder(globals)?, options)?)
}

/// Opens the store for writing; there must be one.
pub(crate) fn open_existing(globals: &Globals) -> Result<Memory, CliError> {
    // Opening for reading says whether there is a store, without making one.
    drop(open_for_reading(globals)?);
    Ok(Memory::open(&folder(globals)?, options(globals, Mode::ReadWrite))?)
}

/// Opens the store for reading; there must be one.
pub(crate) fn open_for_reading(globals: &Globals) -> Result<Memory, CliError> {
    let dir = folder(globals)?;
    let options = options(globals, Mode::ReadOnly);
    if options.engine == Engine::Memory {
        let what = "the memory engine keeps nothing between commands, so there is nothing to read";
        return Err(CliError::NotFound(what.to_owned()));
    }
    match Memory::open(&dir, options) {
        Err(foldback::Error::Kv(foldback_kv::Error::NotFound { .. })) => {
            Err(CliError::NotFound(format!(
                "there is no store at {}; `foldback import` and `foldback record` make one, and \
                 --store DIR names another",
                dir.display()
            )))
        }
        opened => Ok(opened?),
    }
}

/// A store of its own for one conversation, gone with the value.
pub(crate) struct Temporary {
    memory: Memory,
    /// Removed after the memory in front of it is closed.
    _dir: Option<TempDir>,
}

impl Temporary {
    /// In memory, unless another engine was asked for; that one gets a temporary folder.
    pub(crate) fn new(options: &Options) -> Result<Self, CliError> {
        if options.engine == Engine::Memory {
            return Ok(Self { memory: Memory::in_memory(options.clone())?, _dir: None });
        }
        let dir = tempfile::Builder::new().prefix("foldback-").tempdir();
        let dir = dir.map_err(|source| CliError::Io {
            what: "a temporary folder could not be made".to_owned(),
            source,
        })?;
        let memory = Memory::open(&dir.path().join("store"), options.clone())?;
        Ok(Self { memory, _dir: Some(dir) })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// What a temporary store is made with: the memory engine, unless another was asked for.
pub(crate) fn temporary_options(globals: &Globals) -> Options {
    Options { engine: globals.engine.unwrap_or(Engine::Memory), ..Options::default() }
}

/// The bytes of the files under `dir`.
pub(crate) fn bytes_of(dir: &Path) -> u64 {
    bytes_where(dir, &|_| true)
}

/// The bytes of the log that the engine has not yet worked into its main file.
pub(crate) fn log_bytes(dir: &Path) -> u64 {
    bytes_where(dir, &|name| name.ends_with("-wal"))
}

/// What cannot be read (because another process has just removed it, say) counts as nothing.
fn bytes_where(dir: &Path, wanted: &dyn Fn(&str) -> bool) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let of_entry = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_where(&entry.path(), wanted),
        Ok(kind) if kind.is_file() && wanted(&entry.file_name().to_string_lossy()) => {
            entry.metadata().map_or(0, |meta| meta.len())
        }
        _ => 0,
    };
    entries.flatten().map(of_entry).sum()
}

fn options(globals: &Globals, mode: Mode) -> Options {
    Options { engine: globals.engine.unwrap_or_default(), mode, ..Options::default() }
}
