//! The file under redb: blocks with checksums, so that no damaged page is ever read as valid.
//!
//! redb keeps checksums of its pages in their parent pages, and verifies them only when it repairs a
//! file. A flipped bit that it reads otherwise may silently hide records. So our file stores the contents
//! of redb's file as blocks:
//!
//! | bytes | what |
//! |---|---|
//! | 4 x 4,096 | redb's header, in four slots: twice for an even and twice for an odd number of writes |
//! | each 4,104 | a block of 4,096 bytes, then xxh3-64 of it with its number as the seed, little endian |
//!
//! A slot holds the number of the write (8 bytes, little endian), the length of the header (2), the header,
//! zeros up to 504 bytes, and xxh3-64 of all that. The valid slot with the greatest number counts, so that
//! a torn header falls back to the one before it, and no single flipped bit loses a header.
//!
//! A read that meets a block with a wrong checksum gets zeros, which redb does not take for a page and
//! refuses on each read.

use super::overlay::Overlay;
use crate::Error;
use crate::error::{reading, writing};
use parking_lot::Mutex;
use redb::StorageBackend;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The part of redb's file that one checksum covers: redb's page.
pub(super) const BLOCK: usize = 4096;
/// A block and its checksum.
const SEALED: usize = BLOCK + 8;
/// The distance between the slots of redb's header.
const SLOT: u64 = 4096;
/// The used bytes of a slot: fewer than the smallest sector, so that a slot is written whole.
const SLOT_USED: usize = 512;
/// The longest header that a slot can hold. redb's has 320 bytes.
const HEADER_MOST: usize = SLOT_USED - 18;
/// Where the blocks begin.
const BLOCKS: u64 = 4 * SLOT;

thread_local! {
    static DAMAGED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Returns the offset of the last page that this thread could not read because of a wrong checksum, since the last
/// call.
pub(super) fn take_damaged() -> Option<u64> {
    DAMAGED.take()
}

/// Returns whether a file has a header of ours.
pub(crate) fn are_in(file: &Path) -> bool {
    File::open(file).and_then(|file| Header::read(&file)).is_ok_and(|header| header.is_some())
}

/// The file as redb sees it.
#[derive(Debug)]
pub(super) struct Blocks {
    file: File,
    header: Mutex<Header>,
    /// What redb wrote to a file that is only read.
    overlay: Option<Mutex<Overlay>>,
}

/// The newest of redb's headers. It is written last before a sync, so that a killed process leaves no header
/// whose pages are missing.
#[derive(Debug, Default)]
struct Header {
    writes: u64,
    bytes: Vec<u8>,
    is_written: bool,
}

impl Blocks {
    /// Creates a new, empty file, for its owner alone.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(writing("create", path))?;
        Ok(Self { file, header: Default::default(), overlay: None })
    }

    /// Opens an existing file. With `reading_only` the file is left as it is, and what redb writes is kept
    /// in memory.
    pub(super) fn open(path: &Path, reading_only: bool) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(!reading_only).open(path);
        let file = if reading_only {
            file.map_err(reading("open", path))?
        } else {
            file.map_err(writing("open", path))?
        };
        let header = Header::read(&file).map_err(reading("read", path))?;
        let stored = stored_len(&file).map_err(reading("measure", path))?;
        let (Some(header), 1..) = (header, stored) else {
            // redb would begin a new database in an empty file.
            let detail = "none of the copies of its header is valid".to_owned();
            return Err(Error::Damaged { path: path.to_owned(), detail });
        };
        let overlay = reading_only.then(|| Mutex::new(Overlay::new(stored)));
        Ok(Self { file, header: Mutex::new(header), overlay })
    }

    /// Reads whole blocks; `false` if one of them has a wrong checksum, or the file ends before it.
    fn read_blocks(&self, first: u64, out: &mut [u8]) -> io::Result<bool> {
        let mut sealed = vec![0; out.len() / BLOCK * SEALED];
        read_at(&self.file, &mut sealed, BLOCKS + first * SEALED as u64)?;
        let overlay = self.overlay.as_ref().map(Mutex::lock);
        let blocks = sealed.chunks_exact(SEALED).zip(out.chunks_exact_mut(BLOCK));
        let mut sound = true;
        for (number, (sealed, out)) in (first..).zip(blocks) {
            if let Some(written) = overlay.as_ref().and_then(|overlay| overlay.block(number)) {
                out.copy_from_slice(written);
                continue;
            }
            let (block, checksum) = sealed.split_at(BLOCK);
            sound &= xxh3_64_with_seed(block, number).to_le_bytes() == checksum;
            out.copy_from_slice(block);
        }
        Ok(sound)
    }

    /// Writes the newest header, if it is not written yet.
    fn write_header(&self) -> io::Result<()> {
        let mut header = self.header.lock();
        if header.is_written || self.overlay.is_some() {
            return Ok(());
        }
        let slot = header.slot();
        let at = SLOT * (header.writes % 2);
        write_at(&self.file, &slot, at)?;
        write_at(&self.file, &slot, at + 2 * SLOT)?;
        header.is_written = true;
        Ok(())
    }
}

impl StorageBackend for Blocks {
    fn len(&self) -> io::Result<u64> {
        match &self.overlay {
            Some(overlay) => Ok(overlay.lock().len()),
            None => stored_len(&self.file),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset == 0 && out.len() < BLOCK {
            let header = self.header.lock();
            let found = header.bytes.get(..out.len());
            out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            return Ok(());
        }
        let first = whole_blocks(offset, out.len())?;
        if !self.read_blocks(first, out)? {
            DAMAGED.set(Some(BLOCKS + first * SEALED as u64));
            out.fill(0);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match &self.overlay {
            Some(overlay) => overlay.lock().set_len(len),
            None => resize(&self.file, BLOCKS + whole_blocks(len, 0)? * SEALED as u64)?,
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        match &self.overlay {
            Some(_) => Ok(()),
            None => {
                // Unlike a write of data, a half-written header or a failed sync leaves open whether the commit is
                // durable.
                self.write_header().and_then(|()| self.file.sync_data()).map_err(io::Error::other)
            }
        }
    }

    fn close(&self) -> io::Result<()> {
        self.write_header()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset == 0 && data.len() < BLOCK {
            if data.len() > HEADER_MOST {
                return Err(io::Error::other(format!("a header of {} bytes", data.len())));
            }
            let mut header = self.header.lock();
            let writes = header.writes + 1;
            *header = Header { writes, bytes: data.to_vec(), is_written: false };
            return Ok(());
        }
        let first = whole_blocks(offset, data.len())?;
        if let Some(overlay) = &self.overlay {
            overlay.lock().write(first, data);
            return Ok(());
        }
        let mut sealed = Vec::with_capacity(data.len() / BLOCK * SEALED);
        for (number, block) in (first..).zip(data.chunks_exact(BLOCK)) {
            sealed.extend_from_slice(block);
            sealed.extend_from_slice(&xxh3_64_with_seed(block, number).to_le_bytes());
        }
        write_at(&self.file, &sealed, BLOCKS + first * SEALED as u64)
    }
}

impl Header {
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut newest = None::<Self>;
        for number in 0..4 {
            let mut slot = [0; SLOT_USED];
            read_at(file, &mut slot, number * SLOT)?;
            if let Some(found) = Self::parse(&slot)
                && newest.as_ref().is_none_or(|newest| newest.writes < found.writes)
            {
                newest = Some(found);
            }
        }
        Ok(newest)
    }

    fn parse(slot: &[u8; SLOT_USED]) -> Option<Self> {
        let (body, checksum) = slot.split_last_chunk::<8>()?;
        if xxh3_64(body).to_le_bytes() != *checksum {
            return None;
        }
        let (writes, rest) = body.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let bytes = rest.get(..u16::from_le_bytes(*length).into())?;
        let writes = u64::from_le_bytes(*writes);
        // Zeros are not a slot, though their checksum might be zero.
        (writes > 0).then(|| Self { writes, bytes: bytes.to_vec(), is_written: true })
    }

    fn slot(&self) -> [u8; SLOT_USED] {
        let mut slot = [0; SLOT_USED];
        let length = u16::try_from(self.bytes.len()).unwrap_or(u16::MAX);
        slot[..8].copy_from_slice(&self.writes.to_le_bytes());
        slot[8..10].copy_from_slice(&length.to_le_bytes());
        slot[10..10 + self.bytes.len()].copy_from_slice(&self.bytes);
        let checksum = xxh3_64(&slot[..SLOT_USED - 8]);
        slot[SLOT_USED - 8..].copy_from_slice(&checksum.to_le_bytes());
        slot
    }
}

/// Returns the number of the block at an offset, for data that consists of whole blocks.
fn whole_blocks(offset: u64, length: usize) -> io::Result<u64> {
    let block = BLOCK as u64;
    if !offset.is_multiple_of(block) || !length.is_multiple_of(BLOCK) {
        return Err(io::Error::other(format!("{length} bytes at {offset} are not whole blocks")));
    }
    Ok(offset / block)
}

/// Returns the length of the file as redb sees it: its whole blocks.
fn stored_len(file: &File) -> io::Result<u64> {
    let blocks = file.metadata()?.len().saturating_sub(BLOCKS) / SEALED as u64;
    Ok(blocks * BLOCK as u64)
}

/// Sets the length of the file. New space is written rather than left as a sparse hole: a full disk shows
/// here, and a later commit into that space has only its own bytes to sync.
fn resize(file: &File, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut end = file.metadata()?.len();
    if len < end {
        return file.set_len(len);
    }
    while end < len {
        let part = usize::try_from(len - end).unwrap_or(usize::MAX).min(ZEROS.len());
        write_at(file, &ZEROS[..part], end)?;
        end += part as u64;
    }
    Ok(())
}

/// Reads up to the end of the file, and returns how much was read.
fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut found = 0;
    while found < out.len() {
        match part_at(file, &mut out[found..], offset + found as u64) {
            Ok(0) => break,
            Ok(more) => found += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[cfg(unix)]
fn part_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn part_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        (bytes, offset) = (&bytes[written..], offset + written as u64);
    }
    Ok(())
}
