//! `foldback tenant`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::{Args, Subcommand};
use foldback::core::{TenantId, Timestamp};
use foldback::{Memory, Quota, Truth};
use foldback_kv::Engine;
use serde::Serialize;

/// Add tenants, which have stores and tokens of their own
///
/// A tenant's todos are in a store of its own: in the folder `tenants` of the store, or in the same database. No search and
/// no reference leads from one tenant to another. `--tenant NAME` has any command work in a tenant's store, and `foldback
/// gateway --tenants` answers each tenant by its token. `foldback forget --tenant NAME` deletes everything of one.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback tenant add acme --max-todos 1000 --max-bytes 50000000
  foldback gateway --tenants
  foldback --tenant acme todos
  foldback forget --tenant acme")]
pub(crate) struct Tenant {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    Add(Add),
    Token(Token),
    Limit(Limit),
    Show(Show),
    List(List),
    Secure(Secure),
}

/// Add a tenant, and print its token
///
/// The token is shown once; only a digest of it is stored. Clients of the gateway send it as `x-foldback-token`, and
/// `foldback wrap` takes it from FOLDBACK_GATEWAY_TOKEN. In a copy that `foldback backup` made, this gives a tenant of the
/// original a new, empty store.
///
/// JSON: {"tenant", "token"}
#[derive(Args)]
struct Add {
    /// The name: up to 32 of a-z, 0-9 and -
    #[arg(value_name = "NAME")]
    name: TenantId,

    #[command(flatten)]
    limits: Limits,
}

/// Replace the token of a tenant, and print the new one
///
/// A gateway that is running takes the old token for at most five more seconds.
///
/// JSON: {"tenant", "token"}
#[derive(Args)]
struct Token {
    /// The tenant
    #[arg(value_name = "NAME")]
    name: TenantId,
}

/// Set the limits of a tenant
///
/// They replace those that it had. Processes that have its store open keep to the old ones until they open it again.
///
/// JSON: {"tenant", "limits"}
#[derive(Args)]
struct Limit {
    /// The tenant
    #[arg(value_name = "NAME")]
    name: TenantId,

    #[command(flatten)]
    limits: Limits,
}

/// Show a tenant: since when it has its token, its limits, and how much it holds
///
/// JSON: {"tenant", "since", "limits", "todos", "messages"}
#[derive(Args)]
struct Show {
    /// The tenant
    #[arg(value_name = "NAME")]
    name: TenantId,
}

/// List the tenants
///
/// JSON: [{"tenant", "since"}], with "is_being_forgotten" of one whose deletion was interrupted
#[derive(Args)]
struct List {}

/// Have the database restrict a tenant's rows to the tenant's own connections
///
/// Every statement names the rows of one tenant. With this, the server checks this again, by row-level security. The
/// role of the address must own the tables. Where a pooler is in front of the server, it must keep a connection's settings:
/// docs/scaling.md.
///
/// JSON: {"secured"}
#[derive(Args)]
struct Secure {}

/// What one tenant may hold.
#[derive(Args)]
struct Limits {
    /// The most todos
    #[arg(long, value_name = "N")]
    max_todos: Option<u32>,

    /// The most messages of one todo
    #[arg(long, value_name = "N")]
    max_messages: Option<u64>,

    /// The most closed blocks of one todo
    #[arg(long, value_name = "N")]
    max_blocks: Option<u32>,

    /// The most bytes of the messages of one todo
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,

    /// The most bytes of one result or argument that is stored outside the conversation
    #[arg(long, value_name = "BYTES")]
    max_payload_bytes: Option<u64>,
}

impl Limits {
    fn quota(&self) -> Quota {
        Quota::default()
            .with_todos(self.max_todos)
            .with_messages(self.max_messages)
            .with_blocks(self.max_blocks)
            .with_bytes(self.max_bytes)
            .with_payload_bytes(self.max_payload_bytes)
    }
}

#[derive(Serialize)]
struct TokenJson {
    tenant: TenantId,
    token: String,
}

#[derive(Serialize)]
struct TenantJson {
    tenant: TenantId,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_being_forgotten: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Quota>,
    #[serde(skip_serializing_if = "Option::is_none")]
    todos: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
}

impl TenantJson {
    fn of(tenant: TenantId) -> Self {
        let (since, limits, todos, messages) = (None, None, None, None);
        Self { tenant, is_being_forgotten: false, since, limits, todos, messages }
    }
}

#[derive(Serialize)]
struct SecuredJson {
    secured: bool,
}

impl Tenant {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        if globals.engine() == Engine::Memory {
            let what = "the memory engine keeps nothing, so it has no tenants";
            return Err(CliError::Usage(what.to_owned()));
        }
        if globals.tenant.is_some() {
            let what = "--tenant names the store that a command works in, and this one works on the tenants of the store; \
                        give the name alone";
            return Err(CliError::Usage(what.to_owned()));
        }
        let all = &globals.of_tenant(None);
        match self.command {
            Task::Add(add) => add.run(all, out),
            Task::Token(token) => token.run(all, out),
            Task::Limit(limit) => limit.run(all, out),
            Task::Show(show) => show.run(all, out),
            Task::List(list) => list.run(all, out),
            Task::Secure(secure) => secure.run(all, out),
        }
    }
}

impl Add {
    fn run(self, all: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_writing(all, out)?;
        let known = known(&memory, &self.name)?;
        // A copy of a store knows its tenants and has none of their folders.
        let is_there = store::folder(&all.of_tenant(Some(self.name.clone()))).is_ok();
        if known.as_ref().is_some_and(|known| is_there || !known.is_let_in()) {
            return Err(CliError::Usage(format!(
                "there is a tenant {0} already; `foldback tenant token {0}` gives it a new token",
                self.name
            )));
        }
        let truth = all.truth()?;
        if let Truth::Server(server) = &truth {
            server.add_tenant(&self.name).map_err(foldback::Error::from)?;
        }
        let globals = Globals { adds_tenant: true, ..all.of_tenant(Some(self.name.clone())) };
        let own = store::open_for_writing(&globals, out)?;
        if !own.todos(None, 1)?.is_empty() {
            return Err(CliError::Usage(format!(
                "the store of {0} holds todos already; `foldback forget --tenant {0}` deletes them",
                self.name
            )));
        }
        own.maintenance().set_quota(&self.limits.quota())?;
        // This comes last, so that no request arrives before everything is there.
        let token = match known {
            Some(_) => memory.tenants().renew(&self.name)?,
            None => memory.tenants().let_in(&self.name)?,
        };
        print_token(self.name, token, out)?;
        Ok(Outcome::Done)
    }
}

/// Returns what the store knows of a tenant.
fn known(memory: &Memory, tenant: &TenantId) -> Result<Option<foldback::Tenant>, CliError> {
    Ok(memory.tenants().list()?.into_iter().find(|known| known.id == *tenant))
}

fn expected(memory: &Memory, tenant: &TenantId) -> Result<foldback::Tenant, CliError> {
    known(memory, tenant)?.ok_or_else(|| {
        CliError::NotFound(format!(
            "there is no tenant {tenant}; `foldback tenant add {tenant}` adds one"
        ))
    })
}

fn print_token(tenant: TenantId, token: String, out: &Output) -> Result<(), CliError> {
    let printed = match out.is_json() {
        true => out.json(&TokenJson { tenant: tenant.clone(), token }),
        false => out.line(&token),
    };
    printed.map_err(|error| match error.is_broken_pipe() {
        true => CliError::UnreadToken(tenant.clone()),
        false => error,
    })?;
    if out.is_json() {
        return Ok(());
    }
    out.note(format_args!("this is the token of {tenant}, which is not shown again"));
    Ok(())
}

impl Token {
    fn run(self, all: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_existing(all)?;
        expected(&memory, &self.name)?;
        let token = memory.tenants().renew(&self.name)?;
        print_token(self.name, token, out)?;
        Ok(Outcome::Done)
    }
}

impl Limit {
    fn run(self, all: &Globals, out: &Output) -> Result<Outcome, CliError> {
        expected(&store::open_existing(all)?, &self.name)?;
        let own = store::open_existing(&all.of_tenant(Some(self.name.clone())))?;
        own.maintenance().set_quota(&self.limits.quota())?;
        let limits = Some(self.limits.quota());
        print(&TenantJson { limits, ..TenantJson::of(self.name) }, out)
    }
}

impl Show {
    fn run(self, all: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let known = expected(&store::open_for_reading(all)?, &self.name)?;
        let own = store::open_for_reading(&all.of_tenant(Some(self.name)))?;
        let (mut todos, mut messages) = (0, 0);
        for todo in own.todos(None, usize::MAX)? {
            todos += 1;
            // A damaged todo counts as one without messages.
            messages += own.len(&todo).unwrap_or(0);
        }
        let tenant = TenantJson {
            is_being_forgotten: !known.is_let_in(),
            since: Some(known.since),
            limits: Some(own.maintenance().quota()?),
            todos: Some(todos),
            messages: Some(messages),
            ..TenantJson::of(known.id)
        };
        print(&tenant, out)
    }
}

impl List {
    fn run(self, all: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let known = store::open_for_reading(all)?.tenants().list()?;
        let rows: Vec<TenantJson> = known
            .into_iter()
            .map(|known| TenantJson {
                is_being_forgotten: !known.is_let_in(),
                since: Some(known.since),
                ..TenantJson::of(known.id)
            })
            .collect();
        if out.is_json() {
            out.json(&rows)?;
            return Ok(Outcome::Done);
        }
        for row in &rows {
            print(row, out)?;
        }
        Ok(Outcome::Done)
    }
}

impl Secure {
    fn run(self, all: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let Truth::Server(server) = all.truth()? else {
            let what = "only a database has row-level security; the tenants of this engine are in folders of their own";
            return Err(CliError::Usage(what.to_owned()));
        };
        server.secure_rows().map_err(foldback::Error::from)?;
        if !server.has_secure_rows().map_err(foldback::Error::from)? {
            let what = "the role of this address is exempt from it, as superusers are and roles with BYPASSRLS; let gateways \
                        connect as another";
            crate::output::warn(all, what);
        }
        if out.is_json() {
            out.json(&SecuredJson { secured: true })?;
        } else {
            out.line("the database keeps the rows of tenants apart")?;
        }
        Ok(Outcome::Done)
    }
}

fn print(tenant: &TenantJson, out: &Output) -> Result<Outcome, CliError> {
    if out.is_json() {
        out.json(tenant)?;
        return Ok(Outcome::Done);
    }
    let mut line = style::paint(style::NAME, &tenant.tenant);
    if let (Some(todos), Some(messages)) = (tenant.todos, tenant.messages) {
        let held = (text::count(todos, "todo"), text::count(messages, "message"));
        line.push_str(&format!("  {}, {}", held.0, held.1));
    }
    if tenant.is_being_forgotten {
        line.push_str("  is being forgotten");
    } else if let Some(since) = tenant.since {
        line.push_str(&format!("  token since {since}"));
    }
    if let Some(limits) = &tenant.limits {
        let named = [
            (limits.todos.map(u64::from), "todo", ""),
            (limits.messages, "message", " per todo"),
            (limits.blocks.map(u64::from), "block", " per todo"),
            (limits.bytes, "byte", " per todo"),
            (limits.payload_bytes, "byte", " per payload"),
        ];
        let named = named
            .iter()
            .filter_map(|(most, what, per)| Some(format!("{}{per}", text::count((*most)?, what))));
        let named: Vec<_> = named.collect();
        let limits = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
        line.push_str(&format!("  limits: {limits}"));
    }
    out.line(line)?;
    Ok(Outcome::Done)
}
