//! A copy of a todo's index in the store. Another machine takes it, and need not read and analyse every block.
//!
//! ```text
//! index T/1       the `CopyHead`: which copy counts, and who writes to it
//! index T/16..    the chunks: the bytes of the layers
//! ```
//!
//! A copy has *layers*, each a run of chunks with the bytes of one update. The large files of an index only grow at their
//! end, or are never changed, so an update writes what is new, and a head that names the layers before it, too. Their
//! bytes that no longer belong to the index are *dead*. When these are half as many as the others, the copy is written anew,
//! as one layer.
//!
//! A head is replaced in one step, and only if it is the one that its writer read ([`Kv::commit_if`]). So of two writers
//! one gives up, and no chunk of a copy that counts is written over. Only a first head cannot be compared: of two first
//! copies that begin at the same moment one may replace the other. A writer that needs several commits first notes
//! where it writes; what it leaves when it is interrupted goes with the next update. Each commit expects the todo's head
//! and leaves it as it was, so that forgetting waits for the commit, or prevents it.
//!
//! A copy is derived data: one that is damaged, of another format or of other vectors is ignored and written anew. The
//! files are those of [`disk`](crate::disk), and are checked as on the machine that wrote them.
//!
//! [`Kv::commit_if`]: foldback_kv::Kv::commit_if

mod publisher;
mod receiver;

pub(crate) use publisher::{Published, Publisher};
pub(crate) use receiver::{Receiver, is_damaged};

use crate::Error;
use crate::disk::INDEX_FORMAT;
use crate::records::Records;
use foldback_kv::{Key, Space, Todo};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The version of the records of a copy.
const FORMAT: u32 = 1;
/// The number of the head in its space.
const HEAD: u64 = 1;
/// The numbers of chunks.
const CHUNKS: Range<u64> = Key::INDEX_CHUNKS..Key::N_END;
/// The length of a chunk; the last one of a layer may be shorter.
const CHUNK_BYTES: u64 = 512 << 10;
/// A copy is brought up to date when it lacks this part of the blocks that it has.
const GROWTH: u32 = 64;

/// The head of the copies: which one counts, and who is writing one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CopyHead {
    copy: Option<IndexCopy>,
    writer: Option<Claim>,
}

/// A copy that is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct IndexCopy {
    blocks: u32,
    /// How often the todo's vectors had been replaced.
    generation: u32,
    layers: Vec<Layer>,
}

/// The chunks of one update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Layer {
    /// The number of its first chunk.
    first: u64,
    /// What its bytes are, in their order.
    pieces: Vec<Piece>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    /// The file, below the index's folder; `None` for bytes that are dead.
    file: Option<String>,
    /// Where in the file they begin.
    from: u64,
    bytes: u64,
    /// Their checksum.
    sum: u64,
}

/// Where a writer is at work that has not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    /// Which writer: a random number.
    token: u64,
    chunks: Range<u64>,
}

/// The record of a head.
#[derive(Default)]
struct Found {
    /// Its bytes, if there are any that can be read.
    record: Option<Vec<u8>>,
    /// What it says; nothing if it is of another format.
    head: CopyHead,
    /// Whether a later program wrote it, whose copy is not replaced.
    is_later: bool,
}

impl CopyHead {
    fn read(records: &Records, todo: &Todo) -> Result<Found, Error> {
        let record = match records.get(todo, Space::Index, HEAD) {
            Ok(record) => record,
            Err(Error::Corrupt { .. }) => None,
            Err(error) => return Err(error),
        };
        let Some(bytes) = &record else { return Ok(Found::default()) };
        let number = |at: usize| {
            let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
            u32::from_le_bytes(four.unwrap_or_default())
        };
        let (found, own) = ((number(0), number(4)), (FORMAT, INDEX_FORMAT));
        let head = bytes.get(8..).filter(|_| found == own);
        let head = head.and_then(|rest| rmp_serde::from_slice(rest).ok());
        Ok(Found { head: head.unwrap_or_default(), is_later: found > own, record })
    }

    fn write(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        let mut bytes = [FORMAT.to_le_bytes(), INDEX_FORMAT.to_le_bytes()].concat();
        bytes.extend(rmp_serde::to_vec_named(self)?);
        Ok(bytes)
    }
}

impl IndexCopy {
    /// Returns how many bytes belong to the index, and how many are dead.
    fn live_and_dead(&self) -> (u64, u64) {
        let pieces = || self.layers.iter().flat_map(|layer| &layer.pieces);
        let sum = |is_live: bool| {
            pieces().filter(|p| p.file.is_some() == is_live).map(|piece| piece.bytes).sum()
        };
        (sum(true), sum(false))
    }

    /// Returns the numbers from its first chunk to its last.
    fn span(&self) -> Range<u64> {
        let chunks = || self.layers.iter().map(Layer::chunks);
        let first = chunks().map(|chunks| chunks.start).min().unwrap_or(CHUNKS.start);
        first..chunks().map(|chunks| chunks.end).max().unwrap_or(first)
    }

    /// Returns whether it lacks enough blocks to be brought up to date.
    fn is_behind(&self, blocks: u32) -> bool {
        blocks > self.blocks.saturating_add(self.blocks / GROWTH)
    }
}

impl Layer {
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).fold(0, u64::saturating_add)
    }

    fn chunks(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.bytes().div_ceil(CHUNK_BYTES))
    }
}
