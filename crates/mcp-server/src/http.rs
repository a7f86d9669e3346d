//! A server over HTTP that only this machine can reach.

use crate::{MemoryServer, ServeError};
use axum::serve::ListenerExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A server over HTTP that is already listening. Only this machine reaches it: the address is a loopback
/// address, and a request that names another host, or comes from the page of another site, is refused.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    path: String,
}

impl HttpServer {
    /// Listens on an address. Port 0 is any free port.
    ///
    /// # Errors
    /// When other machines can reach the address, or it cannot be listened on.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, path: "/mcp".to_owned() })
    }

    /// Serves only below `/mcp/` and this word of letters and digits, so only clients that know it
    /// find it.
    #[must_use]
    pub fn with_word(self, word: &str) -> Self {
        Self { path: format!("/mcp/{word}"), ..self }
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// Serves clients until `end` completes.
    ///
    /// # Errors
    /// When no more connections can be accepted.
    pub async fn serve(
        self,
        server: MemoryServer,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let (ip, port) = (self.address.ip(), self.address.port());
        let own = [format!("http://localhost:{port}"), format!("http://{}", self.address)];
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(["localhost".to_owned(), "::1".to_owned(), ip.to_string()])
            .with_allowed_origins(own)
            .enforce_origin_validation();
        let ending = config.cancellation_token.clone();
        let service = StreamableHttpService::new(
            move || Ok(server.for_client()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let router = axum::Router::new().route_service(&self.path, service);
        let ended = async move {
            end.await;
            // Open streams would delay the shutdown.
            ending.cancel();
        };
        let listener = self.listener.tap_io(|client| drop(client.set_nodelay(true)));
        let served = axum::serve(listener, router).with_graceful_shutdown(ended).await;
        served.map_err(ServeError::Ended)
    }
}
