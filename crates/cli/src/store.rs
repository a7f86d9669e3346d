//! Choosing and opening the store that a command works on.

mod folder;

pub(crate) use folder::{folder, root, tenants, usual};

use crate::cli::Globals;
use crate::encryption_key::{self, encryption_key};
use crate::error::CliError;
use crate::output::{self, Output};
use crate::run::Outfit;
use foldback::core::Embedder;
use foldback::embedder::{Choice, WordsOnly};
use foldback::{
    Audit, ErrorKind, KNOWN_SECRET, Lost, Memory, Options, Redaction, RedactionKey, ViewConfig,
};
use foldback_kv::{Engine, Mode, Truth};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// The variable that holds the key for sealing removed secrets.
const REDACTION_KEY: &str = "FOLDBACK_REDACTION_KEY";

/// Opens the store for writing, creating it if there is none.
pub(crate) fn open_for_writing(globals: &Globals, out: &Output) -> Result<Memory, CliError> {
    open_to_write(globals, out, options(globals, Mode::ReadWrite)?)
}

/// Does the same for a gateway, which shows conversations in its own way.
pub(crate) fn open_for_gateway(globals: &Globals, out: &Output) -> Result<Memory, CliError> {
    let globals = &Globals { door: Some("gateway"), ..globals.clone() };
    let options = options(globals, Mode::ReadWrite)?;
    open_to_write(globals, out, options.with_view(foldback_gateway::Keeping::view()))
}

fn open_to_write(globals: &Globals, out: &Output, options: Options) -> Result<Memory, CliError> {
    if options.engine == Engine::Memory {
        out.note("the memory engine keeps nothing once this command ends");
    }
    let memory = open(globals, options)?;
    check_embedder(&memory, globals, Mode::ReadWrite)?;
    Ok(memory)
}

/// Opens the store, and reports lost writes.
fn open(globals: &Globals, options: Options) -> Result<Memory, CliError> {
    let has_key = options.encryption.is_some();
    let memory = Memory::open(&folder(globals)?, options).map_err(|error| match error.kind() {
        ErrorKind::Key if !has_key => CliError::Usage(format!("{error}; {}", key_places())),
        ErrorKind::Key => match encryption_key::place(globals) {
            Some(place) => CliError::Usage(format!(
                "{error}; the key is that of {}",
                place.trim_end_matches(',')
            )),
            None => error.into(),
        },
        _ => error.into(),
    })?;
    let lost = memory.maintenance().lost().unwrap_or_else(|error| {
        output::warn(globals, format_args!("lost writes cannot be checked for: {error}"));
        None
    });
    if let Some(lost) = lost
        && !globals.loss.is_noticed()
    {
        globals.loss.notice();
        // The exit code reports the loss, too, so --quiet does not suppress the reason.
        output::warn(
            &Globals { quiet: false, ..globals.clone() },
            format_args!(
                "the store has lost writes: {lost}; what is left can be read, and `foldback doctor \
                 --accept-loss` lets the store be written again"
            ),
        );
    }
    Ok(memory)
}

/// Whether the engine's own structures are intact. Writes nothing, and does not notice lost writes.
pub(crate) fn is_sound(globals: &Globals) -> Result<bool, CliError> {
    let (dir, key) = (folder(globals)?, encryption_key(globals)?);
    let opened = foldback_kv::open_with(&dir, globals.truth()?, Mode::ReadOnly, key.as_ref());
    match opened.and_then(|kv| kv.check()) {
        Ok(findings) => Ok(foldback_kv::is_sound(&findings)),
        Err(error) => {
            // The memory says more about what can be done.
            drop(open_for_reading(globals)?);
            Err(not_opened(error.into(), &dir))
        }
    }
}

/// Accepts what is left as complete. Returns what was lost.
pub(crate) fn accept_loss(globals: &Globals) -> Result<Option<Lost>, CliError> {
    let (dir, key) = (folder(globals)?, encryption_key(globals)?);
    let kv = foldback_kv::open_with(&dir, globals.truth()?, Mode::ReadWrite, key.as_ref())?;
    let lost = kv.lost()?;
    kv.accept_loss()?;
    Ok(lost)
}

/// Whether an opened store has lost writes, which decides the exit code. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loss(Arc<AtomicBool>);

impl Loss {
    fn notice(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_noticed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Opens the store for a run with this view, configured for its model, creating it if there is none.
pub(crate) fn open_for_run(
    globals: &Globals,
    view: ViewConfig,
    outfit: &Outfit,
) -> Result<Memory, CliError> {
    let globals = &Globals { door: Some("run"), ..globals.clone() };
    let view = globals.settings.view.of(view);
    let options = outfit.options(options(globals, Mode::ReadWrite)?, view);
    if options.encryption.is_some() {
        let what = "the run's own files in the folder runs, its journal and its trajectory, are not encrypted";
        output::warn(globals, what);
    }
    let memory = open(globals, options)?;
    check_embedder(&memory, globals, Mode::ReadWrite)?;
    Ok(memory)
}

/// Opens an existing store for writing.
pub(crate) fn open_existing(globals: &Globals) -> Result<Memory, CliError> {
    // Opening for reading shows whether there is a store without creating one.
    drop(open_for_reading(globals)?);
    let memory = open(globals, options(globals, Mode::ReadWrite)?)?;
    check_embedder(&memory, globals, Mode::ReadWrite)?;
    Ok(memory)
}

/// Opens the store for writing with this embedder, creating it if there is none.
pub(crate) fn open_with(
    globals: &Globals,
    embedder: Arc<dyn Embedder>,
) -> Result<Memory, CliError> {
    let options = options(globals, Mode::ReadWrite)?.with_embedder(embedder);
    open(globals, options)
}

/// Whether there is a store.
pub(crate) fn exists(globals: &Globals) -> Result<bool, CliError> {
    match open_for_reading(globals) {
        Ok(_) => Ok(true),
        Err(CliError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens an existing store for reading its records. Loads no embedder.
pub(crate) fn open_for_reading(globals: &Globals) -> Result<Memory, CliError> {
    open_to_read(globals, Some(Arc::new(WordsOnly)))
}

/// Opens an existing store for searching.
pub(crate) fn open_for_search(globals: &Globals) -> Result<Memory, CliError> {
    let memory = open_to_read(globals, named_embedder(globals)?)?;
    check_embedder(&memory, globals, Mode::ReadOnly)?;
    Ok(memory)
}

fn open_to_read(
    globals: &Globals,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<Memory, CliError> {
    open_so(globals, shaped(globals).with_embedder(embedder))
}

fn open_so(globals: &Globals, options: Options) -> Result<Memory, CliError> {
    let dir = folder(globals)?;
    if globals.engine() == Engine::Memory {
        let what = "the memory engine keeps nothing between commands, so there is nothing to read";
        return Err(CliError::NotFound(what.to_owned()));
    }
    let options = options.with_truth(globals.truth()?).with_payloads(globals.payloads());
    let options = options.with_audit(audit(globals));
    let options = options.with_mode(Mode::ReadOnly).with_encryption(encryption_key(globals)?);
    let server = options.server.clone();
    match open(globals, options) {
        Err(CliError::Memory(error)) if server.is_some() => match error.kind() {
            ErrorKind::NotFound if globals.tenant().is_some() => {
                Err(CliError::NotFound(error.to_string()))
            }
            ErrorKind::NotFound => Err(CliError::NotFound(format!(
                "{error}; `foldback import` and `foldback record` make one"
            ))),
            _ => Err(error.into()),
        },
        Err(CliError::Memory(error)) => Err(not_opened(error, &dir)),
        opened => opened,
    }
}

/// The reason why an existing store could not be opened.
fn not_opened(error: foldback::Error, dir: &Path) -> CliError {
    match error.kind() {
        ErrorKind::NotFound => CliError::NotFound(format!(
            "there is no store at {}; `foldback import` and `foldback record` make one, and \
             --store DIR names another",
            dir.display()
        )),
        _ => error.into(),
    }
}

/// The places that a key can come from, as the rest of a sentence.
fn key_places() -> String {
    format!(
        "{}, memory.encryption_key_file or memory.encryption_key_command gives it",
        encryption_key::VARIABLE
    )
}

/// A store for a single conversation, removed with the value.
pub(crate) struct Temporary {
    memory: Memory,
    /// Removed after the memory above it is closed.
    _dir: Option<TempDir>,
}

impl Temporary {
    /// Creates it in memory, or in a temporary folder if another engine was asked for.
    pub(crate) fn new(options: &Options) -> Result<Self, CliError> {
        if options.engine == Engine::Memory {
            return Ok(Self { memory: Memory::in_memory(options.clone())?, _dir: None });
        }
        let dir = tempfile::Builder::new().prefix("foldback-").tempdir();
        let dir = dir.map_err(|source| CliError::Io {
            what: "a temporary folder could not be created".to_owned(),
            source,
        })?;
        let memory = Memory::open(&dir.path().join("store"), options.clone())?;
        Ok(Self { memory, _dir: Some(dir) })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// The options of a temporary store: the memory engine, unless another was asked for.
pub(crate) fn temporary_options(globals: &Globals) -> Result<Options, CliError> {
    let engine = match &globals.engine {
        // A conversation that is only shown is not put into anybody's database.
        Some(Truth::Server(_) | Truth::Folder(Engine::Postgres)) | None => Engine::Memory,
        Some(Truth::Folder(engine)) => *engine,
    };
    // The same input gives the same prompts.
    Ok(shaped(globals)
        .with_engine(engine)
        .with_embedder(named_embedder(globals)?)
        .with_secret(KNOWN_SECRET))
}

/// Returns the bytes of the files under `dir`.
pub(crate) fn bytes_of(dir: &Path) -> u64 {
    bytes_where(dir, &|_| true)
}

/// Returns the bytes of the log that the engine has not yet merged into its main file.
pub(crate) fn log_bytes(dir: &Path) -> u64 {
    bytes_where(dir, &|name| name.ends_with("-wal"))
}

/// Files that cannot be read (for example because another process has just removed them) count as empty.
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

pub(crate) fn options(globals: &Globals, mode: Mode) -> Result<Options, CliError> {
    let (truth, embedder) = (globals.truth()?, named_embedder(globals)?);
    let options = shaped(globals).with_truth(truth).with_mode(mode).with_embedder(embedder);
    let options = options.with_payloads(globals.payloads());
    let options = options.with_audit(audit(globals)).with_encryption(encryption_key(globals)?);
    Ok(match globals.settings.memory.redact {
        true => options.with_redaction(Redaction::default().with_key(redaction_key(globals)?)),
        false => options,
    })
}

/// The name under which accesses are audited, if they are.
fn audit(globals: &Globals) -> Option<Audit> {
    let is_kept = globals.settings.memory.audit && globals.engine() != Engine::Memory;
    is_kept.then(|| Audit::new(globals.door.unwrap_or("cli")))
}

/// The key that removed secrets are sealed with: from the environment, or else from the file that the settings name.
fn redaction_key(globals: &Globals) -> Result<Option<RedactionKey>, CliError> {
    let given = std::env::var(REDACTION_KEY).ok().filter(|key| !key.trim().is_empty());
    let (from, text) = match (given, &globals.settings.memory.redaction_key_file) {
        (Some(key), _) => (REDACTION_KEY.to_owned(), key),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|source| CliError::Io {
                what: format!("the key at {} could not be read", file.display()),
                source,
            })?;
            (file.display().to_string(), text)
        }
        (None, None) => return Ok(None),
    };
    let key = text.parse().map_err(|error| CliError::Usage(format!("{from}: {error}")))?;
    Ok(Some(key))
}

/// Opens the store for revealing removed secrets.
pub(crate) fn open_to_reveal(globals: &Globals) -> Result<Memory, CliError> {
    let Some(key) = redaction_key(globals)? else {
        return Err(CliError::Usage(format!(
            "revealing redacted text needs the key that it was sealed with; give it in {REDACTION_KEY} or \
             memory.redaction_key_file"
        )));
    };
    let options = shaped(globals).with_redaction(Redaction::default().with_key(key));
    open_so(globals, options.with_embedder(Some(Arc::new(WordsOnly) as Arc<dyn Embedder>)))
}

/// The options for blocks and offloading from the settings. Each todo keeps the view that it last had.
pub(crate) fn shaped(globals: &Globals) -> Options {
    globals.settings.memory.options(Options::default())
}

/// The embedder that `--embedder` or the settings name, loaded.
fn named_embedder(globals: &Globals) -> Result<Option<Arc<dyn Embedder>>, CliError> {
    let Some(choice) = &globals.embedder else { return Ok(None) };
    Ok(Some(choice.load()?))
}

/// Warns if the embedder in use is not the intended one. A named embedder becomes a new store's own; if the store holds
/// messages, their vectors must come from it.
fn check_embedder(memory: &Memory, globals: &Globals, mode: Mode) -> Result<(), CliError> {
    let Some(named) = &globals.embedder else {
        warn_of_embedder(memory, globals);
        return Ok(());
    };
    if mode == Mode::ReadWrite && memory.todos(None, 1)?.is_empty() {
        return Ok(memory.embedding().choose(named)?);
    }
    let own = match memory.embedding().own() {
        Ok(own) => own,
        Err(error) => {
            output::warn(globals, format_args!("{error}; --embedder {named} is used"));
            return Ok(());
        }
    };
    let model = memory.embedding().embedder().model_id();
    let is_own = match &own {
        Some(own) => own.model_id == model,
        None => *named == Choice::BuiltIn,
    };
    if is_own || *named == Choice::WordsOnly {
        return Ok(());
    }
    let own = own.map(|own| own.choice).unwrap_or_default();
    let from = globals.settings.source_of("memory.embedder").unwrap_or_default();
    Err(CliError::Usage(format!(
        "the store's messages are embedded by {own}, but {from} names {named}; \
         `foldback embedder use {named}` embeds them again, and --embedder none searches by words"
    )))
}

/// Warns if the embedder in use is not the intended one.
pub(crate) fn warn_of_embedder(memory: &Memory, globals: &Globals) {
    if let Some(trouble) = memory.embedding().trouble() {
        output::warn(globals, trouble);
    }
}
