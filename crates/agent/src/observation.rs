//! What a model is told about what it asked for.

use crate::spans::error_type;
use foldback_planner::{Failure, StepResult};

/// A step's result in the words of a tool message.
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

/// A failure, as a sentence that begins with its kind.
pub(crate) fn of_failure(failure: &Failure) -> String {
    let kind = error_type(failure.kind).replace('_', " ");
    format!("Error ({kind}): {}", failure.message)
}

/// The beginning of a text, for whoever watches.
pub(crate) fn beginning(text: &str) -> String {
    const CHARACTERS: usize = 500;
    foldback_core::beginning(text, CHARACTERS).into_owned()
}

/// A block that was not run, with everything that was found.
pub(crate) fn of_refused_block(findings: &[String]) -> String {
    let mut text = "No call of your <execute_tools> block was run:\n".to_owned();
    for finding in findings {
        text.push_str(&format!("- {finding}\n"));
    }
    text.push_str("Write the whole block again, or answer without one.");
    text
}

/// An answer that could not be read, so that nothing of it stands in the conversation.
pub(crate) fn of_unreadable_answer(why: &str) -> String {
    format!("[Your last message could not be read, and is not kept: {why}. Write it again.]")
}

/// A block that stands where it might be quoted.
pub(crate) const MISPLACED_BLOCK: &str = "No call of your <execute_tools> block was run: it stands behind other words on its line, in a code \
     fence or indented, as a quotation would. Begin a line with it, outside of code, or answer without one.";

/// A block beside tool calls.
pub(crate) const BLOCK_BESIDE_CALLS: &str = "[Your last message had tool calls and an <execute_tools> block. The tool calls were run, the block was \
     not: write it again in a message of its own, if it is still needed.]";

/// What stands for a result without words: chat APIs take no empty message.
pub(crate) const NOTHING: &str = "(done; the tool answered nothing)";

/// An answer without words and without calls.
pub(crate) const EMPTY_ANSWER: &str =
    "[Your last message was empty. Call a tool, or answer the request in words.]";

/// An answer that was cut off before it said anything whole.
pub(crate) const CUT_OFF: &str = "[Your last message reached the greatest length of an answer and was cut off there. \
     Go on from where it ends, or write less at once.]";

/// An answer in words where a call was due.
pub(crate) const CALL_REQUIRED: &str =
    "[Your last message called no tool. You have to call one in each message.]";

/// The result of a call that the model may not make.
pub(crate) const NOT_ALLOWED: &str = "Error (denied): this tool may not be called now; answer in words, or call one that you may call.";

/// The same was said and called again and again.
pub(crate) const STUCK: &str = "[You repeat yourself: you have said and called exactly this before, more than once, and it brought you \
     no further. Change your strategy: look at what the results say, try another way, or tell what keeps \
     you from going on.]";
