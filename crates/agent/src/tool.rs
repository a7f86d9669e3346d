//! The port to a tool.

use crate::Host;
use foldback_planner::{Data, FailureKind, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
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
    /// What stands around the run.
    pub host: Host,
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What it brought.
    pub data: Data,
}

impl ToolOutput {
    /// An answer in words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { data: Data { text: text.into(), structured: None } }
    }

    /// An answer that is JSON text; a model reads it as it is, and references are resolved in it.
    #[must_use]
    pub fn json(json: impl Into<String>) -> Self {
        let json = json.into();
        Self { data: Data { text: json.clone(), structured: Some(json) } }
    }
}

/// Why a tool failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind, which says whether another attempt may help.
    pub kind: ToolErrorKind,
    /// What happened and what to do next, for a model to read.
    pub message: String,
}

impl ToolError {
    /// The same call may work later.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Transient, message: message.into() }
    }

    /// Another attempt does not help.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Permanent, message: message.into() }
    }

    /// The arguments are wrong.
    #[must_use]
    pub fn arguments(message: impl Into<String>) -> Self {
        Self { kind: ToolErrorKind::Arguments, message: message.into() }
    }
}

/// The kinds of failure of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The same call may work later.
    Transient,
    /// It will not.
    Permanent,
    /// The arguments are wrong.
    Arguments,
    /// Another attempt does not help, and the kind of failure is known from elsewhere: from the record
    /// of a run, say.
    Known(FailureKind),
}

type Function =
    dyn Fn(String, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool made of an async function.
pub struct FunctionTool {
    spec: ToolSpec,
    timeout: Option<Duration>,
    function: Box<Function>,
}

impl FunctionTool {
    /// A tool that runs `function` with the arguments, as JSON text.
    pub fn new<F, A>(spec: ToolSpec, function: F) -> Self
    where
        F: Fn(String, CallContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let function = Box::new(move |arguments, context| function(arguments, context).boxed());
        Self { spec, timeout: None, function }
    }

    /// The same with a bound on the time of an attempt.
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

    fn call<'a>(
        &'a self,
        arguments: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.function)(arguments.to_owned(), context.clone())
    }
}
