//! Tools of a folder, called as an agent calls them.

use foldback::Session;
use foldback_tool::{CallContext, ContextHandle, ToolError, ToolOutput, Toolbox};
use foldback_tools::{Permissions, toolset};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The workspace of a test, and the tools that its permissions allow.
pub(crate) struct Folder {
    dir: TempDir,
    pub(crate) toolbox: Toolbox,
}

impl Folder {
    /// Creates one with these files and all permissions of the file tools.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        Self::permitting(files, |permissions| permissions)
    }

    /// The same with other permissions.
    pub(crate) fn permitting(
        files: &[(&str, &str)],
        permit: impl FnOnce(Permissions) -> Permissions,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            put(&dir.path().join(path), content.as_bytes());
        }
        let permissions = permit(Permissions::in_workspace(dir.path()));
        let toolbox = Toolbox::new(toolset(&permissions).unwrap()).unwrap();
        Self { dir, toolbox }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.toolbox.get(tool).expect("the tool is permitted");
        tool.call(&arguments.to_string(), &CallContext::default()).await
    }

    /// The same in a context of a memory.
    pub(crate) async fn call_in(
        &self,
        session: &mut Session,
        tool: &str,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let (handle, mut requests) = ContextHandle::new(session.todo().clone());
        let context = CallContext { context: Some(handle), ..CallContext::default() };
        let tool = self.toolbox.get(tool).expect("the tool is permitted");
        requests.serve(session, tool.call(&arguments.to_string(), &context)).await
    }

    /// Returns the answer of a call that succeeds.
    #[track_caller]
    pub(crate) fn says(
        &self,
        tool: &str,
        arguments: Value,
        expected: &str,
    ) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move {
            match self.call(tool, arguments).await {
                Ok(output) => assert_eq!(output.data.text, expected, "{at}"),
                Err(error) => panic!("{at}: {error}"),
            }
        }
    }

    /// Returns the message of a call that fails.
    #[track_caller]
    pub(crate) fn fails(
        &self,
        tool: &str,
        arguments: Value,
        expected: &str,
    ) -> impl Future<Output = ()> {
        let at = std::panic::Location::caller();
        async move {
            match self.call(tool, arguments).await {
                Ok(output) => panic!("{at}: it worked: {}", output.data.text),
                Err(error) => assert_eq!(error.message, expected, "{at}"),
            }
        }
    }
}

/// Writes a file and the folders around it.
pub(crate) fn put(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}
