//! The contents of a prompt, for callers that hold the messages in a form of their own.

use foldback_core::{Message, SeqNo};
use std::sync::Arc;

/// The contents of the next prompt, in order, without the system prompt and the tools. Callers that hold the messages
/// in a form of their own send that form wherever the recorded message is shown as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrangement {
    /// The messages that are shown.
    pub pieces: Vec<Piece>,
    /// Whether a recall tool has to be declared with it.
    pub declares: bool,
}

/// A message of an [`Arrangement`].
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A recorded message, as it was recorded.
    Recorded(SeqNo),
    /// A replacement for a recorded message: its large parts are elsewhere, or it takes fewer tokens in this form.
    Instead(SeqNo, Arc<Message>),
    /// A message that was not recorded: what the view says about blocks that left.
    Written(Arc<Message>),
}
