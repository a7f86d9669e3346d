//! Approval of calls before they are made.

use foldback_core::TodoId;
use foldback_planner::StepId;
use foldback_tool::{Effect, ToolSpec};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// A person or a rule that decides whether calls may be made.
///
/// Calls that become ready together form a batch. If one of them needs approval, none of the batch runs
/// before the answer. Calls of other batches that need none continue meanwhile.
pub trait Approver: Send + Sync {
    /// Returns whether this call needs approval. By default effectful ones do. A panic counts as yes.
    fn needs(&self, tool: &ToolSpec, _arguments: &str) -> bool {
        tool.effect == Effect::Effectful
    }

    /// Decides on calls: one decision for each, in their order. Any other number of decisions, or a
    /// panic, refuses all of them.
    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>>;
}

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The todo of the agent that wants to make it; a sub-agent has one of its own. None if no agent does.
    pub todo: Option<TodoId>,
    /// The step that makes it.
    pub step: StepId,
    /// The tool.
    pub function: String,
    /// The arguments, a JSON object as text, with references filled in.
    pub arguments: String,
    /// Its effect on the world.
    pub effect: Effect,
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It may be made.
    Approved,
    /// It may be made with these arguments instead, a JSON object as text, under a key of its own.
    Changed {
        /// The arguments to call with.
        arguments: String,
    },
    /// It must not be made.
    Denied {
        /// The reason, as text for the model.
        reason: String,
    },
}
