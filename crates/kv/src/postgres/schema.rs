//! The tables, and how a database gets them.
//!
//! | table | a row |
//! |---|---|
//! | `foldback_record` | a record, with its version and checksum as every engine has them |
//! | `foldback_head` | the head of a todo, its checksum, and the commit that set it; it stays when the todo is forgotten |
//! | `foldback_slot` | how many commits a slot has seen, and a digest of the last one |
//! | `foldback_commit` | a commit of the last hour, so that one whose answer was lost is not made twice |
//! | `foldback_store` | the one row with the store's id |
//! | `foldback_tenant` | a tenant: its number, its name, the id of its store, and whether it was forgotten |
//! | `foldback_migration` | a version of these tables, and when the database got it |
//!
//! The tables are found by the `search_path` of the role that asks, so a database holds one store in each schema.

use super::pool::{Asked, Pool};
use super::slot::Slots;
use super::tenant;
use crate::{Error, Mode};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// What each version of the tables adds to the one before. A version is made in one transaction, and stays as it is
/// once it has been released.
const MIGRATIONS: [&str; 3] = [
    "
    CREATE TABLE foldback_store (
        one SMALLINT PRIMARY KEY CHECK (one = 1),
        id UUID NOT NULL
    );
    CREATE TABLE foldback_head (
        slot SMALLINT NOT NULL,
        todo INTEGER NOT NULL,
        head BIGINT NOT NULL,
        checksum BIGINT NOT NULL,
        token UUID NOT NULL,
        PRIMARY KEY (slot, todo)
    );
    CREATE TABLE foldback_record (
        slot SMALLINT NOT NULL,
        todo INTEGER NOT NULL,
        space SMALLINT NOT NULL,
        n BIGINT NOT NULL,
        record BYTEA NOT NULL,
        PRIMARY KEY (slot, todo, space, n)
    );
    CREATE TABLE foldback_slot (
        slot SMALLINT PRIMARY KEY,
        number BIGINT NOT NULL,
        digest BIGINT NOT NULL
    );
    CREATE TABLE foldback_commit (
        slot SMALLINT NOT NULL,
        token UUID NOT NULL,
        made TIMESTAMPTZ NOT NULL DEFAULT now(),
        PRIMARY KEY (slot, token)
    );
    ",
    // Old tokens are found without reading the others.
    "CREATE INDEX foldback_commit_made ON foldback_commit (slot, made);",
    // Each tenant has slots of its own. The tables are locked in the order in which writers lock them.
    "
    LOCK TABLE foldback_commit, foldback_head, foldback_record, foldback_slot IN ACCESS EXCLUSIVE MODE;
    ALTER TABLE foldback_head ALTER COLUMN slot TYPE INTEGER;
    ALTER TABLE foldback_record ALTER COLUMN slot TYPE INTEGER;
    ALTER TABLE foldback_slot ALTER COLUMN slot TYPE INTEGER;
    ALTER TABLE foldback_commit ALTER COLUMN slot TYPE INTEGER;
    CREATE TABLE foldback_tenant (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        id UUID NOT NULL,
        is_forgotten BOOLEAN NOT NULL DEFAULT FALSE
    );
    ",
];

const LEDGER: &str = "
    CREATE TABLE IF NOT EXISTS foldback_migration (
        version INTEGER PRIMARY KEY,
        made TIMESTAMPTZ NOT NULL DEFAULT now()
    )";

/// The version that this program makes.
const VERSION: i32 = MIGRATIONS.len() as i32;

/// How long opening a store waits for its server: a person waits with it.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often the tables are looked for while others make them.
const ATTEMPTS: usize = 10;

/// Returns the id of the store in the database, and its slots. For writing, the tables are made if there are none, and
/// brought up to the present version.
pub(super) fn open(pool: &Pool, mode: Mode) -> Result<(String, Slots), Error> {
    for attempt in 1.. {
        let found = pool.ask_for(PATIENCE, version)?;
        match found {
            // A reader needs nothing that the first version lacks.
            Some(found) if found >= VERSION || mode == Mode::ReadOnly => {
                refuse_later(found, &pool.address.name)?;
                break;
            }
            None if mode == Mode::ReadOnly => {
                return Err(Error::NotFound { path: pool.address.name.clone() });
            }
            found => {
                let made = pool.once_at_length(|client| migrate(client, found.unwrap_or(0)));
                match made {
                    Ok(()) => {}
                    // Another process made them at the same time, or is about to.
                    Err(fault) if attempt < ATTEMPTS && is_race(&fault) => {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    Err(fault) => return Err(not_made(fault, pool)),
                }
            }
        }
    }
    let (id, slots) = match &pool.address.tenant {
        Some(tenant) => tenant::find(pool, tenant)?,
        None => (own_id(pool)?, Slots::of_tenant(0)),
    };
    // Each connection that is made from now on must lead to this store.
    Ok((pool.address.id.get_or_init(|| id).clone(), slots))
}

/// Returns the id of the store that belongs to no tenant.
fn own_id(pool: &Pool) -> Result<String, Error> {
    let id = pool.ask(|client| -> Asked<Option<String>> {
        Box::pin(async move {
            let sql = "SELECT id::text FROM foldback_store WHERE one = 1";
            let rows = client.query_typed(sql, &[]).await?;
            rows.first().map(|row| row.try_get(0)).transpose()
        })
    })?;
    let detail = "its table foldback_store has no row".to_owned();
    id.ok_or_else(|| Error::Format { path: pool.address.name.clone(), detail })
}

/// Returns an error if a version of the tables is later than those that this program knows. `name` is the database's.
pub(super) fn refuse_later(found: i32, name: &Path) -> Result<(), Error> {
    if found <= VERSION {
        return Ok(());
    }
    Err(Error::FormatVersion {
        path: name.to_owned(),
        found: u64::try_from(found).unwrap_or_default(),
        expected: MIGRATIONS.len() as u64,
    })
}

fn is_race(fault: &super::fault::Fault) -> bool {
    fault.kind() == super::fault::Kind::InTheWay
        || [&SqlState::UNIQUE_VIOLATION, &SqlState::DUPLICATE_TABLE, &SqlState::DUPLICATE_OBJECT]
            .iter()
            .any(|state| fault.is(state))
}

fn not_made(fault: super::fault::Fault, pool: &Pool) -> Error {
    let is_refused = fault.is(&SqlState::INSUFFICIENT_PRIVILEGE);
    match fault.into_error(&pool.address.name) {
        Error::Refused { path, detail } if is_refused => {
            let detail = format!(
                "{detail}; it has no tables of this version yet, and this role may not make them: open the store \
                 once as the role that owns them"
            );
            Error::Refused { path, detail }
        }
        error => error,
    }
}

/// Returns the version of the tables; `None` if there are none.
fn version(client: Arc<Client>) -> Asked<Option<i32>> {
    Box::pin(async move {
        let sql = "SELECT COALESCE(max(version), 0) FROM foldback_migration";
        match client.query_typed(sql, &[]).await {
            Ok(rows) => {
                let found = rows.first().map(|row| row.try_get::<_, i32>(0)).transpose()?;
                Ok(found.filter(|version| *version > 0))
            }
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

/// Makes the versions after this one, each in a transaction of its own.
fn migrate(client: Arc<Client>, from: i32) -> Asked<()> {
    Box::pin(async move {
        client.batch_execute(LEDGER).await?;
        for (version, tables) in (1..).zip(MIGRATIONS).skip(usize::try_from(from).unwrap_or(0)) {
            let mut sql = format!(
                "BEGIN; INSERT INTO foldback_migration (version) VALUES ({version}); {tables}"
            );
            if version == 1 {
                let id = super::token::random_id();
                sql.push_str(&format!("INSERT INTO foldback_store (one, id) VALUES (1, '{id}');"));
            }
            sql.push_str("COMMIT");
            if let Err(error) = client.batch_execute(&sql).await {
                // The transaction of a text that failed is still open.
                client.batch_execute("ROLLBACK").await?;
                return Err(error);
            }
        }
        Ok(())
    })
}
