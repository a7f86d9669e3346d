//! `foldback doctor`.

use super::verify;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::runtime;
use crate::output::{Output, text};
use crate::store::{self, Temporary};
use clap::Args;
use foldback_gateway::{Check, Keeping, self_test};
use serde::Serialize;

/// Compare truth and indexes exhaustively; with --repair, make indexes again
///
/// Everything that `verify` checks, and every index against the records that it was made from. An
/// index is derived: making it again loses nothing. --repair also writes the store's file FORMAT again where that is
/// damaged and the database tells what it is, and removes what killed backups have left. Where the database's own
/// structures are damaged, it changes nothing: export what can be read, and import it into a new store.
///
/// JSON: {"clean", "todos", "blocks", "payloads", "findings": [...], "index_lag", "tail", "folds",
/// "log_bytes", "messages", "all_todos_lag", "graphs"}; `index_lag` counts closed blocks that are searched from the records
/// because the indexes do not hold them yet, `all_todos_lag` those that the index over all todos does
/// not hold, `tail` messages behind the last closed blocks, `folds`
/// closed blocks, which have left the live view, `log_bytes` what stands in the engine's log, `graphs`
/// conversations whose vectors are searched by a graph. The exit code is 1 when something was found.
///
/// With --gateway it looks at a gateway instead: at the one that runs at this URL, or without a URL at one of its own over
/// an empty store, through which it sends requests to a provider of its own. In both cases it looks at the environment,
/// too: base URLs where nothing answers, and proxies that requests to this machine would go through.
/// FOLDBACK_GATEWAY_TOKEN holds the token of a gateway that wants one.
///
/// JSON: {"clean", "checks": [{"name", "ok", "what"}]}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback doctor --repair
  foldback doctor --accept-loss
  foldback doctor --gateway
  foldback doctor --gateway http://127.0.0.1:8377")]
pub(crate) struct Doctor {
    /// Make indexes that do not agree with the records again, and let those behind catch up
    #[arg(long)]
    repair: bool,

    /// Where acknowledged writes are gone, treat what is left as complete, and repair it: the store can be
    /// written again then
    #[arg(long)]
    accept_loss: bool,

    /// Look at the gateway that runs there; without a URL, try one out
    #[arg(long, value_name = "URL", conflicts_with_all = ["repair", "accept_loss"])]
    gateway: Option<Option<String>>,
}

#[derive(Serialize)]
struct GatewayJson<'a> {
    clean: bool,
    checks: &'a [Check],
}

#[derive(Serialize)]
struct DoctorJson<'a> {
    clean: bool,
    todos: u64,
    blocks: u64,
    payloads: u64,
    findings: &'a [String],
    index_lag: u64,
    tail: u64,
    folds: u64,
    log_bytes: u64,
    messages: u64,
    all_todos_lag: u64,
    graphs: u64,
}

impl Doctor {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if let Some(url) = self.gateway {
            return look_at_gateway(url, globals, out);
        }
        let repair = self.repair || self.accept_loss;
        if repair && let Some(engine) = foldback_kv::repair_format(&store::folder(globals)?)? {
            out.note(format_args!(
                "repaired: the file FORMAT is written again; what stands beside it is a store of {engine}"
            ));
        }
        // A store that is open for writing is written to, were it only by its upkeep.
        let repair = repair && store::is_sound(globals)?;
        if self.accept_loss {
            match repair.then(|| store::accept_loss(globals)).transpose()? {
                None => out.note(
                    "nothing was accepted: the database's own structures are damaged, so nothing is written to it",
                ),
                Some(Some(lost)) => out.note(format_args!("accepted: {lost}")),
                Some(None) => out.note("no acknowledged write is gone, so there is nothing to accept"),
            }
        }
        let memory =
            if repair { store::open_existing(globals)? } else { store::open_for_reading(globals)? };
        let log_bytes = store::log_bytes(&store::folder(globals)?);
        let maintenance = memory.maintenance();
        let repaired = if repair { maintenance.repair()?.findings } else { Vec::new() };
        if repair {
            maintenance.index()?;
        }
        let checkup = maintenance.doctor()?;
        // What was found is mended now, or it is damage of the truth, which stays.
        for finding in repaired.iter().filter(|found| !checkup.findings.contains(found)) {
            out.note(format_args!("repaired: {finding}"));
        }
        if out.is_json() {
            out.json(&DoctorJson {
                clean: checkup.is_clean(),
                todos: checkup.todos,
                blocks: checkup.blocks,
                payloads: checkup.payloads,
                findings: &checkup.findings,
                index_lag: checkup.index_lag,
                tail: checkup.tail,
                folds: checkup.blocks,
                log_bytes,
                messages: checkup.messages,
                all_todos_lag: checkup.all_todos_lag,
                graphs: checkup.graphs,
            })?;
        } else {
            verify::print(out, &checkup)?;
            out.line(format!(
                "  {} behind the indexes, {} behind the index over all todos, {} open, {} in the log",
                text::count(checkup.index_lag, "block"),
                checkup.all_todos_lag,
                text::count(checkup.tail, "message"),
                text::bytes(log_bytes),
            ))?;
            if checkup.graphs > 0 {
                out.line(format!("  {} over vectors", text::count(checkup.graphs, "graph")))?;
            }
        }
        Ok(Outcome::clean_if(checkup.is_clean()))
    }
}

/// Looks at a gateway, and at how clients would find it.
fn look_at_gateway(
    url: Option<String>,
    globals: &Globals,
    out: &Output,
) -> Result<Outcome, CliError> {
    let variable = |name: &str| std::env::var(name).ok();
    let checks = runtime()?.block_on(async {
        let mut checks = match url {
            Some(url) => {
                let token = variable("FOLDBACK_GATEWAY_TOKEN");
                Check::of_gateway(&url, token.as_deref()).await
            }
            None => {
                let options = store::temporary_options(globals)?.with_view(Keeping::view());
                self_test(Temporary::new(&options)?.memory().clone()).await?
            }
        };
        checks.extend(Check::of_environment(variable).await);
        Ok::<_, CliError>(checks)
    })?;
    let clean = checks.iter().all(|check| check.ok);
    if out.is_json() {
        out.json(&GatewayJson { clean, checks: &checks })?;
        return Ok(Outcome::clean_if(clean));
    }
    for check in &checks {
        let mark = if check.ok { "ok" } else { "wrong" };
        out.line(format!("{mark:<5}  {:<11}  {}", check.name, text::one_line(&check.what)))?;
    }
    Ok(Outcome::clean_if(clean))
}
