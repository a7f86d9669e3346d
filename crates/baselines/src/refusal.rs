//! What a policy without a store answers to what only a store could do.

use foldback_core::{ContextError, SeqNo, TodoId, ToolAnswer, ToolCall};

/// The answer to a call of a tool that the policy does not have.
pub(crate) fn no_tool(call: &ToolCall) -> ToolAnswer {
    ToolAnswer {
        text: format!("There is no tool {:?} here: this policy gives none.", call.name),
        is_error: true,
    }
}

/// The error of pinning a message that was never recorded.
pub(crate) fn no_message(todo: &TodoId, seq: SeqNo, len: usize) -> ContextError {
    ContextError {
        message: format!("{todo} has no message {seq}: it holds {len}, counted from 0"),
        source: None,
    }
}

/// What is said of a prompt that is larger than it was allowed to be.
pub(crate) fn over_budget(allowed: usize) -> String {
    format!("The prompt takes more than the {allowed} tokens that were allowed.")
}
