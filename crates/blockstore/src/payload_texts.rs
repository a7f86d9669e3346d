//! The source of the texts of payloads.

use crate::WhyUnsearched;
use crate::passage::PASSAGE_BYTES;
use foldback_core::Check;
use foldback_kv::Todo;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The texts of payloads, which are kept elsewhere. Without one, blocks are searched without the texts of their
/// payloads.
pub trait PayloadTexts: Send + Sync {
    /// Returns these bytes of the todo's payload `n`, or fewer of them but at least one. A range never ends after the
    /// payload's size as its message records it.
    ///
    /// # Errors
    /// Why they cannot be read. The rest is searched all the same, the answer names the payload, and it
    /// is tried again with the next search.
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Result<Vec<u8>, WhyUnsearched>;
}

/// The first 16 MiB of a payload's text are searched.
const MAX_TEXT: u64 = 16 << 20;

/// The number of bytes of a payload read at once.
pub(crate) const READ_BYTES: u64 = 1 << 20;

/// A payload of a block that is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PayloadText {
    /// The payload's number in its todo.
    pub(crate) n: u64,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// The check that follows its number in its reference.
    pub(crate) check: Check,
}

impl PayloadText {
    /// Returns where the searched part of it ends.
    pub(crate) fn end(&self) -> u64 {
        self.bytes.min(MAX_TEXT)
    }

    /// Returns about how many passages it has.
    pub(crate) fn passages(&self) -> u64 {
        self.end().div_ceil(PASSAGE_BYTES as u64)
    }
}
