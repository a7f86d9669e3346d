//! The outcome of a call, as its result states it apart from its words.

use super::Message;

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It did what it was made for.
    Succeeded,
    /// It failed, or nobody knows whether it did.
    Failed,
    /// It was not made, because another one failed.
    NotMade,
}

const IS_ERROR: &str = "is_error";
const STATUS: &str = "status";
const NOT_MADE: &str = "\"not_made\"";

impl Message {
    /// Returns the same result with the outcome of its call: in keys that stay in the record, and that
    /// [`api_json`](Self::api_json) sends to no chat API.
    ///
    /// ```
    /// use foldback_core::{CallOutcome, Message, ToolCallId};
    ///
    /// let result = Message::tool_result(&ToolCallId::new("c"), "没有这个文件");
    /// assert_eq!(result.outcome(), None, "words alone say nothing for certain");
    /// let failed = result.clone().with_outcome(CallOutcome::Failed);
    /// assert_eq!(failed.outcome(), Some(CallOutcome::Failed));
    /// assert_eq!(failed.api_json(), result.api_json());
    /// ```
    #[must_use]
    pub fn with_outcome(self, outcome: CallOutcome) -> Self {
        let is_error = if outcome == CallOutcome::Succeeded { "false" } else { "true" };
        let message = self.with_field(IS_ERROR, is_error);
        match outcome {
            CallOutcome::NotMade => message.with_field(STATUS, NOT_MADE),
            CallOutcome::Succeeded | CallOutcome::Failed => message,
        }
    }

    /// Returns the outcome of the call that this message answers, if a key says so: `is_error` (in MCP's spelling
    /// `isError`), or a `status` of `error` or `failed`.
    #[must_use]
    pub fn outcome(&self) -> Option<CallOutcome> {
        let mut outcome = None;
        for (key, value) in self.fields() {
            outcome = match (key.as_ref(), value.get()) {
                (STATUS, NOT_MADE) => return Some(CallOutcome::NotMade),
                (IS_ERROR | "isError", "true") | (STATUS, "\"error\"" | "\"failed\"") => {
                    Some(CallOutcome::Failed)
                }
                // What one key says is not taken back by another.
                (IS_ERROR | "isError", "false") => outcome.or(Some(CallOutcome::Succeeded)),
                _ => outcome,
            };
        }
        outcome
    }
}
