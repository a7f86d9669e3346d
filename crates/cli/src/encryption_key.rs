//! The key of an encrypted store: from the environment, a file, or a command that prints it.

use crate::cli::Globals;
use crate::error::CliError;
use foldback::EncryptionKey;
use foldback_kv::Engine;
use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The variable that holds the key.
pub(crate) const VARIABLE: &str = "FOLDBACK_ENCRYPTION_KEY";

/// The text of a key has at most this many bytes, whatever is around it.
const LONGEST: u64 = 4_096;

/// Returns the key from the environment or the settings, if there is one. A command runs once per run of the program.
pub(crate) fn encryption_key(globals: &Globals) -> Result<Option<EncryptionKey>, CliError> {
    if globals.engine() == Engine::Memory {
        // The memory engine writes nothing to disk.
        return Ok(None);
    }
    let settings = &globals.settings.memory;
    if let Some(text) = of_environment() {
        return read(VARIABLE, text.as_bytes()).map(Some);
    }
    if let Some(file) = &settings.encryption_key_file {
        return read_file(file).map(Some);
    }
    let Some(command) = &settings.encryption_key_command else { return Ok(None) };
    static PRINTED: Mutex<Option<EncryptionKey>> = Mutex::new(None);
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.is_none() {
        *printed = Some(of_command(command)?);
    }
    Ok(printed.clone())
}

/// Returns the place that the key is taken from, if there is one: a variable, or a setting with its value.
pub(crate) fn place(globals: &Globals) -> Option<String> {
    let settings = &globals.settings.memory;
    let named = |key: &str, value: &dyn Display| {
        // Where the setting was made is where it has to be changed.
        let made = globals.settings.source_of(key).unwrap_or_default();
        format!("{key} ({made}), {value},")
    };
    if of_environment().is_some() {
        return Some(VARIABLE.to_owned());
    }
    if let Some(file) = &settings.encryption_key_file {
        return Some(named("memory.encryption_key_file", &file.display()));
    }
    let command = settings.encryption_key_command.as_ref()?;
    Some(named("memory.encryption_key_command", command))
}

fn of_environment() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|key| !key.trim().is_empty())
}

/// Returns the key that a shell command prints. The command can ask its user through the terminal.
fn of_command(command: &str) -> Result<EncryptionKey, CliError> {
    let shell = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
    let [program, flag] = shell;
    let ran = || {
        let mut child = Command::new(program)
            .args([flag, command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut printed = Vec::new();
        // With the end of this, the output is closed, which ends a command that prints without an end.
        if let Some(output) = child.stdout.take() {
            output.take(LONGEST + 1).read_to_end(&mut printed)?;
        }
        Ok((child.wait()?, printed))
    };
    let (status, printed) = ran().map_err(|source| CliError::Io {
        what: format!("memory.encryption_key_command could not be run: {command}"),
        source,
    })?;
    if !status.success() && printed.len() as u64 <= LONGEST {
        return Err(CliError::Usage(format!(
            "memory.encryption_key_command ended with {status} instead of printing a key: {command}"
        )));
    }
    read("memory.encryption_key_command", &printed)
}

/// Reads a key from a file.
pub(crate) fn read_file(file: &Path) -> Result<EncryptionKey, CliError> {
    let mut text = Vec::new();
    let read_all = File::open(file).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text));
    read_all.map_err(|source| CliError::Io {
        what: format!("the key at {} could not be read", file.display()),
        source,
    })?;
    read(&file.display().to_string(), &text)
}

/// Parses a key. `from` names where it was found. No error shows the text itself: it may be most of a key.
fn read(from: &str, text: &[u8]) -> Result<EncryptionKey, CliError> {
    if text.len() as u64 > LONGEST {
        let what = format!("{from}: there are over {LONGEST} bytes where a key was expected");
        return Err(CliError::Usage(what));
    }
    let key = String::from_utf8_lossy(text).parse();
    key.map_err(|error| CliError::Usage(format!("{from}: {error}")))
}
