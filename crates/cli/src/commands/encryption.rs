//! `foldback encryption`.

use crate::cli::Globals;
use crate::encryption_key::{VARIABLE, encryption_key, read};
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::{Args, Subcommand};
use foldback_kv::Mode;
use serde::Serialize;
use std::path::PathBuf;

/// Show whether the store is encrypted, and change its key
///
/// A new store is encrypted if a key is given by FOLDBACK_ENCRYPTION_KEY, memory.encryption_key_file or
/// memory.encryption_key_command. docs/encryption.md says what that covers
#[derive(Args)]
pub(crate) struct Encryption {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    Status(Status),
    Rekey(Rekey),
}

/// Show whether the store is encrypted, and whether the key opens it
///
/// JSON: {"encrypted", "key_given"}
#[derive(Args)]
struct Status {}

/// Change the store's key
///
/// The stored data stays as it is; only its keys are sealed anew. Backups keep the key that they were made with.
///
/// JSON: {"rekeyed"}
#[derive(Args)]
struct Rekey {
    /// The file with the new key: 32 bytes, as 64 hexadecimal digits or in base64
    #[arg(long, value_name = "FILE")]
    new_key_file: PathBuf,
}

#[derive(Serialize)]
struct StatusJson {
    encrypted: bool,
    key_given: bool,
}

#[derive(Serialize)]
struct RekeyJson {
    rekeyed: bool,
}

impl Encryption {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self.command {
            Task::Status(_) => status(globals, out),
            Task::Rekey(rekey) => rekey.run(globals, out),
        }
    }
}

fn status(globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
    let dir = store::folder(globals)?;
    let key_given = encryption_key(globals)?.is_some();
    let is_marked = foldback_kv::is_encrypted(&dir)?;
    if !is_marked || key_given {
        // This checks whether there is a store, and whether the key opens it.
        drop(store::open_for_reading(globals)?);
    }
    // With a key, only a store of that key opens.
    let encrypted = is_marked || key_given;
    if out.is_json() {
        out.json(&StatusJson { encrypted, key_given })?;
    } else {
        out.line(match (encrypted, key_given) {
            (false, _) => "the store is not encrypted".to_owned(),
            (true, true) => "the store is encrypted, and the key opens it".to_owned(),
            (true, false) => format!("the store is encrypted; no key is given ({VARIABLE})"),
        })?;
    }
    Ok(Outcome::Done)
}

impl Rekey {
    fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let dir = store::folder(globals)?;
        let file = self.new_key_file.display().to_string();
        let text = std::fs::read_to_string(&self.new_key_file).map_err(|source| CliError::Io {
            what: format!("the key at {file} could not be read"),
            source,
        })?;
        let new = read(&file, &text)?;
        // This checks whether there is a store, and whether the current key opens it.
        drop(store::open_for_reading(globals)?);
        let Some(key) = encryption_key(globals)? else {
            return Err(foldback_kv::Error::NotEncrypted { path: dir }.into());
        };
        let truth = globals.truth()?;
        foldback_kv::rekey(&dir, truth.clone(), &key, &new)?;
        let compacted = foldback_kv::open_with(&dir, truth, Mode::ReadWrite, Some(&new))
            .and_then(|kv| kv.compact());
        if out.is_json() {
            out.json(&RekeyJson { rekeyed: true })?;
        } else {
            out.line(match &compacted {
                Ok(()) => "the store has the new key, and the old one no longer opens it",
                Err(_) => {
                    "the store has the new key; until `foldback compact` is done, the old one still opens parts of its files"
                }
            })?;
        }
        compacted?;
        Ok(Outcome::Done)
    }
}
