//! A tool of a server.

use crate::McpError;
use crate::answer::answer;
use crate::client::Inner;
use crate::contents::with_contents;
use foldback_tool::{CallContext, Tool, ToolError, ToolFuture, ToolSpec};
use std::sync::Arc;
use std::time::Duration;

/// A tool of a server.
pub(crate) struct McpTool {
    spec: ToolSpec,
    /// The name that the server knows it by.
    own_name: String,
    server: Arc<Inner>,
}

impl McpTool {
    pub(crate) fn new(spec: ToolSpec, own_name: String, server: Arc<Inner>) -> Self {
        Self { spec, own_name, server }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        // The call ends itself in time and notifies the server; the server may have to be started
        // first.
        let config = &self.server.config;
        Some(config.timeout.saturating_add(config.start_timeout).saturating_add(MARGIN))
    }

    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments = serde_json::from_str(arguments).map_err(|error| {
                ToolError::arguments(format!("the arguments are not a JSON object: {error}"))
            })?;
            let arguments = with_contents(arguments, context).await?;
            tokio::select! {
                biased;
                () = context.cancelled.cancelled() => {
                    Err(ToolError::permanent("the call was cancelled, and the server was notified"))
                }
                result = self.server.call(&self.own_name, arguments) => match result {
                    Ok(result) => answer(result),
                    Err(error) => Err(failed(&error)),
                },
            }
        })
    }
}

/// How much longer a call may take, so that the server can be notified of the timeout.
const MARGIN: Duration = Duration::from_secs(5);

/// Returns what a model reads when a server fails, and whether another attempt may help.
fn failed(error: &McpError) -> ToolError {
    match error {
        McpError::Ended { .. } => ToolError::transient(format!(
            "{error}. It is not known whether the call was carried out; check before you repeat it"
        )),
        McpError::Timeout { .. } => ToolError::transient(format!(
            "{error}, and was asked to stop. It is not known whether the call was carried out"
        )),
        McpError::Unreadable { .. } => ToolError::permanent(format!(
            "{error}. The call may have been carried out; check before you repeat it"
        )),
        McpError::Start { .. } => ToolError::transient(error.to_string()),
        McpError::Config(_) | McpError::Refused { .. } => ToolError::permanent(error.to_string()),
    }
}
