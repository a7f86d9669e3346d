//! A tool made of an async function.

use crate::{CallContext, Tool, ToolError, ToolFuture, ToolOutput, ToolSpec};
use std::fmt;
use std::time::Duration;

/// A tool made of an async function.
pub struct FunctionTool {
    spec: ToolSpec,
    timeout: Option<Duration>,
    function: Box<Function>,
}

type Function = dyn Fn(String, CallContext) -> ToolFuture<'static> + Send + Sync;

impl FunctionTool {
    /// Creates a tool that runs `function` with the arguments as JSON text.
    pub fn new<F, A>(spec: ToolSpec, function: F) -> Self
    where
        F: Fn(String, CallContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let function = move |arguments, context| -> ToolFuture<'static> {
            Box::pin(function(arguments, context))
        };
        Self { spec, timeout: None, function: Box::new(function) }
    }

    /// Limits the time of an attempt.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        self.timeout
    }

    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
        (self.function)(arguments.to_owned(), context.clone())
    }
}
