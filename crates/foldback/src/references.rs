//! Resolves references into any todo.

use crate::error::Failure;
use crate::memory::Shared;
use crate::{Error, Memory, texts};
use foldback_backend_store::Error as PayloadError;
use foldback_core::{Reference, TodoId};
use foldback_kv::Todo;
use std::io::Write;

/// The blocks and payloads of a store by reference, as one todo may read them: its own, and what was
/// [granted](crate::Grants) to it.
#[derive(Clone, Copy)]
pub struct References<'a> {
    memory: &'a Shared,
}

impl Memory {
    /// Returns the access to blocks and payloads by reference.
    #[must_use]
    pub fn references(&self) -> References<'_> {
        References { memory: &self.shared }
    }
}

impl References<'_> {
    /// Returns the todo that a reference leads to, as seen from `todo`: `todo` itself, or another
    /// that has granted it.
    ///
    /// # Errors
    /// When there is no `todo`; when the reference was not granted or never existed, in the same words;
    /// and when the store fails.
    pub fn locate(self, todo: &TodoId, reference: &Reference) -> Result<Todo, Error> {
        self.memory.locate(&self.memory.find(todo)?, reference)
    }

    /// Writes what a reference names to `out`, each part after it was checked, and returns the
    /// number of bytes: for a payload its bytes, for a block its messages as JSON Lines. No more
    /// than a few megabytes of a payload are in memory at once.
    ///
    /// # Errors
    /// As [`locate`](Self::locate); on damage; and when `out` fails. If damage is found late, what precedes
    /// it is already written.
    pub fn write(
        self,
        todo: &TodoId,
        reference: &Reference,
        out: impl Write,
    ) -> Result<u64, Error> {
        let found = self.memory.find(todo)?;
        self.memory.locate(&found, reference)?;
        self.memory.note_references(todo, "read", std::slice::from_ref(reference), true)?;
        self.memory.write_reference(&found, reference, out)
    }
}

impl Shared {
    pub(crate) fn write_reference(
        &self,
        todo: &Todo,
        reference: &Reference,
        out: impl Write,
    ) -> Result<u64, Error> {
        let from = self.locate(todo, reference)?;
        match reference {
            Reference::Payload { n, .. } => Ok(self.payloads.write_to(&from, *n, out)?),
            Reference::Block(id) => self.write_block(&from, id.n(), out),
        }
    }

    /// Returns how many bytes the reference names: for a payload exactly, for a block those of its large parts.
    pub(crate) fn size_of(&self, todo: &Todo, reference: &Reference) -> Result<u64, Error> {
        let from = self.locate(todo, reference)?;
        match reference {
            Reference::Payload { n, .. } => Ok(self.payloads.meta(&from, *n)?.bytes),
            Reference::Block(id) => {
                let block = self.blocks.block(&from, id.n())?;
                let range = block.map_or(0..0, |block| block.range.as_u64());
                let stored = self.blocks.messages(&from, range)?;
                let offloads = stored.iter().flat_map(|message| &message.offloads);
                Ok(offloads.map(|offload| offload.bytes).sum())
            }
        }
    }

    fn write_block(&self, todo: &Todo, n: u32, mut out: impl Write) -> Result<u64, Error> {
        let block = self.blocks.block(todo, n)?;
        let block = block.ok_or(Failure::Internal("a block that was located is gone"))?;
        let mut bytes = 0;
        for seq in block.range.iter() {
            // Between JSON tokens a line break is equivalent to a space, and inside strings there
            // can be none.
            let mut line = texts::exact_message(self, todo, seq)?.json().replace(['\n', '\r'], " ");
            line.push('\n');
            let written = out.write_all(line.as_bytes());
            written.map_err(|source| PayloadError::Stream { doing: "write", source })?;
            bytes += line.len() as u64;
        }
        Ok(bytes)
    }
}
