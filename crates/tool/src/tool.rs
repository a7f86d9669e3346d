//! The interface of a tool.

use crate::{CancellationToken, ContextHandle, Extensions, ToolError, ToolOutput, ToolSpec};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A call in progress.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// Something a model can call.
///
/// A tool must not block its thread: blocking work belongs in `tokio::task::spawn_blocking`.
pub trait Tool: Send + Sync {
    /// Returns its specification.
    fn spec(&self) -> &ToolSpec;

    /// Returns how long an attempt at this call may take, if that differs from the executor's setting. A
    /// tool that has an argument for it reads the argument here.
    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        None
    }

    /// Runs the tool. `arguments` is a JSON object that fits the schema.
    ///
    /// # Errors
    /// When it cannot do what it was asked.
    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a>;
}

/// What a tool may know about the call.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// A key that is the same for each attempt at one call, also after the run was killed and resumed,
    /// and for no other call: a service uses it to perform an action once.
    pub idempotency_key: String,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The token that asks the tool to stop.
    pub cancelled: CancellationToken,
    /// The whole context as text, for a tool with `global_context`.
    pub global_context: Option<Arc<str>>,
    /// The number of nested runs around this call, including the one that makes it.
    pub depth: u32,
    /// The handle to the context of the loop that makes the call. A run without a loop has none.
    pub context: Option<ContextHandle>,
    /// Values that the caller lends to its own tools.
    pub extensions: Extensions,
}
