//! The tools by which a model keeps its todo list, and shares what it knows with the list's items.

mod item_ids;
mod memory_share;
mod todo_write;

pub(crate) use item_ids::{as_told, child_id, item_id, short_name};
pub(crate) use memory_share::grant;
pub use memory_share::memory_share;
pub use todo_write::todo_write;

use foldback_core::ContextError;
use foldback_tool::{ContextHandle, ToolError};

/// Converts a failure of the context to one of a tool.
pub(crate) fn failed(context: &ContextHandle, error: &ContextError) -> ToolError {
    ToolError::permanent(as_told(context.todo(), &error.message))
}
