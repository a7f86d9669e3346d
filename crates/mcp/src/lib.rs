//! The tools of Model Context Protocol servers, for an agent.
//!
//! [`McpServers`] are started from the `mcpServers` configuration that other clients use, and give their
//! tools as [`Tool`](foldback_tool::Tool)s. A server is a program that is started, or an address.
//!
//! What a server says is data. Its tools are named after it, so that none can pass for another; its
//! descriptions are cut, and told as its own words; its hints on what a tool does are believed only of
//! servers that the [configuration](McpServerConfig::trust) trusts; its list of tools is asked for once
//! and does not change while they are used. A program is started with a clean environment, and does not
//! outlive the tools.
//!
//! It is not a server, and not a sandbox: a program that is started may do what the person may who started
//! it. Resources and prompts of servers are not read, and what a server asks of a model is refused.
//!
//! ```
//! use foldback_mcp::McpServerConfig;
//!
//! let servers = McpServerConfig::read(
//!     r#"{"mcpServers": {
//!         "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"GIT_PAGER": "cat"}},
//!         "docs": {"url": "https://example.org/mcp", "headers": {"X-Key": "secret"}}
//!     }}"#,
//! )?;
//! assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["docs", "git"]);
//!
//! let error = McpServerConfig::read(r#"{"mcpServers": {"git": {"args": []}}}"#).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "the MCP server \"git\" has neither a command nor a url; one of them was expected"
//! );
//! # Ok::<(), foldback_mcp::McpError>(())
//! ```

mod answer;
mod child;
mod client;
mod config;
mod connection;
mod contents;
mod error;
mod listing;
mod names;
mod servers;
mod tool;

pub use client::McpClient;
pub use config::{Endpoint, McpServerConfig, Trust};
pub use error::McpError;
pub use names::is_tool_of;
pub use servers::McpServers;
