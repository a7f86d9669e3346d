//! Searches SQLite's log for commits that a damaged frame cuts off.
//!
//! A log is a header of 32 bytes and frames of 24 bytes and a page. Each frame carries the header's
//! two salts and a checksum over everything before it. SQLite silently stops at the first invalid
//! frame, because that is how it recognises the torn end of a commit that was not acknowledged. A
//! frame *after* such a one that has the same salts and ends a commit shows that it was not the
//! end. (Frames of an earlier round of the log have other salts; frames of a transaction that was
//! rolled back end no commit.) After a power cut, writes that were never acknowledged may have
//! reached the disk in another order and look the same; hence a finding, and no repair.
//!
//! The layout is that of <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::Finding;

const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24;
/// The last bit says that checksums read their words in big-endian order.
const MAGIC: u32 = 0x377f_0682;

/// Returns the damage in a log, if there is any. A missing or unreadable log shows none.
pub(super) fn damage(path: &Path) -> Option<Finding> {
    let detail = File::open(path).and_then(|file| inspect(BufReader::new(file))).ok()??;
    Some(Finding::Log { path: path.to_owned(), detail })
}

fn inspect(mut log: impl Read) -> io::Result<Option<String>> {
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut log, &mut header)? {
        return Ok(None);
    }
    let mut words = header.chunks_exact(4).map(big_endian);
    let mut word = || words.next().unwrap_or(0);
    let (magic, _version, page_bytes, _round) = (word(), word(), word(), word());
    let salts = (word(), word());
    let stored = Sum(word(), word());
    let order = if magic & 1 == 1 { big_endian } else { little_endian };
    let (signed, _) = header.split_at(HEADER_BYTES - 8);
    let mut sum = Sum(0, 0).over(signed, order);
    let sound = magic & !1 == MAGIC && page_bytes.is_power_of_two() && page_bytes <= 1 << 16;
    if !sound || sum != stored {
        // A first commit that was cut off leaves a torn header and nothing after it.
        let behind = fill(&mut log, &mut [0; FRAME_BYTES])?;
        return Ok(behind.then(|| "its header is damaged, so all of it is ignored".to_owned()));
    }

    let mut frame = [0; FRAME_BYTES];
    let mut page = vec![0; usize::try_from(page_bytes).unwrap_or(0)];
    let mut number = 0_u64;
    let mut bad = None;
    let mut cut_off = 0_u64;
    while fill(&mut log, &mut frame)? && fill(&mut log, &mut page)? {
        number += 1;
        let mut words = frame.chunks_exact(4).map(big_endian);
        let mut word = || words.next().unwrap_or(0);
        let (_page, commit) = (word(), word());
        let same_salts = (word(), word()) == salts;
        let stored = Sum(word(), word());
        if bad.is_some() {
            cut_off += u64::from(same_salts && commit != 0);
            continue;
        }
        let (signed, _) = frame.split_at(8);
        sum = sum.over(signed, order).over(&page, order);
        if !same_salts || sum != stored {
            bad = Some(number);
        }
    }
    Ok(bad.filter(|_| cut_off > 0).map(|bad| {
        format!("its frame {bad} is damaged, and {cut_off} commits after it are ignored")
    }))
}

/// SQLite's running checksum of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    fn over(self, bytes: &[u8], order: fn(&[u8]) -> u32) -> Self {
        bytes.chunks_exact(8).fold(self, |Self(a, b), pair| {
            let (first, second) = pair.split_at(4);
            let a = a.wrapping_add(order(first)).wrapping_add(b);
            let b = b.wrapping_add(order(second)).wrapping_add(a);
            Self(a, b)
        })
    }
}

fn big_endian(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_be_bytes)
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// Fills the buffer. Returns `false` if the log ends before that.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
