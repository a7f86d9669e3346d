//! `foldback forget`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{self, Output, question, style, text};
use crate::run::Runs;
use crate::{store, walk};
use clap::Args;
use foldback::core::{TenantId, TodoId};
use foldback::{ErrorKind as Kind, Memory, Truth, release_reserve};
use foldback_kv::Error as KvError;
use serde::Serialize;
use std::fmt::Display;
use std::io::ErrorKind;

/// Delete a todo for good: its messages, blocks, payloads, vectors and indexes, and the runs that worked in it
///
/// Without `--todo`, `--tenant NAME` deletes the tenant: its token, all its todos, and its store.
///
/// At a terminal, the deletion is shown, and made once you have agreed; with --json, and without a terminal on stdin, nothing
/// is asked.
///
/// From then on, no search finds anything of it. `compact` removes its bytes from the files. What was typed in
/// `foldback chat` stays in the store's `chat_history`, which is shared by all conversations. The command works on a
/// full disk, too: the store keeps 1 MiB in reserve for that.
///
/// JSON: {"todo_id", "messages", "runs"}; of a tenant {"tenant", "todos"}
#[derive(Args)]
pub(crate) struct Forget {
    /// The todo; `foldback todos` lists them
    #[arg(long, value_name = "ID", required_unless_present = "tenant")]
    todo: Option<TodoId>,

    /// Delete without asking
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct ForgetJson {
    todo_id: TodoId,
    messages: u64,
    runs: u64,
}

#[derive(Serialize)]
struct TenantJson {
    tenant: TenantId,
    todos: usize,
}

impl Forget {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        // A tenant is deleted if the command line names it, not the environment.
        let asks = !self.yes && !out.is_json() && question::can_be_answered();
        let todo_id = match (self.todo, &globals.tenant) {
            (Some(todo), _) => todo,
            (None, Some(tenant)) => {
                if asks && !agreed(of_tenant(tenant, globals), tenant, out)? {
                    return Ok(Outcome::NotClean);
                }
                return forget_tenant(tenant, globals, out);
            }
            (None, None) => return Err(CliError::Usage("--todo ID was expected".to_owned())),
        };
        if asks && !agreed(of_todo(&todo_id, globals), &todo_id, out)? {
            return Ok(Outcome::NotClean);
        }
        let memory = open(globals)?;
        memory.find(&todo_id)?;
        // A damaged todo must be forgettable, too.
        let messages = memory.len(&todo_id).unwrap_or(0);
        // Runs come first: without the todo they could no longer be named here.
        let runs = Runs::of(globals)?.forget(&todo_id)?;
        memory.maintenance().forget(&todo_id)?;
        if out.is_json() {
            out.json(&ForgetJson { todo_id, messages, runs })?;
        } else {
            let todo = style::paint(style::NAME, todo_id);
            let messages = text::count(messages, "message");
            let runs = match runs {
                0 => String::new(),
                runs => format!(", {}", text::count(runs, "run")),
            };
            out.line(format!("forgotten: {todo}, {messages}{runs}"))?;
        }
        Ok(Outcome::Done)
    }
}

/// Asks whether to delete this. The disk may be too full for the store to be read; then only the name is shown.
fn agreed(
    what: Result<String, CliError>,
    name: impl Display,
    out: &Output,
) -> Result<bool, CliError> {
    let what = match what {
        Err(error) if error.is_full() => name.to_string(),
        what => what?,
    };
    let is_agreed = question::agreed(&format!("Delete {} for good?", text::plain(&what)))?;
    if !is_agreed {
        out.note("nothing was deleted");
    }
    Ok(is_agreed)
}

/// What is deleted with a todo, in words. The store is not held open while somebody thinks about it.
fn of_todo(todo_id: &TodoId, globals: &Globals) -> Result<String, CliError> {
    let memory = store::open_for_reading(globals)?;
    let todo = memory.find(todo_id)?;
    // What is damaged can be deleted, too.
    let messages = memory.len(todo_id).unwrap_or(0);
    let blocks = memory.closed_blocks(todo_id).unwrap_or(0);
    let mut parts =
        vec![text::count(messages, "message"), text::count(u64::from(blocks), "closed block")];
    let payloads = memory.payloads().metas(&todo, 0, usize::MAX).unwrap_or_default();
    if !payloads.is_empty() {
        let bytes = payloads.iter().map(|payload| payload.bytes).sum();
        let payloads = text::count(payloads.len() as u64, "payload");
        parts.push(format!("{payloads} of {}", text::bytes(bytes)));
    }
    let runs = Runs::of(globals)?.of_todo(todo_id)?.len() as u64;
    if runs > 0 {
        parts.push(text::count(runs, "run"));
    }
    Ok(format!("{todo_id} ({})", parts.join(", ")))
}

/// What is deleted with a tenant, in words.
fn of_tenant(tenant: &TenantId, globals: &Globals) -> Result<String, CliError> {
    let own = match store::open_for_reading(globals) {
        Ok(own) => own,
        // Parts of the tenant may still be there.
        Err(CliError::NotFound(_)) => return Ok(format!("what is left of the tenant {tenant}")),
        Err(error) => return Err(error),
    };
    let (mut todos, mut messages) = (0, 0);
    for todo in walk::todos(&own) {
        todos += 1;
        messages += own.len(&todo?).unwrap_or(0);
    }
    let bytes = text::bytes(store::bytes_of(&store::folder(globals)?));
    let (todos, messages) = (text::count(todos, "todo"), text::count(messages, "message"));
    Ok(format!("the tenant {tenant} ({todos}, {messages}, {bytes} on this disk)"))
}

fn open(globals: &Globals) -> Result<Memory, CliError> {
    match store::open_existing(globals) {
        // A disk may be too full to open the store at all.
        Err(error) if error.is_full() && release_reserve(&store::folder(globals)?)? => {
            store::open_existing(globals)
        }
        opened => opened,
    }
}

/// Deletes a tenant. If this is interrupted, it can be repeated, and on each machine that has a folder of it.
fn forget_tenant(tenant: &TenantId, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
    let all = globals.of_tenant(None);
    let keeper = open(&all)?;
    let mut is_there = keeper.tenants().list()?.iter().any(|known| known.id == *tenant);
    // First, the tenant's token stops working. Its name stays until everything is gone.
    keeper.tenants().shut_out(tenant)?;
    let dir = store::tenants(&all)?.join(tenant.as_str());
    is_there |= dir.exists();
    // The remains of a folder may not be a store.
    let todos = match open(&Globals { adds_tenant: true, ..globals.clone() }) {
        Ok(own) => forget_todos(&own, globals)?,
        Err(CliError::NotFound(_)) => 0,
        Err(CliError::Memory(error)) if error.kind() == Kind::NotFound => 0,
        Err(error) => return Err(error),
    };
    if let Truth::Server(server) = all.truth()? {
        match server.forget_tenant(tenant) {
            Ok(()) => is_there = true,
            Err(KvError::NoTenant { was_forgotten, .. }) => is_there |= was_forgotten,
            Err(error) => return Err(foldback::Error::from(error).into()),
        }
    }
    if !is_there {
        return Err(CliError::NotFound(format!("there is no tenant {tenant}")));
    }
    // This deletes runs, the ledger, indexes, payload files and, unless they are in a database, the records.
    match std::fs::remove_dir_all(&dir) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            let what = format!("the folder {} could not be deleted", dir.display());
            return Err(CliError::Io { what, source });
        }
        _ => {}
    }
    keeper.tenants().remove(tenant)?;
    let tenant = tenant.clone();
    if out.is_json() {
        out.json(&TenantJson { tenant, todos })?;
    } else {
        let name = style::paint(style::NAME, tenant);
        out.line(format!("forgotten: {name}, {}", text::count(todos as u64, "todo")))?;
    }
    Ok(Outcome::Done)
}

/// Deletes all todos of a store, also those that are added meanwhile. One that cannot be deleted is warned of: its records
/// go with the store, but what it has in an object store stays.
fn forget_todos(own: &Memory, globals: &Globals) -> Result<usize, CliError> {
    let (mut forgotten, mut after) = (0, 0);
    loop {
        let todos = own.todos_after(after, 512)?;
        if todos.is_empty() {
            return Ok(forgotten);
        }
        for todo in todos {
            let (no, todo) = (todo.no(), todo.id());
            match own.maintenance().forget(todo) {
                Ok(()) => forgotten += 1,
                Err(error) => {
                    output::warn(globals, format_args!("{todo}: {error}"));
                    after = no;
                }
            }
        }
    }
}
