//! Reads a payload's file by range, and checks what it reads.

use super::format::{
    CHUNK, ENTRY, Entry, FOOTER, Footer, HEADER, check_header, check_of, chunks_of, seal,
};
use super::sealing::Sealing;
use crate::Fault;
use crate::payload_files::{PayloadFile, Sealed};

/// An open payload file whose table was checked.
pub(crate) struct Reader {
    file: Box<dyn PayloadFile>,
    bytes: u64,
    hash: [u8; 32],
    seal: [u8; 32],
    chunks: Vec<Chunk>,
    sealing: Option<Sealing>,
    decompressor: zstd::bulk::Decompressor<'static>,
    /// The chunk that was read last.
    at: Option<usize>,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Chunk {
    offset: u64,
    /// The number of line feeds in all chunks before it.
    feeds_before: u64,
    entry: Entry,
}

impl Reader {
    /// Opens the file of a payload of this hash and size. With `sealed`, the file must have that
    /// seal.
    pub(crate) fn open(
        mut file: Box<dyn PayloadFile>,
        hash: &[u8; 32],
        bytes: u64,
        sealed: Option<&[u8; 32]>,
        sealing: Option<Sealing>,
    ) -> Result<Self, Fault> {
        let count = chunks_of(bytes);
        let table_size = count * ENTRY as u64;
        let overhead = if sealing.is_some() { Sealing::OVERHEAD } else { 0 };
        let end_size = table_size + (FOOTER + overhead) as u64;
        let Some(table_at) = file.len().checked_sub(end_size) else {
            return Fault::damaged("its file is truncated");
        };
        let mut head = [0; HEADER];
        file.read_at(0, &mut head)?;
        check_header(&head, sealing.is_some())?;

        // The allocation follows from the payload's size, and the file was found to be that long.
        let mut end = vec![0; end_size as usize];
        file.read_at(table_at, &mut end)?;
        if let Some(sealing) = &sealing {
            end = match sealing.open_table(&end) {
                Some(end) => end,
                None => return Fault::damaged("the table of its file cannot be decrypted"),
            };
        }
        let Some((table, footer)) = end.split_at_checked(table_size as usize) else {
            return Fault::damaged("its file is truncated");
        };
        let (before_seal, _) = footer.split_at(FOOTER - 32);
        let Some((fields, found_seal)) = Footer::read(footer) else {
            return Fault::damaged("the end of its file cannot be read");
        };
        if seal(sealing.is_some(), table, before_seal) != found_seal {
            return Fault::damaged("the table of its file does not match its seal");
        }
        if fields.hash != *hash || fields.bytes != bytes || fields.chunks != count {
            return Fault::damaged("its file belongs to another payload");
        }
        if sealed.is_some_and(|sealed| *sealed != found_seal) {
            return Fault::damaged("its file is not the one that was written");
        }

        let mut chunks = Vec::with_capacity(count as usize);
        let (mut offset, mut feeds_before) = (HEADER as u64, 0);
        for (i, entry) in table.chunks_exact(ENTRY).enumerate() {
            let Some(entry) = Entry::read(entry) else {
                return Fault::damaged("the table of its file cannot be read");
            };
            let raw = raw_size(bytes, i);
            let stored = (entry.stored as usize).checked_sub(overhead);
            if !stored.is_some_and(|stored| stored == raw || entry.compressed && stored < raw) {
                return Fault::damaged(format!("the size of chunk {i} of its file is wrong"));
            }
            chunks.push(Chunk { offset, feeds_before, entry });
            offset += u64::from(entry.stored);
            feeds_before += u64::from(entry.feeds);
        }
        if offset != table_at || feeds_before != fields.feeds {
            return Fault::damaged("the table of its file is inconsistent");
        }
        Ok(Self {
            file,
            bytes,
            hash: *hash,
            seal: found_seal,
            chunks,
            sealing,
            decompressor: zstd::bulk::Decompressor::new()?,
            at: None,
            raw: Vec::new(),
            packed: Vec::new(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns what identifies the bytes of the file.
    pub(crate) fn sealed(&self) -> Sealed {
        Sealed { seal: self.seal, stored: self.file.len() }
    }

    /// Returns the bytes from `at` to the end of its chunk; none at the end of the payload.
    pub(crate) fn fill(&mut self, at: u64) -> Result<&[u8], Fault> {
        if at >= self.bytes {
            return Ok(&[]);
        }
        let inside = (at % CHUNK as u64) as usize;
        let raw = self.chunk((at / CHUNK as u64) as usize)?;
        Ok(raw.get(inside..).unwrap_or_default())
    }

    /// Returns the number of line feeds before `at`.
    pub(crate) fn feeds_before(&mut self, at: u64) -> Result<u64, Fault> {
        let i = (at / CHUNK as u64) as usize;
        let inside = (at % CHUNK as u64) as usize;
        let Some(before) = self.chunks.get(i).map(|chunk| chunk.feeds_before) else {
            return Ok(self.feeds());
        };
        let raw = self.chunk(i)?;
        Ok(before + count_feeds(raw.get(..inside).unwrap_or_default()))
    }

    /// Returns the position of the byte after the `nth` line feed, counted from 1.
    pub(crate) fn after_feed(&mut self, nth: u64) -> Result<Option<u64>, Fault> {
        if nth == 0 {
            return Ok(Some(0));
        }
        if nth > self.feeds() {
            return Ok(None);
        }
        let after = self.chunks.partition_point(|chunk| chunk.feeds_before < nth);
        let Some(i) = after.checked_sub(1) else { return Ok(None) };
        let before = self.chunks.get(i).map_or(0, |chunk| chunk.feeds_before);
        let raw = self.chunk(i)?;
        let inside = nth_feed(raw, nth - before);
        Ok(inside.map(|inside| (i * CHUNK) as u64 + inside as u64 + 1))
    }

    /// Reads everything and compares it with the payload's hash; passes each part to `each` after
    /// its own check.
    pub(crate) fn whole<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut hasher = blake3::Hasher::new();
        for i in 0..self.chunks.len() {
            let raw = self.chunk(i)?;
            hasher.update(raw);
            each(raw)?;
        }
        if *hasher.finalize().as_bytes() != self.hash {
            Fault::damaged("its bytes do not match its hash")?;
        }
        Ok(())
    }

    fn feeds(&self) -> u64 {
        self.chunks.last().map_or(0, |last| last.feeds_before + u64::from(last.entry.feeds))
    }

    fn chunk(&mut self, i: usize) -> Result<&[u8], Fault> {
        if self.at == Some(i) {
            return Ok(&self.raw);
        }
        self.at = None;
        let Some(Chunk { offset, entry, .. }) = self.chunks.get(i).copied() else {
            return Fault::damaged(format!("its file has no chunk {i}"));
        };
        self.packed.resize(entry.stored as usize, 0);
        self.file.read_at(offset, &mut self.packed)?;
        if check_of(&self.packed) != entry.check {
            return Fault::damaged(format!(
                "{} bytes at {offset} of its file do not match their checksum",
                entry.stored
            ));
        }
        if let Some(sealing) = &self.sealing {
            self.packed = match sealing.open_chunk(i as u64, &self.packed) {
                Some(packed) => packed,
                None => {
                    return Fault::damaged(format!("chunk {i} of its file cannot be decrypted"));
                }
            };
        }
        let size = raw_size(self.bytes, i);
        if entry.compressed {
            self.raw.resize(size, 0);
            let found =
                self.decompressor.decompress_to_buffer(&self.packed, self.raw.as_mut_slice());
            if !found.is_ok_and(|found| found == size) {
                return Fault::damaged(format!("chunk {i} of its file cannot be decompressed"));
            }
        } else {
            std::mem::swap(&mut self.raw, &mut self.packed);
        }
        self.at = Some(i);
        Ok(&self.raw)
    }
}

/// Returns the raw size of chunk `i` of a payload of `bytes` bytes.
fn raw_size(bytes: u64, i: usize) -> usize {
    bytes.saturating_sub((i * CHUNK) as u64).min(CHUNK as u64) as usize
}

pub(crate) fn count_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Returns the position of the `nth` line feed, counted from 1.
pub(crate) fn nth_feed(bytes: &[u8], nth: u64) -> Option<usize> {
    let nth = usize::try_from(nth).ok()?.checked_sub(1)?;
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i).nth(nth)
}
