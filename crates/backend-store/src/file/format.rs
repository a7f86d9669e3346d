//! The sizes and fields of the format that the parent module describes.

use crate::Fault;

/// The payload bytes of a chunk, except for the last one.
pub(crate) const CHUNK: usize = 256 << 10;
pub(crate) const HEADER: usize = 16;
pub(crate) const ENTRY: usize = 24;
pub(crate) const FOOTER: usize = 96;

const MAGIC: &[u8; 7] = b"FBPAYLD";
const VERSION: u8 = 1;
/// The version of a sealed file.
const SEALED_VERSION: u8 = 2;
const COMPRESSED: u32 = 1 << 31;

/// Returns how many chunks a payload of this size has.
pub(crate) fn chunks_of(bytes: u64) -> u64 {
    bytes.div_ceil(CHUNK as u64)
}

pub(crate) fn header(is_sealed: bool) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    let version = if is_sealed { SEALED_VERSION } else { VERSION };
    let fields = MAGIC.iter().copied().chain([version]).chain((CHUNK as u32).to_le_bytes());
    out.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    out
}

/// Refuses a header of another format, naming its version if there is one.
pub(crate) fn check_header(found: &[u8; HEADER], is_sealed: bool) -> Result<(), Fault> {
    let expected = if is_sealed { SEALED_VERSION } else { VERSION };
    match found.strip_prefix(MAGIC) {
        None => Fault::damaged("its file does not begin like a payload file"),
        Some([version, ..]) if *version != expected => Fault::damaged(format!(
            "its file has format version {version}, but version {expected} was expected"
        )),
        Some(_) if *found != header(is_sealed) => {
            Fault::damaged("the header of its file is damaged")
        }
        Some(_) => Ok(()),
    }
}

/// One chunk's line in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) stored: u32,
    pub(crate) compressed: bool,
    pub(crate) feeds: u32,
    pub(crate) check: [u8; 16],
}

impl Entry {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let flag = if self.compressed { COMPRESSED } else { 0 };
        out.extend((self.stored | flag).to_le_bytes());
        out.extend(self.feeds.to_le_bytes());
        out.extend(self.check);
    }

    pub(crate) fn read(mut from: &[u8]) -> Option<Self> {
        let stored = u32::from_le_bytes(take(&mut from)?);
        let feeds = u32::from_le_bytes(take(&mut from)?);
        let check = take(&mut from)?;
        Some(Self {
            stored: stored & !COMPRESSED,
            compressed: stored & COMPRESSED != 0,
            feeds,
            check,
        })
    }
}

/// The end of the file, without the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) chunks: u64,
    pub(crate) bytes: u64,
    pub(crate) feeds: u64,
    pub(crate) hash: [u8; 32],
}

impl Footer {
    /// Returns the footer's bytes before the seal.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER);
        for number in [self.chunks, self.bytes, self.feeds, 0] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.hash);
        out
    }

    /// Reads the footer and the seal.
    pub(crate) fn read(mut from: &[u8]) -> Option<(Self, [u8; 32])> {
        let chunks = u64::from_le_bytes(take(&mut from)?);
        let bytes = u64::from_le_bytes(take(&mut from)?);
        let feeds = u64::from_le_bytes(take(&mut from)?);
        let _reserved: [u8; 8] = take(&mut from)?;
        let hash = take(&mut from)?;
        let seal = take(&mut from)?;
        Some((Self { chunks, bytes, feeds, hash }, seal))
    }
}

/// Returns the hash that covers everything in the file except the chunks' own bytes.
pub(crate) fn seal(is_sealed: bool, table: &[u8], footer: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header(is_sealed)).update(table).update(footer);
    *hasher.finalize().as_bytes()
}

/// Returns the check of a chunk's stored bytes.
pub(crate) fn check_of(stored: &[u8]) -> [u8; 16] {
    let mut check = [0; 16];
    check.iter_mut().zip(blake3::hash(stored).as_bytes()).for_each(|(to, from)| *to = *from);
    check
}

/// Removes the first `N` bytes from the slice, and returns them.
fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}
