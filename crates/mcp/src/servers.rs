//! All servers.

use crate::{McpClient, McpError, McpServerConfig};
use foldback_tool::Tool;
use futures::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;

/// All servers of a configuration.
#[derive(Clone, Debug, Default)]
pub struct McpServers {
    servers: Vec<McpClient>,
    failures: Vec<McpError>,
}

impl McpServers {
    /// Starts all servers at once. One that does not start is a [failure](Self::failures), and the
    /// others are used.
    pub async fn start(configs: impl IntoIterator<Item = McpServerConfig>) -> Self {
        let started = join_all(configs.into_iter().map(McpClient::start)).await;
        let mut servers = Self::default();
        for server in started {
            match server {
                Ok(server) => servers.servers.push(server),
                Err(error) => servers.failures.push(error),
            }
        }
        servers.servers.sort_by(|server, other| server.name().cmp(other.name()));
        servers
    }

    /// Returns the tools of all servers, each under a unique name, by server and name.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut taken = BTreeSet::new();
        self.servers.iter().flat_map(|server| server.tools_beside(&mut taken)).collect()
    }

    /// Returns the errors of the servers that did not start.
    #[must_use]
    pub fn failures(&self) -> &[McpError] {
        &self.failures
    }

    /// Returns notes on the servers; see [`McpClient::notes`].
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.servers.iter().flat_map(McpClient::notes).collect()
    }

    /// Ends all servers.
    pub async fn close(self) {
        join_all(self.servers.into_iter().map(McpClient::close)).await;
    }
}
