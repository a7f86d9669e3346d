//! The tenants of a gateway: each has a store of its own, and is known by its token.

use crate::guard::TOKEN;
use crate::refusal::Refused;
use crate::{Gateway, GatewayConfig, Keeping};
use axum::http::{HeaderMap, StatusCode};
use foldback::Tenant;
use foldback_core::{TenantId, Timestamp};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

/// The tenants whose conversations a gateway records, each in a store of its own. Both functions may wait for a store.
pub trait Tenants: Send + Sync {
    /// Returns whose token this is; `None` if it is nobody's.
    ///
    /// # Errors
    /// When that cannot be found out now, with the reason.
    fn of_token(&self, token: &[u8]) -> Result<Option<Tenant>, String>;

    /// Returns the configuration of a tenant's own gateway, with its store. Its token and its tenants are ignored.
    ///
    /// # Errors
    /// When there is none, with the reason.
    fn config(&self, tenant: &TenantId) -> Result<GatewayConfig, String>;
}

/// How many tenants are open at once, unless more of them were at work within the time after which one counts as idle. That
/// is longer than an answer may take.
const MOST_OPEN: usize = 64;
const IDLE: Duration = Duration::from_secs(60 * 60);

/// After how long a store that could not be opened is tried again. Meanwhile requests pass unrecorded.
const AGAIN: Duration = Duration::from_secs(5);

/// The gateways of tenants, which are opened by their first request.
pub(crate) struct Rooms {
    tenants: Arc<dyn Tenants>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<TenantId, Room>,
    closing: Vec<JoinHandle<()>>,
    has_ended: bool,
}

struct Room {
    /// When the tenant got the token with which it was opened. One that was forgotten and added again has another.
    since: Timestamp,
    gateway: Arc<OnceCell<Arc<Gateway>>>,
    used: Instant,
}

impl Rooms {
    pub(crate) fn new(tenants: Arc<dyn Tenants>) -> Self {
        Self { tenants, state: Mutex::default() }
    }

    /// Returns the gateway of the tenant whose token a request carries.
    pub(crate) async fn of(&self, headers: &HeaderMap) -> Result<Arc<Gateway>, Refused> {
        let token = headers.get(TOKEN).map(|token| token.as_bytes().to_vec());
        let unknown = || {
            (StatusCode::FORBIDDEN, format!("a tenant's token was expected in the header {TOKEN}"))
        };
        let token = token.ok_or_else(unknown)?;
        let tenants = self.tenants.clone();
        let unavailable = |why| (StatusCode::SERVICE_UNAVAILABLE, why);
        let found = beside(move || tenants.of_token(&token)).await.map_err(unavailable)?;
        let tenant = found.ok_or_else(unknown)?;
        let ending = || unavailable("the gateway is ending".to_owned());
        let cell = self.enter(&tenant).ok_or_else(ending)?;
        let opening = cell.get_or_try_init(|| self.begin(&tenant.id));
        let opened = opening.await.map_err(unavailable)?.clone();
        if matches!(opened.config.keeping, Keeping::Impossible(_)) && opened.begun.elapsed() > AGAIN
        {
            self.leave(&tenant.id, &cell);
        }
        Ok(opened)
    }

    async fn begin(&self, tenant: &TenantId) -> Result<Arc<Gateway>, String> {
        let (tenants, tenant) = (self.tenants.clone(), tenant.clone());
        let config = beside(move || tenants.config(&tenant)).await?;
        let config = GatewayConfig { token: None, tenants: None, ..config };
        Gateway::new(config).map(Arc::new).map_err(|error| error.to_string())
    }

    /// Returns the place of a tenant's gateway; `None` once no more are opened. Of too many, those that are idle are closed.
    fn enter(&self, tenant: &Tenant) -> Option<Arc<OnceCell<Arc<Gateway>>>> {
        let mut state = self.state.lock();
        if state.has_ended {
            return None;
        }
        let now = Instant::now();
        match state.open.get_mut(&tenant.id) {
            Some(room) if room.since == tenant.since => {
                room.used = now;
                return Some(room.gateway.clone());
            }
            Some(_) => state.close(&tenant.id),
            None => {}
        }
        if state.open.len() >= MOST_OPEN {
            let is_idle = |(_, room): &(&TenantId, &Room)| room.used.elapsed() > IDLE;
            let idle = state.open.iter().filter(is_idle).map(|(id, _)| id.clone());
            idle.collect::<Vec<_>>().iter().for_each(|id| state.close(id));
        }
        let gateway = Arc::default();
        let room = Room { since: tenant.since, gateway: Arc::clone(&gateway), used: now };
        state.open.insert(tenant.id.clone(), room);
        Some(gateway)
    }

    /// Gives up a gateway whose store could not be opened.
    fn leave(&self, tenant: &TenantId, gateway: &Arc<OnceCell<Arc<Gateway>>>) {
        let mut state = self.state.lock();
        if state.open.get(tenant).is_some_and(|room| Arc::ptr_eq(&room.gateway, gateway)) {
            state.close(tenant);
        }
    }

    /// Records what was said, to its end. No gateway is opened afterwards.
    pub(crate) async fn finish(&self) {
        let closing = {
            let mut state = self.state.lock();
            state.has_ended = true;
            let open: Vec<TenantId> = state.open.keys().cloned().collect();
            open.iter().for_each(|id| state.close(id));
            std::mem::take(&mut state.closing)
        };
        for closed in closing {
            // One that failed has recorded what it could.
            let _ = closed.await;
        }
    }
}

impl State {
    fn close(&mut self, tenant: &TenantId) {
        self.closing.retain(|closing| !closing.is_finished());
        if let Some(room) = self.open.remove(tenant) {
            self.closing.push(tokio::spawn(close(room.gateway)));
        }
    }
}

async fn close(gateway: Arc<OnceCell<Arc<Gateway>>>) {
    if let Some(gateway) = gateway.get() {
        gateway.finisher().finish_own().await;
    }
    // A store waits for its threads.
    let _ = tokio::task::spawn_blocking(move || drop(gateway)).await;
}

/// Runs what may wait for a store on a thread for that.
async fn beside<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(run).await.unwrap_or_else(|error| Err(error.to_string()))
}
