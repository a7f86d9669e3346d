//! Asking before a call is made.

use foldback_core::TodoId;
use foldback_planner::StepId;
use foldback_tool::{Effect, ToolSpec};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Whoever says whether calls may be made: a person, or a rule.
///
/// The calls that become ready together are one batch. Where one of them needs approval, none of the
/// batch runs before the answer. Calls of other batches that need none go on meanwhile.
pub trait Approver: Send + Sync {
    /// Whether this call has to be asked about. By default what is effectful. A panic counts as yes.
    fn needs(&self, tool: &ToolSpec, _arguments: &str) -> bool {
        tool.effect == Effect::Effectful
    }

    /// Decides on calls: one decision for each, in their order. Another number of decisions, and a
    /// panic, refuse all of them.
    fn decide<'a>(&'a self, calls: &'a [ApprovalRequest]) -> BoxFuture<'a, Vec<Decision>>;
}

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The todo of the agent that wants to make it: a sub-agent has one of its own. None where no agent does.
    pub todo: Option<TodoId>,
    /// The step that makes it.
    pub step: StepId,
    /// The tool.
    pub function: String,
    /// The arguments, a JSON object as text, with references filled in.
    pub arguments: String,
    /// What it does to the world.
    pub effect: Effect,
}

/// What was decided on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// It may be made.
    Approved,
    /// It may be made with these arguments, a JSON object as text, instead, under a key of its own.
    Changed {
        /// The arguments to call with.
        arguments: String,
    },
    /// It must not be made.
    Denied {
        /// Why, for the model to read.
        reason: String,
    },
}
