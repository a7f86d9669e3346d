//! Where the texts of payloads come from.

use crate::passage::PASSAGE_BYTES;
use foldback_kv::Todo;
use std::ops::Range;

/// The texts of payloads, which are kept elsewhere. Without one, and for a payload that is missing or
/// damaged, blocks are searched without what their payloads say.
pub trait PayloadTexts: Send + Sync {
    /// These bytes of the todo's payload `n`, or fewer of them but at least one; `None` when they
    /// are missing or damaged. A range never ends behind the payload's size as its message
    /// records it.
    ///
    /// # Errors
    /// When they may be there and cannot be read now. What was to be indexed or searched then fails
    /// too, and is tried again.
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Result<Option<Vec<u8>>, ReadError>;
}

/// Why a payload cannot be read now.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Of a payload's text, this many bytes are searched, from its beginning: 16 MiB.
pub(crate) const MAX_TEXT: u64 = 16 << 20;

/// So many bytes of a payload are read at once.
pub(crate) const READ_BYTES: u64 = 1 << 20;

/// A payload of a block that is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadText {
    /// The payload's number in its todo.
    pub(crate) n: u64,
    /// Its size in bytes.
    pub(crate) bytes: u64,
}

impl PayloadText {
    /// About how many passages it has.
    pub(crate) fn passages(&self) -> u64 {
        self.bytes.min(MAX_TEXT).div_ceil(PASSAGE_BYTES as u64)
    }
}
