//! `foldback encryption`.

use crate::cli::Globals;
use crate::encryption_key::{VARIABLE, encryption_key, place, read_file};
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::{Args, Subcommand};
use foldback::EncryptionKey;
use foldback_kv::Mode;
use serde::Serialize;
use std::path::{Path, PathBuf};

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
    let key = encryption_key(globals)?;
    let key_given = key.is_some();
    let is_marked = foldback_kv::is_encrypted(&dir)?;
    let is_plain = match &key {
        Some(key) if !is_marked => is_refused_as_plain(&dir, globals, key)?,
        _ => false,
    };
    if !is_plain && (!is_marked || key_given) {
        // This checks whether there is a store, and whether the key opens it.
        drop(store::open_for_reading(globals)?);
    }
    // With a key, only a store of that key opens.
    let encrypted = is_marked || (key_given && !is_plain);
    if out.is_json() {
        out.json(&StatusJson { encrypted, key_given })?;
    } else {
        out.line(match (encrypted, key_given) {
            (false, false) => "the store is not encrypted".to_owned(),
            (false, true) => format!(
                "the store is not encrypted, although {} gives a key; other commands refuse a key for it",
                place(globals).unwrap_or_default()
            ),
            (true, true) => "the store is encrypted, and the key opens it".to_owned(),
            (true, false) => format!("the store is encrypted; no key is given ({VARIABLE})"),
        })?;
    }
    Ok(Outcome::Done)
}

/// Whether there is a store that takes no key, because it is not encrypted.
fn is_refused_as_plain(
    dir: &Path,
    globals: &Globals,
    key: &EncryptionKey,
) -> Result<bool, CliError> {
    let opened = foldback_kv::open_with(dir, globals.truth()?, Mode::ReadOnly, Some(key));
    Ok(matches!(opened, Err(foldback_kv::Error::NotEncrypted { .. })))
}

impl Rekey {
    fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let dir = store::folder(globals)?;
        let new = read_file(&self.new_key_file)?;
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
        if let Some(place) = place(globals) {
            out.note(format_args!("{place} still gives the old key; it must give the new one now"));
        }
        compacted?;
        Ok(Outcome::Done)
    }
}
