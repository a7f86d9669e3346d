//! Tools for an agent: files, a shell, web pages.
//!
//! Nothing is permitted until [`Permissions`] allow it, and [`toolset`] returns the tools that they permit:
//!
//! - `file_read`, `file_write`, `file_edit`, `file_list`, `file_grep` reach the folders that are named and
//!   nothing else, whatever a path says.
//! - `shell_run` runs a command in the sandbox of `foldback_sandbox`; if no sandbox is available, [`toolset`]
//!   returns an error and no command is run.
//! - `web_fetch` returns the text of a page, from the hosts that are named and from no private address.
//!
//! In addition, [`web_search`] queries a search engine, for deep searches.
//!
//! A refusal is worded for a model: what was asked for, what is permitted, and what to do next.
//!
//! To write a tool of your own, begin with `foldback-tool` instead. This crate knows no model and no loop, and
//! asks nobody for approval: that is up to the executor. Tools of MCP servers come from `foldback-mcp`, folders
//! for deep search from `foldback-documents`.
//!
//! ```
//! use foldback_tool::{CallContext, Toolbox};
//! use foldback_tools::{Permissions, toolset};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let toolbox = Toolbox::new(toolset(&Permissions::in_workspace(folder.path()))?)?;
//! let call = async |tool: &str, arguments: &str| {
//!     let tool = toolbox.get(tool).expect("the tool is permitted");
//!     tool.call(arguments, &CallContext::default()).await
//! };
//! let made = call("file_write", r#"{"path": "笔记/杭州.md", "content": "小雨\n"}"#).await?;
//! assert_eq!(made.data.text, "made 笔记/杭州.md: 7 bytes");
//! assert_eq!(call("file_grep", r#"{"pattern": "雨"}"#).await?.data.text, "笔记/杭州.md:1:小雨");
//!
//! let refused = call("file_read", r#"{"path": "/etc/passwd"}"#).await.unwrap_err();
//! assert_eq!(
//!     refused.message,
//!     "reading /etc/passwd is not permitted; permitted: everything in the workspace"
//! );
//! # Ok(())
//! # }
//! ```

mod files;
mod permissions;
mod shell;
mod web;
mod workspace;

use foldback_tool::Tool;
pub use permissions::{
    FilePermissions, Permissions, PermissionsError, Refused, ShellPermissions, WebPermissions,
};
use std::sync::Arc;
pub use web::web_search;
use workspace::Workspace;

/// Returns the tools that these permissions allow, in the order of their names.
///
/// # Errors
/// When a folder cannot be opened, a limit leaves nothing, commands could write a folder that they may only read,
/// or a tool that is permitted is not available.
pub fn toolset(permissions: &Permissions) -> Result<Vec<Arc<dyn Tool>>, PermissionsError> {
    permissions.check()?;
    let workspace = Arc::new(Workspace::open(permissions)?);
    let mut tools = files::tools(&workspace, &permissions.files);
    tools.extend(shell::tool(permissions)?);
    tools.extend(web::tool(permissions)?);
    tools.sort_by(|tool, other| tool.spec().name().cmp(other.spec().name()));
    Ok(tools)
}
