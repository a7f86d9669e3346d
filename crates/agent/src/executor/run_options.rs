//! One run among others.

use crate::RunLog;
use foldback_tool::{CallContext, CancellationToken, ContextHandle};
use std::sync::Arc;

/// One run among others.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Its name: unique in the journal, and the same when a run is resumed. Idempotency keys are
    /// derived from it, so two runs that share a name share the keys of equal calls. With a journal it
    /// must not be empty.
    pub id: String,
    /// Cancels the run.
    pub cancelled: CancellationToken,
    /// The whole context as text, for tools that are flagged to see it.
    pub global_context: Option<Arc<str>>,
    /// How many runs stand around this one.
    pub depth: u32,
    /// The way to the context of the loop that runs it: lent to the tools.
    pub context: Option<ContextHandle>,
    /// What stands around it otherwise: lent to the tools.
    pub log: RunLog,
    /// The turn that its steps belong to, as the log says; without one they are not emitted.
    pub turn: Option<u32>,
}

impl RunOptions {
    /// A run of this name, everything else as usual.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// A run that a tool makes for a call: named after it, cancelled with it, seeing what it sees.
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

    /// The same, cancelled by this token.
    #[must_use]
    pub fn with_cancelled(self, cancelled: CancellationToken) -> Self {
        Self { cancelled, ..self }
    }

    /// The same, with this text for tools that see the whole context.
    #[must_use]
    pub fn with_global_context(self, global_context: impl Into<Arc<str>>) -> Self {
        Self { global_context: Some(global_context.into()), ..self }
    }

    /// The same, inside this many runs.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// The same, lending this context to the tools.
    #[must_use]
    pub fn with_context(self, context: ContextHandle) -> Self {
        Self { context: Some(context), ..self }
    }

    /// The same, telling this log.
    #[must_use]
    pub fn with_log(self, log: RunLog) -> Self {
        Self { log, ..self }
    }

    /// The same, with steps that belong to this turn of the log.
    #[must_use]
    pub fn with_turn(self, turn: impl Into<Option<u32>>) -> Self {
        Self { turn: turn.into(), ..self }
    }
}
