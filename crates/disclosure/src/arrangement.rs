//! What a prompt shows, for callers who hold the messages in a form of their own.

use foldback_core::{Message, SeqNo};
use std::sync::Arc;

/// What the next prompt shows, in order, but for the system prompt and the tools. Callers who hold the messages
/// in a form of their own send that, where the recorded one is shown as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrangement {
    /// What is shown.
    pub pieces: Vec<Piece>,
    /// Whether a recall tool has to be declared with it.
    pub declares: bool,
}

/// A message of an [`Arrangement`].
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A recorded message, as it was recorded.
    Recorded(SeqNo),
    /// What is shown in the place of a recorded message: its large parts are elsewhere, or it takes fewer tokens so.
    Instead(SeqNo, Arc<Message>),
    /// A message that nobody recorded: what the view says about blocks that left.
    Written(Arc<Message>),
}
