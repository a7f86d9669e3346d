//! A policy's answers to what it cannot do.

use foldback_core::{ContextError, SeqNo, TodoId, ToolAnswer, ToolCall, ToolDefinition};

/// Returns the answer to a call of a tool that the policy does not have, with those that it has.
pub(crate) fn no_tool(call: &ToolCall, tools: &[ToolDefinition]) -> ToolAnswer {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let given = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let text = format!("There is no tool {:?} here: this policy gives {given}.", call.name);
    ToolAnswer { text, is_error: true }
}

/// Returns the error of pinning a message that was never recorded.
pub(crate) fn no_message(todo: &TodoId, seq: SeqNo, len: u64) -> ContextError {
    ContextError {
        message: format!("{todo} has no message {seq}: it holds {len}, counted from 0"),
        source: None,
    }
}

/// Returns the error of pinning a message that the prompts have lost.
pub(crate) fn is_gone(seq: SeqNo) -> ContextError {
    ContextError {
        message: format!("message {seq} is gone: it can be pinned only while prompts show it"),
        source: None,
    }
}

/// Returns the notice about a prompt that is larger than allowed.
pub(crate) fn over_budget(allowed: usize) -> String {
    format!("The prompt exceeds the {allowed} allowed tokens.")
}
