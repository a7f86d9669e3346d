//! One server, and its tools.

use crate::calling;
use crate::connection::{Connection, Listener, within};
use crate::listing::Listing;
use crate::long_lines::{LongLines, TOO_LONG};
use crate::tool::McpTool;
use crate::{McpError, McpServerConfig};
use foldback_tool::Tool;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject};
use rmcp::service::ServiceError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;

/// One server. It runs as long as this or one of its tools exists.
///
/// If it has ended, the next call starts it again, as often as its configuration allows. The call
/// that it was working on fails; whether that call was carried out is then unknown.
#[derive(Clone, Debug)]
pub struct McpClient {
    inner: Arc<Inner>,
    listing: Arc<Listing>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: McpServerConfig,
    /// Whether it can be started again.
    is_restartable: bool,
    state: Mutex<State>,
    listener: Listener,
}

#[derive(Debug)]
struct State {
    connection: Option<Arc<Connection>>,
    restarts: u32,
}

impl McpClient {
    /// Starts or reaches a server and lists its tools.
    ///
    /// # Errors
    /// When it does not start, does not speak the protocol, or takes too long.
    pub async fn start(config: McpServerConfig) -> Result<Self, McpError> {
        let listener = Listener::default();
        let connection = Connection::open(&config, listener.clone()).await?;
        Self::of(connection, listener, config, true).await
    }

    /// Speaks with a server over an open stream. Such a server cannot be started again, and the
    /// endpoint in the configuration is ignored.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        config: McpServerConfig,
    ) -> Result<Self, McpError> {
        let listener = Listener::default();
        let (output, input) = tokio::io::split(stream);
        let stream = (LongLines::new(output), input);
        let opening = Connection::over(&config.name, stream, listener.clone());
        let connection = within(config.start_timeout, &config.name, opening).await??;
        Self::of(connection, listener, config, false).await
    }

    async fn of(
        connection: Connection,
        listener: Listener,
        config: McpServerConfig,
        is_restartable: bool,
    ) -> Result<Self, McpError> {
        let listing = connection.tools(&config.name);
        let listed = match within(config.start_timeout, &config.name, listing).await? {
            Ok(listed) => listed,
            Err(ServiceError::TransportClosed) => {
                let reason = connection.farewell().await;
                return Err(McpError::Ended { server: config.name, reason });
            }
            Err(error) => {
                return Err(McpError::Refused { server: config.name, message: error.to_string() });
            }
        };
        let listing = Arc::new(Listing::of(&config, listed));
        let state = State { connection: Some(Arc::new(connection)), restarts: 0 };
        let state = Mutex::new(state);
        let inner = Arc::new(Inner { config, is_restartable, state, listener });
        Ok(Self { inner, listing })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.config.name
    }

    /// Returns its tools by name, as it listed them when it was started.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools_beside(&mut BTreeSet::new())
    }

    /// Returns its tools under names that are not taken.
    pub(crate) fn tools_beside(&self, taken: &mut BTreeSet<String>) -> Vec<Arc<dyn Tool>> {
        let named = self.listing.named(taken);
        named
            .map(|(spec, own_name)| {
                Arc::new(McpTool::new(spec, own_name, Arc::clone(&self.inner))) as Arc<dyn Tool>
            })
            .collect()
    }

    /// Returns notes on it: tools that were left out, and why; that its list has changed since.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.listing.notes.clone();
        if self.inner.listener.tools_changed.load(Ordering::Relaxed) {
            notes.push(format!(
                "the MCP server {:?} says that its tools have changed; they stay as they were until \
                 it is used anew",
                self.name()
            ));
        }
        notes
    }

    /// Ends it. Calls of its tools fail from then on.
    pub async fn close(self) {
        let mut state = self.inner.state.lock().await;
        state.restarts = u32::MAX;
        let connection = state.connection.take();
        drop(state);
        // A caller in the middle of a call holds it a moment longer.
        if let Some(connection) = connection.and_then(Arc::into_inner) {
            connection.close().await;
        }
    }
}

impl Inner {
    /// Calls a tool. If this future is dropped, the server is notified that the call is cancelled.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, McpError> {
        let server = || self.config.name.clone();
        let connection = self.connection().await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let calling = calling::call(connection.peer(), params);
        let answer = match within(self.config.timeout, &self.config.name, calling).await {
            Ok(answer) => answer,
            Err(timeout) => {
                if !connection.is_there().await {
                    self.give_up(&connection).await;
                }
                return Err(timeout);
            }
        };
        match answer {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => Err(McpError::Refused {
                server: server(),
                message: "it asked for further input, which is not supported".to_owned(),
            }),
            Ok(_) => Err(McpError::Refused {
                server: server(),
                message: "it answered with a task to poll, which is not supported".to_owned(),
            }),
            Err(ServiceError::TransportClosed) => {
                let reason = connection.farewell().await;
                Err(McpError::Ended { server: server(), reason })
            }
            Err(ServiceError::TransportSend(error)) => {
                let reason = format!(": {}{}", error.error, connection.farewell().await);
                Err(McpError::Ended { server: server(), reason })
            }
            Err(ServiceError::McpError(error)) if error.code.0 == TOO_LONG => {
                let reason = "it has more than 16 MiB".to_owned();
                Err(McpError::Unreadable { server: server(), reason })
            }
            Err(ServiceError::McpError(error)) => {
                Err(McpError::Refused { server: server(), message: error.message.into_owned() })
            }
            Err(ServiceError::UnexpectedResponse) => {
                let reason = "it does not have the form of a tool's answer".to_owned();
                Err(McpError::Unreadable { server: server(), reason })
            }
            Err(error) => Err(McpError::Refused { server: server(), message: error.to_string() }),
        }
    }

    /// Ends a connection on which nothing is answered any more, so that the next call opens another.
    async fn give_up(&self, connection: &Arc<Connection>) {
        connection.kill().await;
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|held| Arc::ptr_eq(held, connection)) {
            state.connection = None;
        }
    }

    /// Returns the open connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection
            && !connection.has_ended()
        {
            return Ok(Arc::clone(connection));
        }
        if !self.is_restartable || state.restarts >= self.config.restarts {
            let reason = match &state.connection {
                Some(connection) => connection.farewell().await,
                None => String::new(),
            };
            let reason = format!("{reason}; it is not started again");
            return Err(McpError::Ended { server: self.config.name.clone(), reason });
        }
        state.restarts += 1;
        state.connection = None;
        let connection = Connection::open(&self.config, self.listener.clone()).await?;
        let connection = Arc::new(connection);
        state.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }
}
