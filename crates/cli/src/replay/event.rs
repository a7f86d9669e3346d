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
        /// What it is of the message: `the result of read_file`.
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
        /// The tokens of the line that stands for it.
        line: u64,
        /// Why it closed, in a sentence.
        evidence: &'a str,
    },
    /// How large the live view is, at intervals.
    Size {
        /// The tokens of the prompt.
        view: u64,
        /// The tokens of everything so far.
        full: u64,
    },
    /// The model is asked.
    Call {
        /// How many messages there are so far.
        at: usize,
        /// What it gets.
        prompt: &'a Prompt,
        /// The tokens of that.
        sent: u64,
        /// The baselines, which were asked too.
        beside: &'a [Beside],
    },
}

/// Who receives it.
pub(crate) type Watch<'w> = &'w mut dyn FnMut(Event<'_>) -> Result<(), CliError>;
