//! The command line: the program's help, and the options of every command. The commands are in `commands/mod.rs`.

use crate::commands::Command;
use crate::error::CliError;
use crate::payloads::Payloads;
use crate::settings::{InForce, Kept};
use crate::store::{self, Loss};
use crate::truth_parser::{self, TruthParser};
use clap::builder::Styles;
use clap::{Args, Parser};
use foldback::PayloadPlace;
use foldback::core::TenantId;
use foldback::embedder::Choice;
use foldback_kv::{Engine, Truth};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// A context of constant size that loses nothing.
///
/// foldback takes a conversation message by message, cuts it into closed blocks, keeps large tool
/// results outside it, and shows a live view of constant size. What has left the view is found by
/// search and comes back word for word.
#[derive(Parser)]
#[command(
    name = "foldback",
    version,
    max_term_width = 100,
    styles = STYLES,
    after_help = EXAMPLES,
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command.
#[derive(Args, Clone)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// Print JSON on stdout: one document, or JSON Lines if the command streams
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The store's folder [default: the user's data folder] [env: FOLDBACK_STORE]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,

    /// The storage engine [default: sqlite]: sqlite, for any number of processes; redb, which needs no C code, for one
    /// writing process at a time; sled, for stores that were made with it, which it copies whenever it opens them;
    /// postgres, in a build with that feature, for any number of machines, at the address in FOLDBACK_POSTGRES_URL or
    /// given here, postgres://USER@HOST/DATABASE; memory, which keeps nothing
    #[arg(long, global = true, value_name = "ENGINE", value_parser = TruthParser)]
    pub(crate) engine: Option<Truth>,

    /// Where the files of large payloads are kept [default: the store's folder] [env: FOLDBACK_PAYLOADS]:
    /// s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER, in a build that has it; store,
    /// for the store's folder
    // Parsed later, because a command-line error would repeat the value, which may be a secret.
    #[arg(long, global = true, value_name = "PLACE")]
    pub(crate) payloads: Option<String>,

    /// Work in the store of this tenant, which `foldback tenant add` makes [env: FOLDBACK_TENANT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tenant: Option<TenantId>,

    /// The embedder, for a new store or in place of the store's own: builtin, none (words alone),
    /// or a model's folder or name [default: the store's own]
    #[arg(long, global = true, value_name = "EMBEDDER", value_parser = embedder)]
    pub(crate) embedder: Option<Choice>,

    /// A settings file, which overrides the user's own and the project's [env: FOLDBACK_CONFIG]
    #[arg(long, global = true, value_name = "FILE", visible_alias = "settings")]
    pub(crate) config: Option<PathBuf>,

    /// Print results only: no progress, no notes
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// The tenant that the environment names.
    #[arg(skip)]
    pub(crate) tenant_of_environment: Option<TenantId>,

    /// Whether the tenant's store may be made.
    #[arg(skip)]
    pub(crate) adds_tenant: bool,

    /// The settings from files and the environment.
    #[arg(skip)]
    pub(crate) settings: InForce,

    /// Whether the opened store has lost writes.
    #[arg(skip)]
    pub(crate) loss: Loss,

    /// The entry point that the audit log records for accesses to the store; `None` for a command.
    #[arg(skip)]
    pub(crate) door: Option<&'static str>,
}

impl Globals {
    /// Adds the settings from files and the environment; flags override them.
    pub(crate) fn with_settings(self) -> Result<Self, CliError> {
        let mut settings = InForce::of_process(self.config.as_deref())?;
        if let Some(store) = &self.store {
            settings = settings.with_flag("memory.store", &store.display().to_string(), "--store");
        }
        if let Some(truth) = &self.engine {
            // Not the address: it may hold a password.
            settings = settings.with_flag("memory.engine", truth.engine().name(), "--engine");
        }
        if let Some(payloads) = &self.payloads {
            let payloads = payloads.parse::<Payloads>();
            let payloads = payloads.map_err(|why| CliError::Usage(format!("--payloads: {why}")))?;
            settings = settings.with_flag("memory.payloads", &payloads.to_string(), "--payloads");
        }
        let mut chosen = self.embedder.clone();
        match (&self.embedder, settings.memory.embedder.as_deref()) {
            (Some(named), _) => {
                settings = settings.with_flag("memory.embedder", &named.to_string(), "--embedder");
            }
            (None, Some(name)) => chosen = embedder(name).ok(),
            (None, None) => {}
        }
        let named = std::env::var(TENANT).ok().filter(|name| !name.is_empty());
        let tenant = named.map(|name| name.parse::<TenantId>()).transpose();
        let tenant = tenant.map_err(|error| CliError::Usage(format!("{TENANT}: {error}")))?;
        let globals = Self { settings, embedder: chosen, tenant_of_environment: tenant, ..self };
        Ok(globals.with_own_engine())
    }

    /// Takes the engine of the store that is there if none was named.
    fn with_own_engine(mut self) -> Self {
        let is_named = self.settings.source_of("memory.engine").is_some();
        // Errors are left to the command that opens the store.
        let dir = store::root(&self).ok().filter(|_| !is_named);
        let own = dir.and_then(|dir| foldback_kv::engine_of(&dir).ok().flatten());
        if let Some(own) = own.filter(|own| *own != Engine::Postgres) {
            own.name().clone_into(&mut self.settings.settings.memory.engine);
        }
        self
    }

    /// Uses the settings that a run has kept.
    pub(crate) fn going_on(&self, kept: Kept) -> Self {
        let mut globals = self.clone();
        globals.settings.settings = globals.settings.settings.going_on(kept);
        globals
    }

    /// The place of large payloads: the flag's, or else that of the settings; `None` for the store's folder.
    pub(crate) fn payloads(&self) -> Option<PayloadPlace> {
        // The flag was checked earlier.
        let flag = self.payloads.as_ref().and_then(|place| place.parse().ok());
        flag.or_else(|| self.settings.memory.payloads()).and_then(Payloads::place)
    }

    /// The storage engine: the flag's, or else that of the settings.
    pub(crate) fn engine(&self) -> Engine {
        self.engine.as_ref().map_or_else(|| self.settings.memory.engine(), Truth::engine)
    }

    /// The place of the records: the flag's or that of the settings, with the address from the environment.
    pub(crate) fn truth(&self) -> Result<Truth, CliError> {
        let named = self.engine.clone().unwrap_or_else(|| self.engine().into());
        Ok(match truth_parser::complete(named)? {
            Truth::Server(server) => Truth::Server(server.with_tenant(self.tenant().cloned())),
            folder => folder,
        })
    }

    /// The tenant in whose store a command works: the flag's, or else that of the environment.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        self.tenant.as_ref().or(self.tenant_of_environment.as_ref())
    }

    /// The same options for the store of this tenant, or with `None` for the store that is no tenant's.
    pub(crate) fn of_tenant(&self, tenant: Option<TenantId>) -> Self {
        let loss = Loss::default();
        Self { tenant, tenant_of_environment: None, loss, ..self.clone() }
    }
}

/// Reads the name of an embedder. The folder of a model is kept as a full path, because it is stored.
pub(crate) fn embedder(text: &str) -> Result<Choice, String> {
    let choice = text.parse().unwrap_or_else(|never: Infallible| match never {});
    Ok(match choice {
        Choice::Model(model) if model.is_empty() => {
            return Err("expected builtin, none, or the folder or name of a model".to_owned());
        }
        Choice::Model(model) => match Path::new(&model).canonicalize() {
            Ok(folder) => Choice::Model(folder.display().to_string()),
            Err(_) => Choice::Model(model),
        },
        choice => choice,
    })
}

/// The variable that names a tenant.
const TENANT: &str = "FOLDBACK_TENANT";

const EXAMPLES: &str = "\
Examples:
  foldback run --demo                               watch an agent work with it, without a model
  foldback replay examples/coding-session.jsonl     watch a session fold, and see the proof
  foldback import examples/coding-session.jsonl     keep it in the store
  foldback search --todo coding-session \"retry limit\"
  foldback load --todo coding-session b_coding-session_001

Exit codes: 0 done; 1 what was asked for is not there, or is not clean; 2 bad usage or bad input;
3 a resource is missing: a full disk, no permission, a busy or locked store, no file descriptors.";

/// The colours of help and usage errors, as sparse as those of the output.
const STYLES: Styles = Styles::styled()
    .header(anstyle::Style::new().bold())
    .usage(anstyle::Style::new().bold())
    .literal(anstyle::AnsiColor::Cyan.on_default())
    .placeholder(anstyle::Style::new());

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    /// The page that describes every command.
    const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md"));

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Fails for a command without a section on the page, and for a section without a command.
    #[test]
    fn the_page_describes_every_command_and_no_other() {
        let command = Cli::command();
        let commands: BTreeSet<&str> =
            command.get_subcommands().map(|command| command.get_name()).collect();
        let sections = PAGE.lines().filter_map(|line| line.strip_prefix("### `foldback "));
        let sections: BTreeSet<&str> = sections.map(|name| name.trim_end_matches('`')).collect();
        assert_eq!(sections, commands);
    }
}
