//! What happens while a conversation is replayed.

use super::Beside;
use crate::error::CliError;
use foldback_backend_store::Meta;
use foldback_core::{Block, Prompt, SeqNo};

/// What happens while a conversation is replayed.
pub(crate) enum Event<'a> {
    /// A part of a message was stored outside.
    Offloaded {
        /// The message.
        seq: SeqNo,
        /// The part of the message: `the result of read_file`.
        what: &'a str,
        /// The payload.
        meta: &'a Meta,
    },
    /// A block closed.
    Closed {
        /// The block.
        block: &'a Block,
        /// How many messages there are so far.
        at: usize,
        /// The tokens of its messages.
        tokens: u64,
        /// The tokens of the line that replaces it.
        line: u64,
        /// Why it closed, in a sentence.
        evidence: &'a str,
    },
    /// The size of the live view, at intervals.
    Size {
        /// The tokens of the prompt.
        view: u64,
        /// The tokens of everything so far.
        full: u64,
    },
    /// A call of the model.
    Call {
        /// How many messages there are so far.
        at: usize,
        /// The prompt.
        prompt: &'a Prompt,
        /// The tokens of the prompt.
        sent: u64,
        /// The cost of all prompts so far, in tokens at the plain price.
        cost: f64,
        /// The baselines, which received the same call.
        beside: &'a [Beside],
    },
}

/// The receiver of events.
pub(crate) type Watch<'w> = &'w mut dyn FnMut(Event<'_>) -> Result<(), CliError>;
