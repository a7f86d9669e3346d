//! Holds what redb writes to a file that is only read, such as its repair after a crash.

use super::blocks::BLOCK;
use std::collections::HashMap;

/// The written blocks, in memory.
#[derive(Debug)]
pub(super) struct Overlay {
    blocks: HashMap<u64, Box<[u8]>>,
    len: u64,
}

impl Overlay {
    /// Creates an overlay over a file of this length, in bytes.
    pub(super) fn new(len: u64) -> Self {
        Self { blocks: HashMap::new(), len }
    }

    /// Returns the length that the file would have.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Sets the length. Blocks beyond it are dropped.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
        self.blocks.retain(|number, _| *number < len / BLOCK as u64);
    }

    /// Returns a written block.
    pub(super) fn block(&self, number: u64) -> Option<&[u8]> {
        self.blocks.get(&number).map(|block| &**block)
    }

    /// Keeps whole blocks.
    pub(super) fn write(&mut self, first: u64, data: &[u8]) {
        for (number, block) in (first..).zip(data.chunks_exact(BLOCK)) {
            self.blocks.insert(number, block.into());
        }
    }
}
