//! Contents that are handed to a call by reference.

use crate::{CallContext, ToolError};
use foldback_core::{ContextError, HandOver, HandOverError};
use std::sync::Arc;

impl CallContext {
    /// Returns the way to hand this call the contents that references in its arguments name, so that a model can
    /// pass on what it has not read. Reading blocks the thread: it belongs in `tokio::task::spawn_blocking`.
    ///
    /// # Errors
    /// When the call has no context, or one that stores nothing.
    pub async fn hand_over(&self) -> Result<Arc<dyn HandOver>, ToolError> {
        let found = match &self.context {
            Some(context) => context.hand_over().await.map_err(failed)?,
            None => None,
        };
        found.ok_or_else(|| {
            ToolError::permanent(
                "nothing is stored in this conversation that a reference could name; give the text itself",
            )
        })
    }
}

/// Returns the content that a reference names, in memory.
///
/// # Errors
/// When it names nothing, or more than `most` bytes, or the store fails.
pub fn handed_bytes(from: &dyn HandOver, asked: &str, most: u64) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    from.hand_over(asked, most, &mut bytes)?;
    Ok(bytes)
}

impl From<HandOverError> for ToolError {
    fn from(error: HandOverError) -> Self {
        match error {
            HandOverError::Mistake(message) => Self::arguments(message),
            HandOverError::Context(error) => failed(error),
        }
    }
}

fn failed(error: ContextError) -> ToolError {
    ToolError::permanent(error.message)
}
