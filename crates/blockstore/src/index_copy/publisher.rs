//! The writer of a copy.

use super::{CHUNK_BYTES, CHUNKS, Claim, CopyHead, Found, HEAD, IndexCopy, Layer, Piece};
use crate::Error;
use crate::disk::{Changes, DiskIndex, Folder, IndexFile, Lock, index_error};
use crate::records::{Records, key};
use foldback_kv::{Batch, Delete, Error as KvError, Expect, Key, Space, Todo, retry};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3;

/// A copy of this many bytes is finished by a process that is about to end; a larger one is left to the next.
const FINISHED_BYTES: u64 = 32 << 20;

/// Writes the index of one todo into the store. Its creator holds the index's lock, so that the files stay as they are.
pub(crate) struct Publisher<'a> {
    records: &'a Records,
    todo: &'a Todo,
    folder: &'a Folder,
}

/// The outcome of publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// The copy in the store is that of the index now.
    Written,
    /// It was recent enough.
    Recent,
    /// Another writer is publishing, or the process is about to end.
    Left,
}

impl<'a> Publisher<'a> {
    pub(crate) fn new(
        _lock: &'a Lock,
        records: &'a Records,
        todo: &'a Todo,
        folder: &'a Folder,
    ) -> Self {
        Self { records, todo, folder }
    }

    /// Writes what the copy in the store lacks of `disk`, the index in the folder, if that is much.
    pub(crate) fn publish(
        &self,
        disk: &DiskIndex,
        generation: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Published, Error> {
        let found = CopyHead::read(self.records, self.todo)?;
        let blocks = disk.blocks();
        if found.is_later {
            return Ok(Published::Recent);
        }
        if found.head.copy.as_ref().is_some_and(|copy| copy.generation > generation) {
            // Another machine replaced the vectors meanwhile.
            return Ok(Published::Recent);
        }
        let held = found.head.copy.clone().filter(|copy| copy.generation == generation);
        if held.as_ref().is_some_and(|copy| !copy.is_behind(blocks)) {
            return Ok(Published::Recent);
        }
        let files = self.folder.index_files(disk)?;
        let mut copy = IndexCopy { blocks, generation, layers: Vec::new() };
        if let Some(held) = &held {
            match self.still_valid(held, &files)? {
                Some(layers) => copy.layers = layers,
                // Two machines that index on their own would otherwise replace each other's copy with every update.
                None if blocks < held.blocks.saturating_add(held.blocks / 4) => {
                    return Ok(Published::Recent);
                }
                None => {}
            }
            let (live, dead) = copy.live_and_dead();
            if dead > live / 2 {
                copy.layers.clear();
            }
        }
        let pieces = new_pieces(&copy.layers, &files);
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        let first = first_gap(&copy.layers, found.head.copy.as_ref(), bytes.div_ceil(CHUNK_BYTES));
        copy.layers.push(Layer { first, pieces });
        if bytes > FINISHED_BYTES && stop() {
            return Ok(Published::Left);
        }
        match self.write(found, copy, &|| bytes > FINISHED_BYTES && stop()) {
            Ok(true) => Ok(Published::Written),
            Ok(false) | Err(Error::Kv(KvError::Changed { .. })) => Ok(Published::Left),
            Err(error) => Err(error),
        }
    }

    /// Returns the layers of a copy that hold something of these files, with what no longer belongs to them marked as
    /// dead; `None` if the copy is not of an earlier state of the same files.
    fn still_valid(
        &self,
        copy: &IndexCopy,
        files: &[IndexFile],
    ) -> Result<Option<Vec<Layer>>, Error> {
        let mut layers = copy.layers.clone();
        for piece in layers.iter_mut().flat_map(|layer| &mut layer.pieces) {
            let file = files.iter().find(|file| Some(&file.name) == piece.file.as_ref());
            let is_live = match file.map(|file| (file.changes, file.bytes)) {
                Some((Changes::Grows, bytes)) => {
                    let is_there = piece.from.saturating_add(piece.bytes) <= bytes;
                    if !is_there || self.sum_of(piece)? != piece.sum {
                        return Ok(None);
                    }
                    true
                }
                Some((Changes::Never, bytes)) => bytes == piece.bytes,
                Some((Changes::IsReplaced, _)) | None => false,
            };
            if !is_live {
                piece.file = None;
            }
        }
        for layer in &mut layers {
            layer.pieces.dedup_by(|next, before| {
                let are_dead = next.file.is_none() && before.file.is_none();
                before.bytes += if are_dead { next.bytes } else { 0 };
                are_dead
            });
        }
        layers.retain(|layer| layer.pieces.iter().any(|piece| piece.file.is_some()));
        Ok(Some(layers))
    }

    /// Writes the last layer of a copy, and its head. Returns `false` when it was stopped, or another writer came first.
    fn write(
        &self,
        found: Found,
        mut copy: IndexCopy,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let Some(mut layer) = copy.layers.pop() else { return Ok(false) };
        let mut held = found.record;
        let chunks = layer.chunks();
        let mut next = chunks.start;
        let mut put: Vec<(Key, Vec<u8>)> = Vec::new();
        // What an interrupted writer left, and with a head that is unreadable or of another format whatever there is.
        let mut delete = match (&found.head.copy, &found.head.writer) {
            (None, _) => vec![self.delete(CHUNKS)],
            (Some(_), Some(claim)) => vec![self.delete(claim.chunks.clone())],
            (Some(_), None) => Vec::new(),
        };
        let before = found.head.copy;
        // Chunk by chunk, because the todo takes no other writes during a commit. The last one goes with the head.
        let whole = self.each_chunk(&mut layer.pieces, |chunk, is_last| {
            put.push((key(Space::Index, self.todo, next), chunk));
            next += 1;
            if is_last {
                return Ok(true);
            }
            let claim = Claim { token: RandomState::new().hash_one(next), chunks: chunks.clone() };
            let head = CopyHead { copy: before.clone(), writer: Some(claim) };
            held = Some(self.commit(held.take(), head, &mut put, &mut delete)?);
            foldback_core::failpoint!("blockstore.copy.chunk-written");
            Ok(!stop())
        })?;
        if !whole {
            return Ok(false);
        }
        copy.layers.push(layer);
        let kept = |of: &Layer| copy.layers.iter().any(|layer| layer.first == of.first);
        let gone = before.iter().flat_map(|copy| &copy.layers).filter(|layer| !kept(layer));
        delete.extend(gone.map(|layer| self.delete(layer.chunks())));
        let head = CopyHead { copy: Some(copy), writer: None };
        self.commit(held, head, &mut put, &mut delete)?;
        foldback_core::failpoint!("blockstore.copy.written");
        Ok(true)
    }

    /// Commits chunks with a head that takes the place of the one held. Returns the new head.
    fn commit(
        &self,
        held: Option<Vec<u8>>,
        head: CopyHead,
        put: &mut Vec<(Key, Vec<u8>)>,
        delete: &mut Vec<Delete>,
    ) -> Result<Vec<u8>, Error> {
        let at = key(Space::Index, self.todo, HEAD);
        let unwritable = |error: rmp_serde::encode::Error| Error::Refused {
            todo: self.todo.id().clone(),
            why: format!("the head of the index's copy: {error}"),
        };
        let head = head.write().map_err(unwritable)?;
        let (mut put, delete) = (std::mem::take(put), std::mem::take(delete));
        put.push((at, head.clone()));
        retry(|| {
            let todo_head = self.records.head(self.todo)?.to_number();
            // Blocks and copies are forgotten in one step.
            if self.records.last_block_n(self.todo)? == 0 {
                return Err(Error::Kv(KvError::Changed { key: at }));
            }
            // An engine compares only what is there.
            if held.is_none() {
                match self.records.get(self.todo, Space::Index, HEAD) {
                    Ok(None) | Err(Error::Corrupt { .. }) => {}
                    found => {
                        found?;
                        return Err(Error::Kv(KvError::Changed { key: at }));
                    }
                }
            }
            let expect = Expect { todo: self.todo.no(), head: todo_head, next: todo_head };
            let batch = Batch { expect: Some(expect), put: put.clone(), delete: delete.clone() };
            self.records.write_if(self.todo, batch, held.clone().map(|held| (at, held)))
        })?;
        Ok(head)
    }

    /// Returns the checksum of the bytes that the folder has in the place of a piece.
    fn sum_of(&self, piece: &Piece) -> Result<u64, Error> {
        let mut own = [piece.clone()];
        self.each_chunk(&mut own, |_, _| Ok(true))?;
        let [own] = own;
        Ok(own.sum)
    }

    fn delete(&self, range: Range<u64>) -> Delete {
        Delete { space: Space::Index, todo: self.todo.no(), range }
    }

    /// Reads pieces, gives their bytes to `take` in chunks with whether it is the last one, and notes their checksums.
    /// Returns `false` when `take` wants no more.
    fn each_chunk(
        &self,
        pieces: &mut [Piece],
        mut take: impl FnMut(Vec<u8>, bool) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut left: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        let mut chunk = Vec::new();
        for piece in pieces {
            let Some(name) = &piece.file else { continue };
            let failed = |error: std::io::Error| index_error(self.folder, "read", &error);
            let mut file = File::open(self.folder.root().join(name)).map_err(failed)?;
            file.seek(SeekFrom::Start(piece.from)).map_err(failed)?;
            let (mut sum, mut of_piece) = (Xxh3::new(), piece.bytes);
            while of_piece > 0 {
                let begin = chunk.len();
                let room = (CHUNK_BYTES - begin as u64).min(of_piece);
                let read = (&mut file).take(room).read_to_end(&mut chunk).map_err(failed)?;
                if read as u64 != room {
                    return Err(failed(ErrorKind::UnexpectedEof.into()));
                }
                sum.update(chunk.get(begin..).unwrap_or_default());
                of_piece -= room;
                left -= room;
                let is_full = chunk.len() as u64 == CHUNK_BYTES;
                if (is_full || left == 0) && !take(std::mem::take(&mut chunk), left == 0)? {
                    return Ok(false);
                }
            }
            piece.sum = sum.digest();
        }
        Ok(true)
    }
}

/// Returns the parts of the files that no layer holds, those that make an index valid last.
fn new_pieces(layers: &[Layer], files: &[IndexFile]) -> Vec<Piece> {
    let pieces = files.iter().filter_map(|file| {
        let own = layers.iter().flat_map(|layer| &layer.pieces);
        let own = own.filter(|piece| piece.file.as_ref() == Some(&file.name));
        let from = own.map(|piece| piece.from + piece.bytes).max().unwrap_or(0);
        let bytes = file.bytes.saturating_sub(from);
        (bytes > 0).then(|| Piece { file: Some(file.name.clone()), from, bytes, sum: 0 })
    });
    pieces.collect()
}

/// Returns the first of the lowest numbers that a layer of this many chunks may have. Neither a copy that still counts
/// nor one that will count has them.
fn first_gap(layers: &[Layer], counts: Option<&IndexCopy>, chunks: u64) -> u64 {
    let counts = counts.into_iter().flat_map(|copy| &copy.layers);
    let mut taken: Vec<_> = layers.iter().chain(counts).map(Layer::chunks).collect();
    taken.sort_by_key(|range| range.start);
    let mut first = CHUNKS.start;
    for range in taken {
        if first + chunks <= range.start {
            break;
        }
        first = first.max(range.end);
    }
    first
}
