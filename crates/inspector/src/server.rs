//! The server: what it listens on, and what its answers share.

use crate::InspectorError;
use crate::api::{self, Sessions};
use crate::guard::guard;
use crate::pages;
use crate::pictures::{Drawing, Pictures};
use crate::runs::Runs;
use crate::token::Secret;
use axum::Router;
use axum::serve::ListenerExt as _;
use foldback::Memory;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// An inspector that already listens.
pub struct Inspector {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// What the answers share.
pub(crate) struct Shared {
    pub(crate) memory: Memory,
    pub(crate) address: SocketAddr,
    pub(crate) token: Secret,
    pub(crate) cookie: Secret,
    pub(crate) sessions: Sessions,
    pub(crate) pictures: Pictures,
    pub(crate) runs: Arc<dyn Runs>,
    pub(crate) assets: pages::Assets,
    /// The places for pages that follow changes.
    pub(crate) watchers: Arc<Semaphore>,
}

/// How many pages follow changes at once: each asks the store every second.
const WATCHERS: usize = 16;

impl Inspector {
    /// Listens on a loopback address; port 0 is any free port. `memory` is the opened store, and `folder` is where it
    /// lies, with the gateway's ledger. `drawing` replays sessions, and `runs` reads the runs of an agent.
    ///
    /// # Errors
    /// When other machines can reach the address, it cannot be listened on, or there are no random bytes.
    pub async fn bind(
        address: SocketAddr,
        memory: Memory,
        folder: &Path,
        drawing: Arc<dyn Drawing>,
        runs: Arc<dyn Runs>,
    ) -> Result<Self, InspectorError> {
        if !address.ip().is_loopback() {
            return Err(InspectorError::NotLoopback(address));
        }
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => InspectorError::Taken(address),
            _ => InspectorError::Bind { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Shared {
            memory,
            address,
            token: Secret::random()?,
            cookie: Secret::random()?,
            sessions: Sessions::new(folder),
            assets: pages::Assets::new(drawing.as_ref()),
            pictures: Pictures::new(drawing),
            runs,
            watchers: Arc::new(Semaphore::new(WATCHERS)),
        };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Returns its address, without the token.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// Returns the address that a browser opens.
    #[must_use]
    pub fn address_with_token(&self) -> String {
        format!("{}/?token={}", self.address(), self.token())
    }

    /// Returns the token, which a program sends as `Authorization: Bearer`.
    #[must_use]
    pub fn token(&self) -> &str {
        self.shared.token.text()
    }

    /// Serves until `end` completes. Answers in progress are not waited for: nothing is written, so nothing is lost.
    ///
    /// # Errors
    /// When no more connections can be accepted.
    pub async fn serve(self, end: impl Future<Output = ()> + Send) -> Result<(), InspectorError> {
        let router = Router::new()
            .merge(pages::routes())
            .merge(api::routes())
            .fallback(pages::nothing)
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&self.shared), guard))
            .with_state(self.shared);
        let listener = self.listener.tap_io(|client| drop(client.set_nodelay(true)));
        let served = axum::serve(listener, router).into_future();
        tokio::select! {
            served = served => served.map_err(InspectorError::Ended),
            () = end => Ok(()),
        }
    }
}
