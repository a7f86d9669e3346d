//! Writes a payload's file, chunk by chunk.

use super::format::{CHUNK, ENTRY, Entry, Footer, check_of, header, seal};
use super::sealing::Sealing;
use std::io::{self, Write};

/// A writer that takes a payload in pieces of any size and writes its file.
pub(crate) struct Writer<W> {
    out: W,
    compressor: zstd::bulk::Compressor<'static>,
    /// The bytes that do not yet fill a chunk.
    part: Vec<u8>,
    packed: Vec<u8>,
    table: Vec<u8>,
    hasher: blake3::Hasher,
    sealing: Option<Sealing>,
    bytes: u64,
    feeds: u64,
    written: u64,
}

/// A completely written file.
pub(crate) struct Written {
    pub(crate) hash: [u8; 32],
    pub(crate) seal: [u8; 32],
    pub(crate) bytes: u64,
    /// The file's length.
    pub(crate) stored: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W, level: i32, sealing: Option<Sealing>) -> io::Result<Self> {
        let header = header(sealing.is_some());
        out.write_all(&header)?;
        Ok(Self {
            out,
            compressor: zstd::bulk::Compressor::new(level)?,
            part: Vec::new(),
            packed: Vec::with_capacity(CHUNK),
            table: Vec::new(),
            hasher: blake3::Hasher::new(),
            sealing,
            bytes: 0,
            feeds: 0,
            written: header.len() as u64,
        })
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.part.is_empty()
                && let Some((chunk, rest)) = bytes.split_at_checked(CHUNK)
            {
                self.chunk(chunk)?;
                bytes = rest;
                continue;
            }
            let room = CHUNK.saturating_sub(self.part.len());
            let (now, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.part.extend_from_slice(now);
            bytes = rest;
            if self.part.len() == CHUNK {
                self.part_chunk()?;
            }
        }
        Ok(())
    }

    /// Writes the remaining bytes, the table and the footer. The caller must make durable what
    /// `out` received.
    pub(crate) fn finish(mut self) -> io::Result<(W, Written)> {
        if !self.part.is_empty() {
            self.part_chunk()?;
        }
        let hash = *self.hasher.finalize().as_bytes();
        let chunks = (self.table.len() / ENTRY) as u64;
        let footer = Footer { chunks, bytes: self.bytes, feeds: self.feeds, hash }.write();
        let seal = seal(self.sealing.is_some(), &self.table, &footer);
        let mut end = [&self.table, &footer, &seal[..]].concat();
        if let Some(sealing) = &self.sealing {
            end = sealing.seal_table(&end)?;
        }
        self.out.write_all(&end)?;
        self.out.flush()?;
        let stored = self.written + end.len() as u64;
        Ok((self.out, Written { hash, seal, bytes: self.bytes, stored }))
    }

    fn part_chunk(&mut self) -> io::Result<()> {
        let mut part = std::mem::take(&mut self.part);
        self.chunk(&part)?;
        part.clear();
        self.part = part;
        Ok(())
    }

    fn chunk(&mut self, raw: &[u8]) -> io::Result<()> {
        // The buffer only has room for a result that is worth keeping, so zstd stops early on bytes
        // that do not shrink.
        let worth = raw.len() - raw.len() / 16;
        self.packed.resize(worth, 0);
        let packed = self.compressor.compress_to_buffer(raw, self.packed.as_mut_slice());
        let packed = packed.ok().and_then(|size| self.packed.get(..size));
        let stored = packed.unwrap_or(raw);
        let number = (self.table.len() / ENTRY) as u64;
        let sealed = self.sealing.as_ref().map(|sealing| sealing.seal_chunk(number, stored));
        let sealed = sealed.transpose()?;
        let stored = sealed.as_deref().unwrap_or(stored);
        let feeds = raw.iter().filter(|&&byte| byte == b'\n').count();
        let entry = Entry {
            stored: stored.len() as u32,
            compressed: packed.is_some(),
            feeds: feeds as u32,
            check: check_of(stored),
        };
        self.out.write_all(stored)?;
        self.written += stored.len() as u64;
        self.feeds += feeds as u64;
        entry.write(&mut self.table);
        Ok(())
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes)?;
        Ok(bytes.len())
    }

    /// Does nothing: chunks are written when they are full, and the last one by [`finish`](Self::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
