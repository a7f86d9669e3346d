//! Tools that search all todos, if the user has allowed it.

use foldback::{Answer, Error, Memory};

/// Returns whether a tool searches all todos if that is allowed.
pub(crate) fn is_of_all(tool: &str) -> bool {
    matches!(tool, "search_block" | "load")
}

/// Returns the answer of such a tool.
///
/// # Errors
/// When the store fails.
pub(crate) fn answer(memory: &Memory, tool: &str, arguments: &str) -> Result<Answer, Error> {
    memory.owner().recall(tool, arguments)
}
