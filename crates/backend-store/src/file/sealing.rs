//! Seals a payload's file, if the store is encrypted.

use foldback_kv::{Cipher, OVERHEAD_BYTES};
use std::io;

/// The key of a todo's files.
#[derive(Clone, Debug)]
pub(crate) struct Sealing {
    cipher: Cipher,
    todo: u32,
}

/// The place of the table and the footer, which no chunk has.
const TABLE: u64 = u64::MAX;

impl Sealing {
    /// How many bytes sealing adds to a chunk, or to the table with the footer.
    pub(crate) const OVERHEAD: usize = OVERHEAD_BYTES;

    pub(crate) fn new(cipher: Cipher, todo: u32) -> Self {
        Self { cipher, todo }
    }

    /// Returns the bytes by which the file of a payload with this hash is named: without the key, the name does not
    /// reveal which bytes are in it.
    pub(crate) fn name(&self, hash: &[u8; 32]) -> [u8; 32] {
        self.cipher.digest(hash)
    }

    pub(crate) fn seal_chunk(&self, number: u64, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.cipher.seal(&self.place(number), bytes).map_err(io::Error::other)
    }

    pub(crate) fn open_chunk(&self, number: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        self.cipher.open(&self.place(number), sealed)
    }

    pub(crate) fn seal_table(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.seal_chunk(TABLE, bytes)
    }

    pub(crate) fn open_table(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.open_chunk(TABLE, sealed)
    }

    fn place(&self, number: u64) -> [u8; 12] {
        let mut place = [0; 12];
        let bytes = self.todo.to_le_bytes().into_iter().chain(number.to_le_bytes());
        place.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_a_chunk_opens_in_its_own_place_alone() {
        let sealing = Sealing::new(Cipher::random().unwrap(), 7);
        let sealed = sealing.seal_chunk(3, b"part").unwrap();
        assert_eq!(sealed.len(), 4 + Sealing::OVERHEAD);
        assert_eq!(sealing.open_chunk(3, &sealed).as_deref(), Some(&b"part"[..]));
        assert_eq!(sealing.open_chunk(4, &sealed), None);
        assert_eq!(sealing.open_table(&sealed), None);
        assert_eq!(Sealing { todo: 8, ..sealing }.open_chunk(3, &sealed), None);
    }
}
