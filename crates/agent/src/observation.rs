//! The observations that a model reads about its calls.

use crate::spans::error_type;
use foldback_core::{CallOutcome, Message, ToolAnswer, ToolCallId};
use foldback_llm::StopReason;
use foldback_planner::{Failure, StepResult};
use foldback_tool::ToolSpec;
use serde_json::Value;

/// The text that a model reads about a call, and the call's outcome, if it is known apart from the text.
#[derive(Clone, Debug)]
pub(crate) struct CallTold {
    text: String,
    outcome: Option<CallOutcome>,
}

impl CallTold {
    /// Creates it from a step's result; `tool` is the tool that ran it, if there is one.
    pub(crate) fn of_result(result: &StepResult, tool: Option<&ToolSpec>) -> Self {
        Self { text: of_result(result), outcome: outcome(result, tool) }
    }

    /// Replaces the text and keeps the outcome.
    pub(crate) fn in_words(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// Creates it for a call of which nothing is known.
    pub(crate) fn unknown(text: String) -> Self {
        Self { text, outcome: Some(CallOutcome::Failed) }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Returns the tool message that answers the call with this id.
    pub(crate) fn message(&self, id: &ToolCallId) -> Message {
        let text = if self.text.trim().is_empty() { NOTHING } else { &self.text };
        let message = Message::tool_result(id, text);
        match self.outcome {
            Some(outcome) => message.with_outcome(outcome),
            None => message,
        }
    }
}

impl From<ToolAnswer> for CallTold {
    fn from(ToolAnswer { text, is_error }: ToolAnswer) -> Self {
        let outcome = if is_error { CallOutcome::Failed } else { CallOutcome::Succeeded };
        Self { text, outcome: Some(outcome) }
    }
}

/// Returns the outcome of a step's call; `None` for an answer of a server's tool, which may report a failure in
/// words alone.
fn outcome(result: &StepResult, tool: Option<&ToolSpec>) -> Option<CallOutcome> {
    match result {
        StepResult::Error { .. } => Some(CallOutcome::Failed),
        StepResult::Skipped { .. } => Some(CallOutcome::NotMade),
        StepResult::Success { .. } if exit_code(result).is_some_and(|code| code != 0) => {
            Some(CallOutcome::Failed)
        }
        StepResult::Success { .. } => {
            let is_foreign = tool.is_none_or(|tool| tool.server.is_some());
            (!is_foreign).then_some(CallOutcome::Succeeded)
        }
    }
}

/// Returns the exit code of the command that a call ran, as its tool reports it.
pub(crate) fn exit_code(result: &StepResult) -> Option<i64> {
    let StepResult::Success { data } = result else { return None };
    let structured: Value = serde_json::from_str(data.structured.as_deref()?).ok()?;
    structured.get("exit_code")?.as_i64()
}

/// Returns a step's result as the text of a tool message.
pub(crate) fn of_result(result: &StepResult) -> String {
    match result {
        StepResult::Success { data } if data.text.trim().is_empty() => match &data.structured {
            Some(json) => json.clone(),
            None => NOTHING.to_owned(),
        },
        StepResult::Success { data } => data.text.clone(),
        StepResult::Error { failure } => of_failure(failure),
        StepResult::Skipped { because } => {
            format!("Not run: it waited for {because}, which did not succeed.")
        }
    }
}

/// Returns a failure as a sentence that begins with its kind.
pub(crate) fn of_failure(failure: &Failure) -> String {
    let kind = error_type(failure.kind).replace('_', " ");
    format!("Error ({kind}): {}", failure.message)
}

/// Returns the beginning of a text, for observers.
pub(crate) fn beginning(text: &str) -> String {
    const CHARACTERS: usize = 500;
    foldback_core::beginning(text, CHARACTERS).into_owned()
}

/// Reports a block that was not run, with everything that was found.
pub(crate) fn of_refused_block(findings: &[String]) -> String {
    let mut text = "No call of your <execute_tools> block was run:\n".to_owned();
    for finding in findings {
        text.push_str(&format!("- {finding}\n"));
    }
    text.push_str("Write the whole block again, or answer without one.");
    text
}

/// Reports an answer that could not be read, so that nothing of it is in the conversation.
pub(crate) fn of_unreadable_answer(why: &str) -> String {
    format!("[Your last message could not be read, and is not kept: {why}. Write it again.]")
}

/// Said of a block in a place where it might be a quotation.
pub(crate) const MISPLACED_BLOCK: &str = "No call of your <execute_tools> block was run: it follows other words on its line, or is in a code \
     fence or indented, like a quotation. Begin a line with it, outside of code, or answer without one.";

/// Said of a block in a run whose calls are tool calls of the chat API.
pub(crate) const BLOCK_NOT_READ: &str = "[No call of your <execute_tools> block was made: here tools are called with tool calls of the chat API. \
     Use those, or answer in words; put a block that you quote into a code fence.]";

/// Said of a plan in a run step by step.
pub(crate) const PLAN_NOT_RUN: &str = "[No step of your plan was run: there are no plans here. Call the tools that you need, or answer in words.]";

/// Said of a block beside tool calls.
pub(crate) const BLOCK_BESIDE_CALLS: &str = "[Your last message had tool calls and an <execute_tools> block. The tool calls were run, but the block \
     was not: write it again in a message of its own, if it is still needed.]";

/// Replaces an empty result: chat APIs accept no empty message.
pub(crate) const NOTHING: &str = "(done; the tool returned nothing)";

/// Said of an answer without text and without calls.
pub(crate) const EMPTY_ANSWER: &str =
    "[Your last message was empty. Call a tool, or answer the request in words.]";

/// What is said of an answer that is not whole, and what limits it.
pub(crate) fn of_incomplete(stop: &StopReason) -> (&'static str, &'static str) {
    match stop {
        StopReason::Length => (CUT_OFF, " (the setting model.max_tokens)"),
        _ => (WITHHELD, ""),
    }
}

/// Said of an answer of which the provider withheld something.
const WITHHELD: &str =
    "[The provider withheld your last message, or a part of it. Say it again, in other words.]";

/// Said of an answer that was cut off before it was usable.
const CUT_OFF: &str = "[Your last message reached the maximum length of an answer and was cut off there. \
     Continue where it ends, or write less at a time.]";

/// Said of an answer in words when a call was required.
pub(crate) const CALL_REQUIRED: &str =
    "[Your last message called no tool. You have to call one in each message.]";

/// Said of a call that the model may not make.
pub(crate) const NOT_ALLOWED: &str =
    "this tool may not be called now; answer in words, or call one that is allowed.";

/// Said when the same text and calls are repeated again and again.
pub(crate) const STUCK: &str = "[You repeat yourself: you have said and called exactly this before, more than once, without \
     progress. Change your strategy: look at what the results say, try another way, or say what keeps you \
     from continuing.]";
