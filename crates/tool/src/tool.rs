//! The port to a tool.

use crate::{CancellationToken, ContextHandle, Extensions, ToolError, ToolOutput, ToolSpec};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A call under way.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// Something a model can call.
///
/// A tool must not block its thread: what blocks belongs in `tokio::task::spawn_blocking`.
pub trait Tool: Send + Sync {
    /// What is known of it.
    fn spec(&self) -> &ToolSpec;

    /// How long an attempt at this call may take, where that differs from the executor's setting. A
    /// tool with an argument for it reads it here.
    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        None
    }

    /// Runs it. `arguments` is a JSON object that fits the schema.
    ///
    /// # Errors
    /// When it cannot do what it was asked.
    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a>;
}

/// What a tool is told about the call.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// The same for each attempt at one call, also after the run was killed and resumed, and for no
    /// other call: what a service uses to do a thing once.
    pub idempotency_key: String,
    /// The attempt, from 1 on.
    pub attempt: u32,
    /// Asks the tool to stop.
    pub cancelled: CancellationToken,
    /// The whole context as text, for a tool that is flagged to see it.
    pub global_context: Option<Arc<str>>,
    /// How many runs stand around this call, the one that makes it among them.
    pub depth: u32,
    /// The way to the context of the loop that makes the call. A run without a loop has none.
    pub context: Option<ContextHandle>,
    /// What the caller lends to the tools that know it.
    pub extensions: Extensions,
}
