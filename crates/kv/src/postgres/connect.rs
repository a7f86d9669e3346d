//! Connections: one server after the other is asked, each within a limit of its own, until one is what the store needs.

use super::address::Address;
use super::fault::{Fault, Kind};
use super::schema;
use super::tenant::SETTING;
use crate::{Error, Mode};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

/// How long a connection that is no longer needed may take to say so to the server.
pub(super) const FAREWELL: Duration = Duration::from_millis(300);

/// A connection, and what drives it.
pub(super) struct Session {
    pub(super) client: Arc<Client>,
    driver: JoinHandle<()>,
    handle: Handle,
}

impl Session {
    /// Waits until the connection ends.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A connection whose server owes an answer would otherwise wait for it for ever.
        let driver = self.driver.abort_handle();
        self.handle.spawn(async move {
            tokio::time::sleep(FAREWELL).await;
            driver.abort();
        });
    }
}

/// Connects to the first server that answers and suits, beginning with the one that did so last. `hears` is called for
/// each notice; it is dropped when the connection ends.
pub(super) async fn connect<H>(address: &Address, hears: H) -> Result<Session, Fault>
where
    H: Fn() + Clone + Send + 'static,
{
    let mut failed = None;
    for (at, config) in address.servers() {
        let connecting = connect_to(address, config, hears.clone());
        match tokio::time::timeout(address.limit, connecting).await {
            Ok(Ok(session)) => {
                address.prefer(at);
                return Ok(session);
            }
            // If any server may suit later, another try is worth making.
            Ok(Err(fault)) if failed.is_some() && fault.kind() == Kind::Lasting => {}
            Ok(Err(fault)) => failed = Some(fault),
            Err(_) => failed = Some(Fault::Unconnected(None)),
        }
    }
    Err(failed.unwrap_or(Fault::Unconnected(None)))
}

async fn connect_to<H>(address: &Address, config: &Config, hears: H) -> Result<Session, Fault>
where
    H: Fn() + Send + 'static,
{
    let fault = |error| Fault::Unconnected(Some(error));
    let session = match address.tls.clone() {
        Some(tls) => drive(config.connect(tls).await.map_err(fault)?, hears),
        None => drive(config.connect(NoTls).await.map_err(fault)?, hears),
    };
    check(address, &session.client).await?;
    Ok(session)
}

fn drive<S, T, H>((client, mut connection): (Client, Connection<S, T>), hears: H) -> Session
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn() + Send + 'static,
{
    let driver = tokio::spawn(async move {
        // A request on the connection reports what ended it.
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                hears();
            }
        }
    });
    Session { client: Arc::new(client), driver, handle: Handle::current() }
}

/// Checks in one round trip that a server suits: that it takes writes and keeps what it acknowledges, if the store is
/// open for writing, that it knows the tenant of the connection, and that it holds the store that was opened.
async fn check(address: &Address, client: &Client) -> Result<(), Fault> {
    let id = address.id.get();
    if id.is_none() && address.mode == Mode::ReadOnly && address.tenant.is_none() {
        return Ok(());
    }
    let row = match &address.tenant {
        Some(tenant) => format!("foldback_tenant WHERE name = '{tenant}' AND NOT is_forgotten"),
        None => "foldback_store WHERE one = 1".to_owned(),
    };
    let of_store = match id {
        Some(_) => format!(
            "(SELECT CAST(id AS TEXT) FROM {row}), (SELECT max(version) FROM foldback_migration)"
        ),
        None => "CAST(NULL AS TEXT), CAST(NULL AS INTEGER)".to_owned(),
    };
    let sql = format!(
        "SELECT current_setting('transaction_read_only') = 'on', \
         COALESCE(current_setting('synchronous_commit', true) = 'off', FALSE), {of_store}, \
         COALESCE(current_setting('{SETTING}', true), '')"
    );
    let fault = |error| Fault::Unconnected(Some(error));
    let rows = client.query_typed(&sql, &[]).await.map_err(fault)?;
    let Some(row) = rows.first() else { return Err(Fault::Unconnected(None)) };
    let (is_standby, may_lose_commits) =
        (row.try_get(0).map_err(fault)?, row.try_get(1).map_err(fault)?);
    let (found, version) = (row.try_get(2).map_err(fault)?, row.try_get(3).map_err(fault)?);
    let (found, version): (Option<String>, Option<i32>) = (found, version);
    let said: String = row.try_get(4).map_err(fault)?;
    let unfit = |detail| {
        let path = address.name.clone();
        Err(Fault::Unfit(Box::new(Error::Unfit { path, detail })))
    };
    if let Some(tenant) = &address.tenant {
        if said != tenant.as_str() {
            return unfit(format!(
                "the setting {SETTING} of a connection for the tenant {tenant} is {said:?}; a pooler must pass the \
                 parameter options on, or the role must have the setting"
            ));
        }
        if id.is_some() && found.is_none() {
            let gone = Error::NoTenant { name: tenant.to_string(), was_forgotten: true };
            return Err(Fault::Unfit(Box::new(gone)));
        }
    }
    if address.mode == Mode::ReadWrite {
        if is_standby {
            return Err(Fault::Standby);
        }
        if may_lose_commits {
            let detail = "its setting synchronous_commit is off, so it would lose acknowledged writes in a crash; set \
                          it to on, for example with ALTER ROLE ... SET synchronous_commit = on";
            return unfit(detail.to_owned());
        }
    }
    let Some(id) = id else { return Ok(()) };
    if found.as_ref() != Some(id) {
        let found = found.as_deref().unwrap_or("none");
        return unfit(format!(
            "the id of its store is {found}, and the store that was opened has the id {id}; its address leads to \
             another database than before"
        ));
    }
    match version.map(|version| schema::refuse_later(version, &address.name)) {
        Some(Err(error)) => Err(Fault::Unfit(Box::new(error))),
        _ => Ok(()),
    }
}
