//! Tenants: stores of their own in the tables of one database.
//!
//! A tenant has a number, and the [slots](super::slot) that begin with it. Every statement on records, heads and
//! commits names the slots of one store, which is the first wall between tenants. The second one is a policy of the server: each connection of a tenant says
//! its name (`foldback.tenant`), and the server shows and takes rows of its slots alone, whatever is asked.
//!
//! A number and a name are given once. A tenant that was forgotten keeps its row in `foldback_tenant`, and in each of its
//! slots a number of commits that no writer expects, so that nothing is written for it by a process that still has it open.

use super::address::Address;
use super::fault::Kind;
use super::io::Io;
use super::pool::{Asked, PATIENCE, Pauses, Pool};
use super::slot::{SLOTS, Slots};
use super::{schema, token};
use crate::{Error, Mode, Server};
use foldback_core::TenantId;
use std::sync::Arc;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// The setting by which a connection names its tenant.
pub(super) const SETTING: &str = "foldback.tenant";

/// How many commits a slot of a forgotten tenant is said to have. No writer expects fewer than -1.
pub(super) const FORGOTTEN: i64 = -2;

/// How often another number is tried, if others add tenants at the same time.
const ATTEMPTS: usize = 20;

/// See [`Server::add_tenant`].
pub(crate) fn add(server: &Server, tenant: &TenantId) -> Result<(), Error> {
    let pool = pool_of(server, None)?;
    schema::open(&pool, Mode::ReadWrite)?;
    for attempt in 1.. {
        let (name, id) = (tenant.clone(), token::random_id());
        match pool.once(move |client| insert(client, name, id)) {
            Ok(()) => break,
            Err(fault) if attempt < ATTEMPTS && fault.is(&SqlState::UNIQUE_VIOLATION) => {}
            Err(fault) => return Err(fault.into_error(&pool.address.name)),
        }
    }
    find(&pool, tenant).map(drop)
}

/// See [`Server::forget_tenant`].
pub(crate) fn forget(server: &Server, tenant: &TenantId) -> Result<(), Error> {
    // As the tenant, whose rows a policy hides from everybody else.
    let pool = pool_of(server, Some(tenant))?;
    let (_, slots) = schema::open(&pool, Mode::ReadWrite)?;
    let (first, last) = slots.range().into_inner();
    // Each commit holds the row of its slot last, so this waits for those that are being made, and no other is made.
    let fence = format!(
        "INSERT INTO foldback_slot (slot, number, digest) \
         SELECT s, {FORGOTTEN}, 0 FROM generate_series({first}, {last}) AS s ORDER BY s \
         ON CONFLICT (slot) DO UPDATE SET number = excluded.number, digest = excluded.digest"
    );
    run(&pool, &fence)?;
    let delete = |table| format!("DELETE FROM {table} WHERE slot BETWEEN {first} AND {last}; ");
    let tables = ["foldback_commit", "foldback_head", "foldback_record"].map(delete).concat();
    let name = format!("UPDATE foldback_tenant SET is_forgotten = TRUE WHERE name = '{tenant}'");
    run(&pool, &format!("{tables}{name}"))
}

/// See [`Server::secure_rows`].
pub(crate) fn secure_rows(server: &Server) -> Result<(), Error> {
    let pool = pool_of(server, None)?;
    schema::open(&pool, Mode::ReadWrite)?;
    let named = format!("COALESCE(current_setting('{SETTING}', true), '')");
    let of_slot = format!(
        "slot / {SLOTS} = CASE WHEN {named} = '' THEN 0 \
         ELSE (SELECT t.number FROM foldback_tenant AS t WHERE t.name = {named}) END"
    );
    let rules = TABLES.map(|table| (table, of_slot.clone()));
    let of_tenants = ("foldback_tenant", format!("{named} IN ('', name)"));
    let mut sql = String::new();
    for (table, rule) in rules.into_iter().chain([of_tenants]) {
        sql.push_str(&format!(
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY; \
             DROP POLICY IF EXISTS {table}_tenant ON {table}; CREATE POLICY {table}_tenant ON {table} USING ({rule}); "
        ));
    }
    run(&pool, &sql)
}

/// See [`Server::has_secure_rows`].
pub(crate) fn has_secure_rows(server: &Server) -> Result<bool, Error> {
    pool_of(server, None)?.ask(|client| -> Asked<bool> {
        Box::pin(async move {
            let all = TABLES.into_iter().chain(["foldback_tenant"]);
            let sql: Vec<String> = all
                .map(|table| {
                    format!(
                        "row_security_active('{table}') AND EXISTS (SELECT 1 FROM pg_policy \
                         WHERE polrelid = '{table}'::regclass AND polname = '{table}_tenant')"
                    )
                })
                .collect();
            let sql = format!("SELECT {}", sql.join(" AND "));
            let rows = client.query_typed(&sql, &[]).await?;
            let found = rows.first().map(|row| row.try_get::<_, bool>(0)).transpose()?;
            Ok(found == Some(true))
        })
    })
}

/// The tables whose rows belong to tenants.
const TABLES: [&str; 4] = ["foldback_record", "foldback_head", "foldback_slot", "foldback_commit"];

/// Returns the id of a tenant's store, and its slots.
pub(super) fn find(pool: &Pool, tenant: &TenantId) -> Result<(String, Slots), Error> {
    let name = tenant.clone();
    let found = pool.ask(move |client| look_up(client, name.clone()))?;
    let gone = |was_forgotten| Error::NoTenant { name: tenant.to_string(), was_forgotten };
    match found {
        Some((_, _, true)) => Err(gone(true)),
        Some((number @ 1..=Slots::LAST_TENANT, id, false)) => Ok((id, Slots::of_tenant(number))),
        _ => Err(gone(false)),
    }
}

fn look_up(client: Arc<Client>, tenant: TenantId) -> Asked<Option<(i32, String, bool)>> {
    Box::pin(async move {
        let sql = "SELECT number, id::text, is_forgotten FROM foldback_tenant WHERE name = $1";
        match client.query_typed(sql, &[(&tenant.as_str(), Type::TEXT)]).await {
            Ok(rows) => {
                let read = |row: &tokio_postgres::Row| {
                    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
                };
                rows.first().map(read).transpose()
            }
            // Tables of a version that knows no tenants.
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

fn insert(client: Arc<Client>, tenant: TenantId, id: String) -> Asked<()> {
    Box::pin(async move {
        let sql = "INSERT INTO foldback_tenant (number, name, id) \
                   SELECT COALESCE(max(number), 0) + 1, $1, $2::text::uuid FROM foldback_tenant \
                   ON CONFLICT (name) DO NOTHING";
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&tenant.as_str(), Type::TEXT), (&id, Type::TEXT)];
        client.execute_typed(sql, &params).await.map(drop)
    })
}

fn pool_of(server: &Server, tenant: Option<&TenantId>) -> Result<Pool, Error> {
    let address = Address::of(&server.clone().with_tenant(tenant.cloned()), Mode::ReadWrite)?;
    let io = Io::start().map_err(crate::error::reading("start a thread for", &address.name))?;
    Ok(Pool::new(address, io))
}

/// Runs statements as one transaction, again if others were in the way. It must do no harm if it is run twice.
fn run(pool: &Pool, sql: &str) -> Result<(), Error> {
    let sql = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {sql}; COMMIT");
    let mut pauses = Pauses::of(PATIENCE);
    loop {
        let sql = sql.clone();
        let ran = pool.once_at_length(move |client| -> Asked<()> {
            Box::pin(async move {
                let ran = client.batch_execute(&sql).await;
                if ran.is_err() {
                    // The transaction of a text that failed is still open.
                    let _ = client.batch_execute("ROLLBACK").await;
                }
                ran
            })
        });
        match ran {
            Ok(()) => return Ok(()),
            Err(fault) if fault.kind() == Kind::Lasting || !pauses.pause() => {
                return Err(fault.into_error(&pool.address.name));
            }
            Err(_) => {}
        }
    }
}
