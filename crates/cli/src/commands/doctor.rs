//! `foldback doctor`.

use super::verify;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::gateway::{gateway_address, runtime};
use crate::output::{Output, text};
use crate::store::{self, Temporary};
use clap::Args;
use foldback_gateway::{Check, Keeping, self_test};
use serde::Serialize;

/// Check the records and every index; with --repair, rebuild indexes
///
/// Checks everything that `verify` checks, and every index against the records that it was built from. An index is
/// derived, so rebuilding it loses nothing. --repair also rewrites the store's file FORMAT if that is damaged and the
/// database shows what it should say, and removes what killed backups have left. If the database's own structures are
/// damaged, it changes nothing: export what can be read, and import it into a new store.
///
/// JSON: {"clean", "todos", "blocks", "payloads", "findings": [...], "index_lag", "tail", "folds",
/// "log_bytes", "messages", "all_todos_lag", "graphs"}; `index_lag` counts closed blocks that are searched from the
/// records because the indexes do not hold them yet, `all_todos_lag` those that the index over all todos does not hold,
/// `tail` messages after the last closed blocks, `folds` closed blocks, as `blocks` does, `log_bytes` the size of the
/// engine's log, `graphs` conversations whose vectors are searched by a graph. The exit code is 1 if something was
/// found.
///
/// With --gateway it checks a gateway instead: the one at this URL or, without a URL, one of its own over an empty
/// store, through which it sends requests to a provider of its own. In both cases it also checks the environment for
/// base URLs that do not answer, and for proxies that requests to this machine would go through. FOLDBACK_GATEWAY_TOKEN
/// holds the token of a gateway that needs one.
///
/// JSON: {"clean", "checks": [{"name", "ok", "what"}]}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback doctor --repair
  foldback doctor --accept-loss
  foldback doctor --gateway
  foldback doctor --gateway http://127.0.0.1:8377")]
pub(crate) struct Doctor {
    /// Rebuild indexes that do not match the records, and let those that lag catch up
    #[arg(long)]
    repair: bool,

    /// If acknowledged writes are lost, treat what is left as complete and repair it, so that the store can be written
    /// again
    #[arg(long)]
    accept_loss: bool,

    /// Check the gateway at this URL; without a URL, try one out
    #[arg(long, value_name = "URL", value_parser = gateway_address,
          conflicts_with_all = ["repair", "accept_loss"])]
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
                "repaired: the file FORMAT is rewritten; the database beside it is a store of {engine}"
            ));
        }
        // A store that is opened for writing is written to, if only by its upkeep.
        let repair = repair && store::is_sound(globals)?;
        if self.accept_loss {
            match repair.then(|| store::accept_loss(globals)).transpose()? {
                None => out.note(
                    "nothing was accepted: the database's own structures are damaged, so it is not written to",
                ),
                Some(Some(lost)) => out.note(format_args!("accepted: {lost}")),
                Some(None) => out.note("no acknowledged write is lost, so there is nothing to accept"),
            }
        }
        let memory =
            if repair { store::open_existing(globals)? } else { store::open_for_reading(globals)? };
        let log_bytes = store::log_bytes(&store::folder(globals)?);
        // The exit code says what was found, even if nobody reads all of it.
        let out = &out.finishing();
        let maintenance = memory.maintenance();
        let repaired = if repair { maintenance.repair()?.findings } else { Vec::new() };
        if repair {
            maintenance.index()?;
        }
        let checkup = maintenance.doctor()?;
        // What was found is repaired by now, or is damage to the records, which stays.
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

/// Checks a gateway, and how clients would find it.
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
