//! The reader of a copy.

use super::{CHUNK_BYTES, CHUNKS, CopyHead, HEAD, IndexCopy, Layer, Piece};
use crate::Error;
use crate::disk::{Folder, Lock, Received, index_error};
use crate::records::{Records, key};
use foldback_kv::{Batch, Delete, Error as KvError, Space, Todo};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;
use xxhash_rust::xxh3::Xxh3;

/// This many chunks are read at once: 4 MiB.
const PAGE: u64 = 8;

/// Takes the copy of one todo's index from the store.
pub(crate) struct Receiver<'a> {
    records: &'a Records,
    todo: &'a Todo,
    record: Vec<u8>,
    copy: IndexCopy,
}

impl<'a> Receiver<'a> {
    /// Returns the copy, if there is one of these vectors, or with `None` of any, that has more blocks than `known` and
    /// no more than `last`.
    pub(crate) fn find(
        records: &'a Records,
        todo: &'a Todo,
        generation: Option<u32>,
        (known, last): (u32, u32),
    ) -> Result<Option<Self>, Error> {
        let found = CopyHead::read(records, todo)?;
        let fits = |copy: &IndexCopy| {
            let is_of_vectors = generation.is_none_or(|generation| copy.generation == generation);
            is_of_vectors && copy.blocks > known && copy.blocks <= last
        };
        let copy = found.head.copy.filter(fits);
        Ok(copy.zip(found.record).map(|(copy, record)| Self { records, todo, record, copy }))
    }

    /// Writes the files of the copy into the folder, in the place of those that are there. Returns `false` if the copy
    /// is not whole: another writer may be replacing it. One that is damaged is removed, so that it is written anew.
    pub(crate) fn receive(&self, lock: &Lock, folder: &Folder) -> Result<bool, Error> {
        let failed = |error: std::io::Error| index_error(folder, "received", &error);
        let received = Received::begin(lock, folder).map_err(failed)?;
        let mut files: BTreeMap<&str, File> = BTreeMap::new();
        let pieces = self.copy.layers.iter().flat_map(|layer| &layer.pieces);
        for name in pieces.filter_map(|piece| piece.file.as_deref()) {
            if !files.contains_key(name) {
                files.insert(name, received.create(name).map_err(failed)?);
            }
        }
        let write = |name: &str, at: u64, bytes: &[u8]| {
            let Some(file) = files.get_mut(name) else { return Ok(()) };
            file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(bytes)).map_err(failed)
        };
        if !self.read(write)? {
            self.remove()?;
            return Ok(false);
        }
        received.finish(&files.into_values().collect::<Vec<_>>()).map_err(failed)?;
        Ok(true)
    }

    /// Returns whether the copy is whole.
    pub(crate) fn is_whole(&self) -> Result<bool, Error> {
        self.read(|_, _, _| Ok(()))
    }

    /// Reads all of the copy, and gives `write` the bytes of each file with their place in it. Returns `false` if
    /// anything is missing or damaged.
    fn read(
        &self,
        mut write: impl FnMut(&str, u64, &[u8]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut layers: Vec<_> = self.copy.layers.iter().map(Reading::of).collect();
        let span = self.copy.span();
        let (send, pages) = sync_channel(1);
        thread::scope(|scope| {
            // While one page is written, the next is read.
            scope.spawn(move || {
                for first in span.clone().step_by(PAGE as usize) {
                    let page = self.page(first..span.end.min(first + PAGE));
                    let is_last = page.is_err();
                    // Nobody receives it after a chunk that does not fit.
                    if send.send(page).is_err() || is_last {
                        break;
                    }
                }
            });
            for page in pages {
                let page = match page {
                    Err(Error::Corrupt { .. }) => return Ok(false),
                    page => page?,
                };
                for (n, chunk) in page {
                    // What another writer has begun may be in between.
                    let layer = layers.iter_mut().find(|layer| layer.chunks.contains(&n));
                    let Some(layer) = layer else { continue };
                    if !layer.take(n, &chunk, &mut write)? {
                        return Ok(false);
                    }
                }
            }
            Ok(layers.iter().all(|layer| layer.left == 0))
        })
    }

    fn page(&self, range: Range<u64>) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.records.scan(self.todo, Space::Index, range, usize::MAX)
    }

    /// Removes the copy if it is still the one that was read.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        remove(self.records, self.todo, Some(self.record.clone()))
    }
}

/// Removes the copy of a todo's index, if its head is this one.
fn remove(records: &Records, todo: &Todo, head: Option<Vec<u8>>) -> Result<(), Error> {
    let delete = Delete { space: Space::Index, todo: todo.no(), range: HEAD..CHUNKS.end };
    let held = head.map(|head| (key(Space::Index, todo, HEAD), head));
    match records.write_if(todo, Batch { delete: vec![delete], ..Batch::default() }, held) {
        Err(Error::Kv(KvError::Changed { .. })) => Ok(()),
        removed => removed,
    }
}

/// Returns whether the copy of a todo's index is damaged. With `repair` it is removed then, and so is one that nobody
/// takes, because the store is not shared.
pub(crate) fn is_damaged(records: &Records, todo: &Todo, repair: bool) -> Result<bool, Error> {
    let found = match records.get(todo, Space::Index, HEAD) {
        Err(Error::Corrupt { .. }) => {
            if repair {
                remove(records, todo, None)?;
            }
            return Ok(true);
        }
        found => found?,
    };
    let Some(record) = found else { return Ok(false) };
    let copy = Receiver::find(records, todo, None, (0, u32::MAX))?;
    // It may have been replaced meanwhile.
    let is_damaged = match &copy {
        Some(copy) => {
            !copy.is_whole()? && records.get(todo, Space::Index, HEAD)? == Some(record.clone())
        }
        None => false,
    };
    if repair && (is_damaged || !records.shares_indexes()) {
        remove(records, todo, Some(record))?;
    }
    Ok(is_damaged)
}

/// A layer, as far as it was read.
struct Reading<'a> {
    chunks: Range<u64>,
    /// The bytes that it has.
    left: u64,
    pieces: std::slice::Iter<'a, Piece>,
    /// The piece that is being read, how many of its bytes are still to come, and the checksum of the others.
    piece: Option<(&'a Piece, u64, Xxh3)>,
}

impl<'a> Reading<'a> {
    fn of(layer: &'a Layer) -> Self {
        Self {
            chunks: layer.chunks(),
            left: layer.bytes(),
            pieces: layer.pieces.iter(),
            piece: None,
        }
    }

    /// Gives the bytes of the next chunk to `write`. Returns `false` if it is not the expected one.
    fn take(
        &mut self,
        n: u64,
        chunk: &[u8],
        write: &mut impl FnMut(&str, u64, &[u8]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if n != self.chunks.start || chunk.len() as u64 != self.left.min(CHUNK_BYTES) {
            return Ok(false);
        }
        self.chunks.start += 1;
        self.left -= chunk.len() as u64;
        let mut rest = chunk;
        while !rest.is_empty() {
            let begun = self.piece.take();
            let begun = begun.or_else(|| {
                let piece = self.pieces.next()?;
                Some((piece, piece.bytes, Xxh3::new()))
            });
            let Some((piece, left, mut sum)) = begun else { return Ok(false) };
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let (bytes, after) = rest.split_at(now);
            rest = after;
            if let Some(name) = &piece.file {
                sum.update(bytes);
                write(name, piece.from + (piece.bytes - left), bytes)?;
            }
            let left = left - now as u64;
            if left > 0 {
                self.piece = Some((piece, left, sum));
            } else if piece.file.is_some() && sum.digest() != piece.sum {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
