//! A server on standard input and output.

use crate::lines::Lines;
use crate::{MemoryServer, ServeError};
use rmcp::ServiceExt as _;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::stdio_pipes;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

impl MemoryServer {
    /// Serves the client on standard input and output until it disconnects.
    ///
    /// # Errors
    /// When the client does not start as the protocol requires.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let (input, output) = stdio_pipes();
        self.serve_streams(input, output).await
    }

    /// Serves the client at the other end of two streams, as [`serve_stdio`](Self::serve_stdio) does.
    ///
    /// # Errors
    /// When the client does not start as the protocol requires.
    pub async fn serve_streams(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        let running = match self.serve(Lines::new(input, output)).await {
            Ok(running) => running,
            // It disconnected before it asked for anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Begin(error.to_string())),
        };
        match running.waiting().await {
            Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Ended(error.into())),
            Ok(other) => Err(ServeError::Ended(io::Error::other(format!("{other:?}")))),
        }
    }
}
