//! What looks into all todos, where the person has allowed it.

use foldback::{Answer, Error, Memory};

/// Whether a tool looks into all todos where that is allowed.
pub(crate) fn is_of_all(tool: &str) -> bool {
    matches!(tool, "search_block" | "load")
}

/// The answer of such a tool.
///
/// # Errors
/// When the store fails.
pub(crate) fn answer(memory: &Memory, tool: &str, arguments: &str) -> Result<Answer, Error> {
    memory.owner().recall(tool, arguments)
}
