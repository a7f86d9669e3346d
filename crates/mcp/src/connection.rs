//! A connection to a server.

use crate::child::Child;
use crate::config::Endpoint;
use crate::listing::left_out;
use crate::long_lines::LongLines;
use crate::{McpError, McpServerConfig};
use foldback_core::beginning;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CustomResult, Implementation,
    ListToolsRequest, PaginatedRequestParams, PingRequest, ProtocolVersion, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// A connection to a server, from the handshake until either side ends it.
#[derive(Debug)]
pub(crate) struct Connection {
    service: RunningService<RoleClient, Listener>,
    /// The child process, if the server is a program.
    child: Option<Mutex<Child>>,
}

/// The tools that a server lists, and notes on its list.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    pub(crate) notes: Vec<String>,
}

/// How long a server that did not answer a call may take to show that it is still alive.
const PING: Duration = Duration::from_secs(2);

/// How many pages of tools are read.
const MOST_PAGES: usize = 64;

/// How many tools a server may have.
const MOST_TOOLS: usize = 1_024;

impl Connection {
    /// Starts or reaches the server, within its start timeout.
    pub(crate) async fn open(
        config: &McpServerConfig,
        listener: Listener,
    ) -> Result<Self, McpError> {
        let failed = |reason: String| McpError::Start { server: config.name.clone(), reason };
        match &config.endpoint {
            Endpoint::Program { command, args, env, cwd } => {
                let started = Child::start(command, args, env, cwd.as_deref());
                let (mut child, output, input) =
                    started.map_err(|error| failed(format!("{command}: {error}")))?;
                let serving = Self::serve((LongLines::new(output), input), listener);
                match tokio::time::timeout(config.start_timeout, serving).await {
                    Ok(Ok(service)) => Ok(Self { service, child: Some(Mutex::new(child)) }),
                    Ok(Err(error)) => {
                        child.end().await;
                        Err(failed(format!("{}{}", handshake(&error), child.farewell())))
                    }
                    Err(_) => {
                        // How it ended is our doing; what it wrote before that is not.
                        child.kill().await;
                        let seconds = config.start_timeout.as_secs();
                        let words = child.last_words();
                        Err(failed(format!("it did not answer within {seconds} s{words}")))
                    }
                }
            }
            Endpoint::Url { url, headers } => {
                let mut custom = HashMap::new();
                for (name, value) in headers {
                    let (Ok(header), Ok(value)) = (name.parse(), value.parse()) else {
                        return Err(failed(format!("{name:?} is not a valid HTTP header")));
                    };
                    custom.insert(header, value);
                }
                // The only cryptography provider of this program; it may have been installed
                // before.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let transport = StreamableHttpClientTransport::from_config(
                    StreamableHttpClientTransportConfig::with_uri(url.as_str())
                        .custom_headers(custom),
                );
                let serving = Self::serve(transport, listener);
                let service = within(config.start_timeout, &config.name, serving).await?;
                let service =
                    service.map_err(|error| failed(format!("{url}: {}", handshake(&error))))?;
                Ok(Self { service, child: None })
            }
        }
    }

    /// Speaks with a server over an open stream.
    pub(crate) async fn over<T, E, A>(
        server: &str,
        transport: T,
        listener: Listener,
    ) -> Result<Self, McpError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let service = Self::serve(transport, listener).await.map_err(|error| McpError::Start {
            server: server.to_owned(),
            reason: handshake(&error),
        })?;
        Ok(Self { service, child: None })
    }

    async fn serve<T, E, A>(
        transport: T,
        listener: Listener,
    ) -> Result<RunningService<RoleClient, Listener>, ClientInitializeError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        // Every server knows this handshake so far.
        serve_client_with_lifecycle(listener, transport, ClientLifecycleMode::Initialize).await
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.service.is_transport_closed()
    }

    /// Returns how the server ended.
    pub(crate) async fn farewell(&self) -> String {
        let Some(child) = &self.child else { return String::new() };
        let mut child = child.lock().await;
        child.end().await;
        child.farewell()
    }

    /// Returns whether the server answers at all.
    pub(crate) async fn is_there(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let answer = tokio::time::timeout(PING, self.peer().send_request(ping)).await;
        // A server that does not know the request is alive, too.
        matches!(answer, Ok(Ok(_) | Err(ServiceError::McpError(_))))
    }

    /// Kills the program, even if callers still wait for it.
    pub(crate) async fn kill(&self) {
        if let Some(child) = &self.child {
            child.lock().await.kill().await;
        }
    }

    /// Returns all its tools, as it lists them. A tool that cannot be read is left out, with a
    /// note.
    pub(crate) async fn tools(&self, server: &str) -> Result<Listed, ServiceError> {
        let mut listed = Listed::default();
        let mut note = |note: &str| {
            listed.notes.push(format!("the MCP server {server:?} {note}"));
        };
        if self.peer().peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            note("says that it has no tools");
            return Ok(listed);
        }
        let (mut page, mut pages) = (None, BTreeSet::new());
        let mut tools = Vec::new();
        loop {
            let (found, next) = self.page(page).await?;
            tools.extend(found);
            if tools.len() > MOST_TOOLS {
                tools.truncate(MOST_TOOLS);
                note("lists more than 1,024 tools; those after them are left out");
                break;
            }
            let Some(next) = next else { break };
            if !pages.insert(next.clone()) {
                note("lists the same page of tools again; its list ends there");
                break;
            }
            if pages.len() == MOST_PAGES {
                note("lists its tools on more than 64 pages; those after them are left out");
                break;
            }
            page = Some(next);
        }
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            match serde_json::from_value(tool) {
                Ok(tool) => listed.tools.push(tool),
                Err(error) => {
                    let why = format!("it cannot be read: {error}");
                    listed.notes.push(left_out(server, &name, &why));
                }
            }
        }
        Ok(listed)
    }

    /// Reads a page of its list of tools, each as the server sent it, and the cursor of the next
    /// page.
    async fn page(
        &self,
        cursor: Option<String>,
    ) -> Result<(Vec<Value>, Option<String>), ServiceError> {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = match self.peer().send_request(request).await? {
            ServerResult::ListToolsResult(page) => serde_json::to_value(page).unwrap_or_default(),
            // A page with one malformed tool does not parse as a page of tools.
            ServerResult::CustomResult(CustomResult(page)) => page,
            _ => return Err(ServiceError::UnexpectedResponse),
        };
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            return Err(ServiceError::UnexpectedResponse);
        };
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        Ok((tools.clone(), next))
    }

    /// Ends the connection, and the program.
    pub(crate) async fn close(self) {
        // The end of its input asks a program to exit; one that does not is killed with the child.
        let _ = self.service.cancel().await;
        if let Some(child) = self.child {
            child.into_inner().end().await;
        }
    }
}

/// Waits for `work` no longer than it may take.
pub(crate) async fn within<T>(
    time: Duration,
    server: &str,
    work: impl Future<Output = T>,
) -> Result<T, McpError> {
    let seconds = time.as_secs();
    tokio::time::timeout(time, work)
        .await
        .map_err(|_| McpError::Timeout { server: server.to_owned(), seconds })
}

/// Says briefly why there is no connection: the error may quote everything that the server wrote.
fn handshake(error: &ClientInitializeError) -> String {
    let text = match error {
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        ClientInitializeError::JsonRpcError(error) => format!("it refuses: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) => "it ended without a handshake".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "it answered with something other than a handshake".to_owned()
        }
        other => other.to_string(),
    };
    beginning(&text, LONGEST_REASON).into_owned()
}

/// How many characters of a reason are shown.
const LONGEST_REASON: usize = 400;

/// Handles what a server sends unasked. Its requests, for a model's answer or a person's, are
/// refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listener {
    /// Whether it said that its tools have changed.
    pub(crate) tools_changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("foldback", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}
