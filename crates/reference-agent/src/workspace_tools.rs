//! Tools for a workspace.

use foldback_tool::Tool;
use foldback_tools::{Permissions, PermissionsError, toolset};
use std::sync::Arc;

/// Tools for a workspace, as far as they are permitted.
#[derive(Default)]
pub(crate) struct WorkspaceTools {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// Why there is no shell among them, if one was permitted.
    pub(crate) no_shell: Option<String>,
}

/// The tool that runs commands.
const SHELL: &str = "shell_run";

impl WorkspaceTools {
    /// Opens those that are permitted, with `substitute` in place of a shell that is not available.
    pub(crate) fn open(
        permissions: &Permissions,
        substitute: Option<&Arc<dyn Tool>>,
    ) -> Result<Self, PermissionsError> {
        match toolset(permissions) {
            Err(PermissionsError::Unavailable { tool: SHELL, reason }) => {
                let mut without = permissions.clone();
                without.shell.allow = false;
                let mut tools = toolset(&without)?;
                tools.extend(substitute.cloned());
                Ok(Self { tools, no_shell: Some(reason) })
            }
            tools => Ok(Self { tools: tools?, no_shell: None }),
        }
    }
}
