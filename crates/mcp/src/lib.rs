//! The tools of Model Context Protocol servers, for an agent.
//!
//! [`McpServers`] are started from the `mcpServers` configuration that other clients use, and provide
//! their tools as [`Tool`](foldback_tool::Tool)s. A server is a program that is started, or an address.
//!
//! What a server says is data. Its tools are prefixed with its name, so that none can pass for another;
//! its descriptions are shortened and attributed to it; its hints about what a tool does are trusted only
//! if the [configuration](McpServerConfig::trust) trusts the server; its list of tools is requested once
//! and does not change while they are used. A program is started with a clean environment, and does not
//! outlive the tools.
//!
//! This crate is not a server, and not a sandbox: a program that is started may do whatever the person who
//! started it may do. Resources and prompts of servers are not read, and a server's requests to a model
//! are refused.
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
mod calling;
mod child;
mod client;
mod config;
mod connection;
mod contents;
mod error;
mod listing;
mod long_lines;
mod names;
mod servers;
mod tool;

pub use client::McpClient;
pub use config::{Endpoint, McpServerConfig, Trust};
pub use error::McpError;
pub use names::is_tool_of;
pub use servers::McpServers;
