//! The options of a run.

use crate::RunLog;
use foldback_tool::{CallContext, CancellationToken, ContextHandle};
use std::sync::Arc;

/// The options of a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Its name: unique in the journal, and the same when the run is resumed. Idempotency keys are derived
    /// from it, so two runs that share a name share the keys of equal calls. With a journal it must not be
    /// empty.
    pub id: String,
    /// The token that cancels the run.
    pub cancelled: CancellationToken,
    /// The whole context as text, for tools with `global_context`.
    pub global_context: Option<Arc<str>>,
    /// The number of runs around this one.
    pub depth: u32,
    /// The handle to the context of the loop that runs it, which is lent to the tools.
    pub context: Option<ContextHandle>,
    /// The log of the run, which is lent to the tools.
    pub log: RunLog,
    /// The turn of the log that its steps belong to; without one they are not emitted.
    pub turn: Option<u32>,
}

impl RunOptions {
    /// Creates the default options for a run of this name.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Creates the options for a run that a tool makes during a call: named after the call, cancelled with it, and
    /// with the same context.
    #[must_use]
    pub fn inside(call: &CallContext) -> Self {
        Self {
            id: call.idempotency_key.clone(),
            cancelled: call.cancelled.clone(),
            global_context: call.global_context.clone(),
            depth: call.depth,
            context: call.context.clone(),
            log: RunLog::of(call),
            turn: None,
        }
    }

    /// Sets the token that cancels the run.
    #[must_use]
    pub fn with_cancelled(self, cancelled: CancellationToken) -> Self {
        Self { cancelled, ..self }
    }

    /// Sets the text for tools that see the whole context.
    #[must_use]
    pub fn with_global_context(self, global_context: impl Into<Arc<str>>) -> Self {
        Self { global_context: Some(global_context.into()), ..self }
    }

    /// Sets the number of runs around this one.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// Sets the handle to the context, which is lent to the tools.
    #[must_use]
    pub fn with_context(self, context: ContextHandle) -> Self {
        Self { context: Some(context), ..self }
    }

    /// Sets the log.
    #[must_use]
    pub fn with_log(self, log: RunLog) -> Self {
        Self { log, ..self }
    }

    /// Sets the turn of the log that the steps belong to.
    #[must_use]
    pub fn with_turn(self, turn: impl Into<Option<u32>>) -> Self {
        Self { turn: turn.into(), ..self }
    }
}
