//! `foldback mcp`.

mod client;
mod install;
mod json_entry;
mod toml_entry;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::{Args, Subcommand};
use foldback_core::TodoId;
use foldback_mcp_server::{HttpServer, MemoryServer, Scope, ServeError};
use install::{Install, Uninstall};
use serde::Serialize;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Serve the store to another program's agent over the Model Context Protocol
///
/// The tools are search_block, list_blocks and load and, with --allow-record, also record. They work in one
/// conversation: the one that --todo names, or the latest one in the folder that the client names as its root, or in
/// that of --folder. The agent cannot choose another.
///
/// The client starts the command, and talks to it over standard input and output until one of the two ends. With --http
/// it serves any number of clients on this machine at once until it is interrupted. It only reads the store unless it
/// may record; other processes may read and write it meanwhile.
///
/// `foldback mcp install` writes what a client needs into the client's own configuration.
///
/// JSON, once it listens with --http: {"listening"}
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:
  foldback mcp install claude               set it up for Claude Code, in all of your projects
  foldback mcp install codex --any-todo     let Codex search everything in the store
  foldback mcp install json                 print the lines for any other client
  foldback mcp --todo ports --http 127.0.0.1:8765"
)]
pub(crate) struct Mcp {
    #[command(flatten)]
    what: What,

    /// Serve clients over HTTP at an address on this machine, such as 127.0.0.1:8765; they connect to
    /// http://127.0.0.1:8765/mcp
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    #[command(subcommand)]
    setup: Option<Setup>,
}

#[derive(Subcommand)]
enum Setup {
    Install(Install),
    Uninstall(Uninstall),
}

/// What the server offers.
#[derive(Args)]
struct What {
    /// Work in this todo; `foldback todos` lists them
    #[arg(long, value_name = "ID", conflicts_with_all = ["folder", "any_todo"])]
    todo: Option<TodoId>,

    /// Work in the latest todo with work in this folder, whatever roots the client names; `.` is
    /// the folder in which the client starts the server
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Let search_block and load reach every todo of the store: for your own client only
    #[arg(long)]
    any_todo: bool,

    /// Offer record, too. Notes go into the todo that --todo names, or into the folder's own todo for notes, which is
    /// then the one that is read
    #[arg(long)]
    allow_record: bool,
}

#[derive(Serialize)]
struct ListeningJson {
    listening: String,
}

impl Mcp {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self.setup {
            Some(Setup::Install(install)) => install.run(globals, out),
            Some(Setup::Uninstall(uninstall)) => uninstall.run(out),
            None => serve(&self.what, self.http, globals, out),
        }
    }
}

impl What {
    fn scope(&self) -> Scope {
        let scope = match (&self.todo, &self.folder) {
            (Some(todo), _) => Scope::todo(todo.clone()),
            (None, Some(folder)) => {
                let named = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
                Scope::folder(named.canonicalize().unwrap_or(named))
            }
            (None, None) => Scope::roots(),
        };
        let scope = if self.any_todo { scope.with_any_todo() } else { scope };
        if self.allow_record { scope.recording() } else { scope }
    }
}

fn serve(
    what: &What,
    http: Option<SocketAddr>,
    globals: &Globals,
    out: &Output,
) -> Result<Outcome, CliError> {
    let opening = Globals { door: Some("mcp"), ..globals.clone() };
    let (told, records) = (out.clone(), what.allow_record);
    let open = move || match records {
        true => store::open_for_writing(&opening, &told),
        false => store::open_for_search(&opening),
    };
    let server = MemoryServer::new(move || open().map_err(|error| error.sentence()), what.scope());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Io {
        what: "the server could not be started".to_owned(),
        source,
    })?;
    let served: Result<(), CliError> = runtime.block_on(async {
        let Some(address) = http else {
            if std::io::stdin().is_terminal() {
                out.remark(
                    "a client is expected at the other end of standard input; `foldback mcp install` \
                     sets one up",
                );
            }
            return server.serve_stdio().await.map_err(failed);
        };
        let server_at = HttpServer::bind(address).await.map_err(failed)?;
        let listening = server_at.url();
        if out.is_json() {
            out.json(&ListeningJson { listening })?;
        } else {
            out.line(listening)?;
            out.note("clients connect to this address; press Ctrl-C to stop");
        }
        server_at.serve(server, interrupted()).await.map_err(failed)
    });
    // A call that is still running for a client that is gone does not delay the end.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served?;
    Ok(Outcome::Done)
}

fn failed(error: ServeError) -> CliError {
    match error {
        ServeError::Bind { address, source } => {
            CliError::Io { what: format!("listening on {address}"), source }
        }
        ServeError::Ended(source) => {
            CliError::Io { what: "the server has ended".to_owned(), source }
        }
        error => CliError::Usage(error.to_string()),
    }
}

/// Completes once the process is interrupted or asked to end.
async fn interrupted() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut end) = signal(SignalKind::terminate()) else { return drop(interrupt.await) };
        tokio::select! {
            _ = interrupt => {}
            _ = end.recv() => {}
        }
    }
    #[cfg(not(unix))]
    drop(interrupt.await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_may_not_be_used_is_a_missing_resource() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let source = std::io::ErrorKind::PermissionDenied.into();
        assert!(failed(ServeError::Bind { address, source }).is_of_resources());
        let source = std::io::Error::from_raw_os_error(24);
        assert!(failed(ServeError::Ended(source)).is_of_resources(), "too many open files");
        assert!(!failed(ServeError::NotLoopback(address)).is_of_resources());
    }
}
