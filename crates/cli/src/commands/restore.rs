//! `foldback restore`.

use crate::cli::Globals;
use crate::encryption_key::{encryption_key, read_file};
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::payloads::Payloads;
use crate::store;
use clap::Args;
use foldback::core::Embedder;
use foldback::embedder::WordsOnly;
use foldback::{EncryptionKey, ErrorKind, Memory, Options};
use foldback_kv::{Engine, Mode};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Fill a new store from another store or a backup
///
/// The options of every command say where the new store is: --store, --engine, --payloads, --tenant and the key of the
/// settings. So this also moves a store to another engine or into a database, and encrypts or decrypts it. Everything
/// that the source holds is copied, except its audit log, its tenants, and the records of runs; indexes are rebuilt
/// automatically. The source is only read. If others may write to it, restore a backup of it.
///
/// A store in which a todo was ever made is refused. If the command is interrupted, repeat it: it begins again, and the
/// new store does not open before it is complete. A source with a damaged record is refused; bring what can be read of it
/// into a new store with `foldback export --lenient` and `foldback import`.
///
/// JSON: {"dir", "todos", "messages"}
#[derive(Args)]
#[command(after_long_help = "Examples:\n  \
    foldback --store ~/new restore ~/copies/monday\n  \
    foldback --engine postgres restore ~/copies/monday\n  \
    FOLDBACK_ENCRYPTION_KEY=$(cat store.key) foldback --store ~/encrypted restore ~/plain")]
pub(crate) struct Restore {
    /// The folder of the source: a backup, or a store that nothing writes to
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The file with the key of an encrypted source [default: the key of the new store]
    #[arg(long, value_name = "FILE")]
    source_key_file: Option<PathBuf>,

    /// Where the files of the source's large payloads are, if they are not in its folder, as --payloads has it
    // Parsed later, because a command-line error would repeat the value, which may be a secret.
    #[arg(long, value_name = "PLACE")]
    source_payloads: Option<String>,
}

#[derive(Serialize)]
struct RestoreJson {
    dir: String,
    todos: u64,
    messages: u64,
}

impl Restore {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if globals.engine() == Engine::Memory {
            let what = "the memory engine keeps nothing once this command ends; name another with --engine";
            return Err(CliError::Usage(what.to_owned()));
        }
        let source = self.source(globals)?;
        let (target, options) =
            (store::folder(globals)?, store::options(globals, Mode::ReadWrite)?);
        let (mut progress, mut done) = (None, 0);
        let restored = Memory::restore(&target, options, &source, |last, of| {
            let progress = progress.get_or_insert_with(|| out.progress("restoring", of));
            progress.advance(last - done);
            done = last;
        })?;
        drop(progress);
        // The copy is complete even if the tenants cannot be read.
        let tenants = source.tenants().list().unwrap_or_default();
        let tenants = tenants.iter().filter(|tenant| tenant.is_let_in()).count() as u64;
        let dir = self.dir.display().to_string();
        let (todos, messages) = (restored.todos, restored.messages);
        if out.is_json() {
            out.json(&RestoreJson { dir, todos, messages })?;
        } else {
            let (todos, messages) = (text::count(todos, "todo"), text::count(messages, "message"));
            let dir = style::paint(style::NAME, text::plain(&dir));
            out.line(format!("restored: {todos} with {messages} from {dir}"))?;
        }
        if tenants > 0 {
            out.note(format_args!(
                "{} of the source {} not restored; back up and restore each with --tenant NAME",
                text::count(tenants, "tenant"),
                if tenants == 1 { "is" } else { "are" }
            ));
        }
        Ok(Outcome::Done)
    }

    fn source(&self, globals: &Globals) -> Result<Memory, CliError> {
        let dir = self.dir.display();
        let engine = match foldback_kv::engine_of(&self.dir)? {
            Some(Engine::Postgres) => {
                return Err(CliError::Usage(format!(
                    "the records of the store in {dir} are in a database; copy it with `foldback backup`, and restore \
                     the copy"
                )));
            }
            Some(engine) => engine,
            None => return Err(CliError::NotFound(format!("there is no store in {dir}"))),
        };
        let is_encrypted = foldback_kv::is_encrypted(&self.dir)?;
        if let Some(file) = self.source_key_file.as_ref().filter(|_| !is_encrypted) {
            return Err(CliError::Usage(format!(
                "the store in {dir} is not encrypted, so it has no use for the key in --source-key-file {}",
                file.display()
            )));
        }
        let payloads = self.source_payloads.as_ref().map(|place| place.parse::<Payloads>());
        let payloads = payloads.transpose();
        let payloads =
            payloads.map_err(|why| CliError::Usage(format!("--source-payloads: {why}")))?;
        let options = Options::default()
            .with_engine(engine)
            .with_mode(Mode::ReadOnly)
            .with_payloads(payloads.and_then(Payloads::place))
            .with_encryption(if is_encrypted { self.key(globals)? } else { None })
            .with_embedder(Arc::new(WordsOnly) as Arc<dyn Embedder>);
        let hint = |error: foldback::Error, flag| CliError::Usage(format!("{error}; {flag}"));
        Memory::open(&self.dir, options).map_err(|error| match error.kind() {
            ErrorKind::Key => hint(error, "--source-key-file names the key of the source"),
            ErrorKind::InvalidInput => hint(error, "for the source it is --source-payloads"),
            _ => error.into(),
        })
    }

    fn key(&self, globals: &Globals) -> Result<Option<EncryptionKey>, CliError> {
        match &self.source_key_file {
            Some(file) => read_file(file).map(Some),
            None => encryption_key(globals),
        }
    }
}
