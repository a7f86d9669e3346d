//! Where the texts of payloads come from.

use crate::WhyUnsearched;
use crate::passage::PASSAGE_BYTES;
use foldback_core::Check;
use foldback_kv::Todo;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The texts of payloads, which are kept elsewhere. Without one, blocks are searched without what their
/// payloads say.
pub trait PayloadTexts: Send + Sync {
    /// These bytes of the todo's payload `n`, or fewer of them but at least one. A range never ends
    /// behind the payload's size as its message records it.
    ///
    /// # Errors
    /// Why they cannot be read. The rest is searched all the same, the answer names the payload, and it
    /// is tried again with the next search.
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Result<Vec<u8>, WhyUnsearched>;
}

/// Of a payload's text, this many bytes are searched, from its beginning: 16 MiB.
const MAX_TEXT: u64 = 16 << 20;

/// So many bytes of a payload are read at once.
pub(crate) const READ_BYTES: u64 = 1 << 20;

/// A payload of a block that is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PayloadText {
    /// The payload's number in its todo.
    pub(crate) n: u64,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// What stands behind its number in its reference.
    pub(crate) check: Check,
}

impl PayloadText {
    /// Where what is searched of it ends.
    pub(crate) fn end(&self) -> u64 {
        self.bytes.min(MAX_TEXT)
    }

    /// About how many passages it has.
    pub(crate) fn passages(&self) -> u64 {
        self.end().div_ceil(PASSAGE_BYTES as u64)
    }
}
