//! Stored contents for tools, which the model names but need not read.

use crate::ContextError;
use std::io::Write;

/// Hands tools the contents of references: the bytes go to the tool, and none of them enter the conversation.
///
/// A context provides it through [`ContextManager::hand_over`](crate::ContextManager::hand_over). It outlives the
/// request, so a tool can read while the loop continues; what the context's todo may read is looked up each time.
pub trait HandOver: Send + Sync {
    /// Writes the content of a reference to `out`, each part after it was checked, and returns how many bytes it wrote: for a
    /// payload its bytes, for a block its messages as JSON Lines, each exactly as it was recorded.
    ///
    /// `asked` is a reference as the model wrote it: `store://2-k4qd`, `b_003`, or `store://2-k4qd#lines=10-40`
    /// for these lines alone.
    ///
    /// # Errors
    /// When it names nothing that the todo may read, in the same words whether it exists or not; when it has more than
    /// `most` bytes, or is damaged; and when the store or `out` fails. What comes before the damage is written.
    fn hand_over(&self, asked: &str, most: u64, out: &mut dyn Write) -> Result<u64, HandOverError>;
}

/// Why something was not handed over.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// A mistake of the model, or damage to what it asks for: a sentence for the model.
    #[error("{0}")]
    Mistake(String),
    /// The store or the destination failed.
    #[error(transparent)]
    Context(#[from] ContextError),
}
