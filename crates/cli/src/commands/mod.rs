//! The commands, one file each: arguments, help, behaviour. "Adding a command" in `CONTRIBUTING.md` has the steps.

mod audit;
mod backup;
mod bench;
mod blocks;
mod chat;
mod compact;
mod completions;
mod config;
mod doctor;
mod embedder;
mod encryption;
mod export;
mod forget;
mod gateway;
mod grant;
mod import;
mod init;
mod ledger;
mod load;
mod mcp;
mod model;
mod record;
mod replay;
mod restore;
mod run;
mod search;
mod serve;
mod sessions;
mod tenant;
mod todos;
mod trajectories;
mod verify;
mod view;
mod wrap;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::Subcommand;
use foldback_core::TodoId;

/// The commands of foldback, in the order of the help. Those with many arguments are boxed.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Run>),
    Chat(Box<chat::Chat>),
    Wrap(wrap::Wrap),
    Gateway(gateway::Gateway),
    Ledger(ledger::Ledger),
    Serve(serve::Serve),
    Sessions(sessions::Sessions),
    #[command(subcommand)]
    Trajectories(trajectories::Trajectories),
    Replay(replay::Replay),
    Import(import::Import),
    Record(record::Record),
    Export(export::Export),
    Todos(todos::Todos),
    Blocks(blocks::Blocks),
    Search(search::Search),
    Load(load::Load),
    View(view::View),
    Mcp(mcp::Mcp),
    Init(init::Init),
    Verify(verify::Verify),
    Doctor(doctor::Doctor),
    Compact(compact::Compact),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Audit(audit::Audit),
    Grant(grant::Grant),
    Forget(forget::Forget),
    Tenant(tenant::Tenant),
    Embedder(embedder::Embedder),
    Encryption(encryption::Encryption),
    #[command(subcommand)]
    Model(model::Model),
    Bench(bench::Bench),
    Config(config::Config),
    Completions(completions::Completions),
}

impl Command {
    /// Whether the command uses settings. The others work although settings are broken.
    pub(crate) fn reads_settings(&self) -> bool {
        match self {
            Self::Completions(_) => false,
            Self::Config(config) => config.reads_settings(),
            _ => true,
        }
    }
}

/// Runs a command.
pub(crate) fn run(
    command: Command,
    globals: &Globals,
    out: &mut Output,
) -> Result<Outcome, CliError> {
    match command {
        Command::Run(run) => run.run(globals, out),
        Command::Chat(chat) => chat.run(globals, out),
        Command::Wrap(wrap) => wrap.run(globals, out),
        Command::Gateway(gateway) => gateway.run(globals, out),
        Command::Ledger(ledger) => ledger.run(globals, out),
        Command::Serve(serve) => serve.run(globals, out),
        Command::Sessions(sessions) => sessions.run(globals, out),
        Command::Trajectories(trajectories) => trajectories.run(globals, out),
        Command::Replay(replay) => replay.run(globals, out),
        Command::Import(import) => import.run(globals, out),
        Command::Record(record) => record.run(globals, out),
        Command::Export(export) => export.run(globals, out),
        Command::Todos(todos) => todos.run(globals, out),
        Command::Blocks(blocks) => blocks.run(globals, out),
        Command::Search(search) => search.run(globals, out),
        Command::Load(load) => load.run(globals, out),
        Command::View(view) => view.run(globals, out),
        Command::Mcp(mcp) => mcp.run(globals, out),
        Command::Init(init) => init.run(globals, out),
        Command::Verify(verify) => verify.run(globals, out),
        Command::Doctor(doctor) => doctor.run(globals, out),
        Command::Compact(compact) => compact.run(globals, out),
        Command::Audit(audit) => audit.run(globals, out),
        Command::Backup(backup) => backup.run(globals, out),
        Command::Restore(restore) => restore.run(globals, out),
        Command::Grant(grant) => grant.run(globals, out),
        Command::Forget(forget) => forget.run(globals, out),
        Command::Tenant(tenant) => tenant.run(globals, out),
        Command::Embedder(embedder) => embedder.run(globals, out),
        Command::Encryption(encryption) => encryption.run(globals, out),
        Command::Model(model) => model.run(globals, out),
        Command::Bench(bench) => bench.run(globals, out),
        Command::Config(config) => config.run(globals, out),
        Command::Completions(completions) => completions.run(out),
    }
}

/// The todo that a command works on.
#[derive(clap::Args)]
pub(crate) struct TodoArg {
    /// The todo; `foldback todos` lists them
    #[arg(long, value_name = "ID")]
    pub(crate) todo: TodoId,
}
