//! The failures that a view keeps in sight.

use crate::entry::Shown;
use crate::failure::{FAILURES_KEPT, Failure, error_head, target};
use crate::repair::legal_id;
use foldback_core::{Block, CallOutcome, SeqNo, ToolCall, ToolCallId};

/// The calls that failed and have not succeeded since, and those that still wait for a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    unresolved: Vec<Failure>,
    open: Vec<OpenCall>,
}

/// A call that waits for its result.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    id: String,
    tool: String,
    target: String,
}

impl Failures {
    /// Creates it with these failures and no waiting calls.
    pub(crate) fn resume(unresolved: Vec<Failure>) -> Self {
        Self { unresolved, open: Vec::new() }
    }

    /// Returns the failures in order.
    pub(crate) fn unresolved(&self) -> &[Failure] {
        &self.unresolved
    }

    /// Waits for the results of these calls, and no longer for earlier ones.
    pub(crate) fn expect(&mut self, calls: &[ToolCall]) {
        let open = |call: &ToolCall| OpenCall {
            id: legal_id(call.id.as_str()).into_owned(),
            tool: call.name.clone(),
            target: target(call),
        };
        self.open = calls.iter().map(open).collect();
    }

    /// Returns the call that waited for a result with this id.
    pub(crate) fn answered(&mut self, id: Option<&ToolCallId>) -> Option<OpenCall> {
        let at = self.open.iter().position(|open| id.is_some_and(|id| id.as_str() == open.id));
        at.map(|at| self.open.remove(at))
    }

    /// Keeps a failure in sight until the same tool succeeds on the same target.
    pub(crate) fn watch(&mut self, result: &Shown, call: OpenCall) {
        if result.message.outcome() == Some(CallOutcome::NotMade) {
            // The call that it waited for failed, and is itself reported.
            return;
        }
        let OpenCall { tool, target, .. } = call;
        self.unresolved.retain(|failure| failure.tool != tool || failure.target != target);
        let Some(head) = error_head(&result.message) else { return };
        let stored = result.offloads.first().map(|offload| offload.reference().to_string());
        let seq = result.seq.0;
        self.unresolved.push(Failure { seq, tool, target, head, stored, block: None });
        let over = self.unresolved.len().saturating_sub(FAILURES_KEPT);
        self.unresolved.drain(..over);
    }

    /// Notes the block that contains the results.
    pub(crate) fn close(&mut self, block: &Block) {
        for failure in &mut self.unresolved {
            if block.range.contains(SeqNo(failure.seq)) {
                failure.block = Some(block.header.block_id.n());
            }
        }
    }
}
