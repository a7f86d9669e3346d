//! The current state to be searched: the volumes, and the blocks that are in none of them yet.

use super::AllTodos;
use super::catalogue::{self, Catalogue, Covered, Run, volume_folder};
use super::shelf::{Numbering, Shelf, run_of};
use crate::disk::{DiskIndex, OF_MANY};
use crate::memory_index::MemoryIndex;
use crate::records::pages;
use crate::{Error, Head};
use foldback_kv::{DAMAGED_HEAD, Todo};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// A search reads at most this many blocks that are in no volume from the truth.
pub(super) const TAIL_BLOCKS: u32 = 512;

/// A search examines at most this many todos that were written to since they were indexed.
const TAIL_TODOS: usize = 512;

/// The data that a search has of the store. It is replaced when anything has changed.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    /// The store's change counter, and the catalogue's file, when this snapshot was made.
    changed: Option<u64>,
    stamp: Stamp,
    catalogue: Arc<Catalogue>,
    /// The volumes that can be used.
    pub(super) volumes: Vec<Arc<Shelf>>,
    /// The numbers of the others that the catalogue names.
    lost: FxHashSet<u64>,
    /// The blocks that are in none of them, as far as they are read.
    pub(super) tail: Option<Arc<Shelf>>,
    /// The existing todos.
    pub(super) living: Arc<FxHashSet<u32>>,
    /// About how many messages are in blocks that are not searched.
    pub(super) waiting: u64,
}

/// The time of writing and the length of a file; `None` if there is none.
type Stamp = Option<(SystemTime, u64)>;

/// Blocks that are in no volume.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) parts: Vec<PendingTodo>,
    /// The todos without anything new, with their heads.
    pub(super) settled: Vec<(u32, u64)>,
    /// How many messages the todos hold that were not examined and are in no volume.
    pub(super) waiting: u64,
}

/// The blocks of one todo that are in no volume.
pub(super) struct PendingTodo {
    pub(super) todo: Todo,
    pub(super) head: u64,
    pub(super) missing: Vec<RangeInclusive<u32>>,
    /// How many messages follow those that are indexed.
    messages: u64,
}

impl PendingTodo {
    pub(super) fn blocks(&self) -> u32 {
        self.missing.iter().map(|range| range.end() - range.start() + 1).sum()
    }
}

impl AllTodos {
    /// Returns the current state to be searched: the last one, if nothing has changed since.
    pub(super) fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        let before = self.known.lock().clone();
        // The counter is read first, so everything read after it is at least as new.
        let changed = self.records.changed()?;
        let stamp = self.folder.as_ref().and_then(|folder| stamp(&catalogue::path(folder)));
        let broken = before.volumes.iter().any(|shelf| is_broken(shelf));
        let mended = before.volumes.iter().filter(|shelf| self.is_mended(shelf));
        let mended: FxHashSet<u64> = mended.map(|shelf| shelf.number).collect();
        let tail = before.tail.as_ref().filter(|tail| !self.is_mended(tail));
        let is_same = !broken && mended.is_empty() && tail.is_some() == before.tail.is_some();
        if before.changed == Some(changed) && before.stamp == stamp && is_same {
            return Ok(before);
        }
        // Nothing is locked here: several threads may do the same at once, and the last one is kept.
        let is_known =
            before.stamp == stamp && before.changed.is_some() && !broken && mended.is_empty();
        let mut now = match is_known {
            true => Snapshot { changed: Some(changed), ..before.as_ref().clone() },
            false => self.opened(&before, stamp, &mended),
        };
        now.changed = Some(changed);
        let heads = self.registry.heads().map_err(Error::Kv)?;
        now.living = Arc::new(heads.iter().map(|(todo, _)| *todo).collect());
        let held: FxHashSet<u64> = now.volumes.iter().map(|shelf| shelf.number).collect();
        let lost = now.catalogue.volumes.iter().map(|volume| volume.number);
        now.lost = lost.filter(|number| !held.contains(number)).collect();
        let covered = now.catalogue.covered(&now.lost);
        let known = known_heads(&now.catalogue, &now.lost);
        let pending = self.pending(&known, &covered, &heads, TAIL_TODOS, &|| false)?;
        (now.tail, now.waiting) = self.tail(pending, tail)?;
        let now = Arc::new(now);
        *self.known.lock() = now.clone();
        Ok(now)
    }

    /// Returns the volumes that the catalogue names, each checked to its last byte. Unusable ones are left out. Volumes
    /// that were open before are reused, and the parts that repaired ones lack are looked up again.
    fn opened(&self, before: &Snapshot, stamp: Stamp, mended: &FxHashSet<u64>) -> Snapshot {
        let Some(folder) = &self.folder else { return Snapshot::default() };
        let mut tries = 3;
        loop {
            tries -= 1;
            let Ok(catalogue) = Catalogue::read(folder) else {
                return Snapshot { stamp, ..Snapshot::default() };
            };
            let open = |volume: &catalogue::Volume| {
                // If the index was deleted, numbers start over.
                let is_same = |shelf: &&Arc<Shelf>| {
                    shelf.number == volume.number && shelf.runs().eq(&volume.runs)
                };
                let known = before.volumes.iter().find(is_same);
                let shelf = match known.filter(|known| !is_broken(known)) {
                    Some(known) if !mended.contains(&known.number) => return Some(known.clone()),
                    Some(known) => known.opened_again()?,
                    None => {
                        let folder = volume_folder(folder, volume.number);
                        let disk = DiskIndex::open(&folder, OF_MANY, None).ok()??;
                        let fits = disk.blocks() == volume.blocks() && known.is_none();
                        let (runs, origins) = (volume.runs.clone(), volume.origins.clone());
                        fits.then(|| Shelf::volume(volume.number, disk.into(), runs, origins))?
                    }
                };
                // All volumes together may take as much as one todo.
                let room = self.config.cache_bytes / 2 / catalogue.volumes.len().max(1);
                let filled = shelf.filled_in(&self.records, |no| self.todo(no), room);
                filled.ok().map(Arc::new)
            };
            let volumes: Vec<Option<Arc<Shelf>>> = catalogue.volumes.par_iter().map(open).collect();
            // A writer may have replaced some of them since the catalogue was read.
            let is_whole = volumes.iter().all(Option::is_some);
            if is_whole || tries == 0 || Catalogue::read(folder).as_ref() == Ok(&catalogue) {
                let volumes = volumes.into_iter().flatten().collect();
                let catalogue = Arc::new(catalogue);
                return Snapshot { stamp, catalogue, volumes, ..Snapshot::default() };
            }
        }
    }

    /// Returns the blocks that are in no volume, of at most this many todos that were written to since they were
    /// examined, the newest first. `stop` ends the examination.
    pub(super) fn pending(
        &self,
        known: &FxHashMap<u32, u64>,
        covered: &Covered,
        heads: &[(u32, u64)],
        most: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Pending, Error> {
        let mut pending = Pending::default();
        let changed = heads.iter().rev().filter(|(todo, head)| known.get(todo) != Some(head));
        for (at, &(no, head)) in changed.enumerate() {
            if stop() {
                break;
            }
            let held = match head {
                DAMAGED_HEAD => 0,
                head => Head::from_number(head).messages,
            };
            let messages = held.saturating_sub(covered.messages(no));
            if at >= most {
                pending.waiting += messages;
                continue;
            }
            let Some(todo) = self.todo(no)? else { continue };
            let last = self.records.last_block_n(&todo)?;
            let missing = covered.missing(no, last);
            match missing.is_empty() {
                true => pending.settled.push((no, head)),
                false => pending.parts.push(PendingTodo { todo, head, missing, messages }),
            }
        }
        Ok(pending)
    }

    /// Returns the todo with this number, if there is one. If its record is damaged or missing, its id is read from its
    /// blocks.
    pub(super) fn todo(&self, no: u32) -> Result<Option<Todo>, Error> {
        let of_number = |todo: &Todo| todo.no() == no;
        match self.registry.list(no.saturating_sub(1), 1) {
            Ok(todos) => {
                if let Some(todo) = todos.into_iter().find(of_number) {
                    return Ok(Some(todo));
                }
            }
            Err(foldback_kv::Error::Corrupt { .. }) => {}
            Err(error) => return Err(Error::Kv(error)),
        }
        let Some(id) = self.records.id_by_blocks(no) else { return Ok(None) };
        Ok(self.registry.find(&id).ok().flatten().filter(of_number))
    }

    /// Returns whether a shelf lacks a part that can be read by now, as far as its turn has come.
    fn is_mended(&self, shelf: &Shelf) -> bool {
        shelf.next_tried.any(shelf.open_omissions(), |omission| {
            let Some((run, n)) = shelf.place(omission.block) else { return false };
            let todo = self.todo(run.todo).ok().flatten();
            todo.is_some_and(|todo| self.records.can_read(&todo, n, omission))
        })
    }

    /// Returns the blocks that are in no volume, read from the truth up to a bound, and about how many messages exceed
    /// it.
    fn tail(
        &self,
        pending: Pending,
        before: Option<&Arc<Shelf>>,
    ) -> Result<(Option<Arc<Shelf>>, u64), Error> {
        let mut waiting = pending.waiting;
        let (mut room, mut read) = (TAIL_BLOCKS, Vec::new());
        for part in pending.parts {
            let blocks = part.blocks();
            let mut left = 0;
            for range in &part.missing {
                let count = range.end() - range.start() + 1;
                let taken = count.min(room);
                room -= taken;
                left += count - taken;
                if taken > 0 {
                    // The newest blocks of a todo are the ones that are asked for.
                    let range = range.end() + 1 - taken..=*range.end();
                    read.push((part.todo.clone(), range));
                }
            }
            waiting += part.messages * u64::from(left) / u64::from(blocks.max(1));
        }
        if read.is_empty() {
            return Ok((None, waiting));
        }
        let runs = || read.iter().map(|(todo, range)| run_of(todo.no(), range));
        let is_same = |shelf: &&Arc<Shelf>| {
            let blocks = |run: &Run| (run.todo, run.first, run.last);
            shelf.runs().map(blocks).eq(runs().map(|run| blocks(&run)))
        };
        if let Some(before) = before.filter(is_same) {
            return Ok((Some(before.clone()), waiting));
        }
        let mut memory = MemoryIndex::starting_at(1, self.config.cache_bytes / 2);
        let mut numbering = Numbering::default();
        let mut origins = Vec::with_capacity(read.len());
        for (todo, range) in &read {
            for page in pages(range.clone()) {
                let docs = self.records.block_docs(todo, page)?;
                numbering.fill(&self.records, todo, docs, &mut memory)?;
            }
            origins.push(self.origins.origin(todo));
        }
        let runs = (0..).zip(runs()).map(|(origin, run)| Run { origin, ..run }).collect();
        Ok((Some(Arc::new(Shelf::tail(memory, runs, origins))), waiting))
    }
}

impl Snapshot {
    /// Returns whether a volume broke while it was searched.
    pub(super) fn is_broken(&self, volume: &catalogue::Volume) -> bool {
        self.volumes.iter().any(|shelf| shelf.number == volume.number && is_broken(shelf))
    }

    /// Returns whether a volume of the catalogue could not be opened.
    pub(super) fn has_lost(&self, volume: &catalogue::Volume) -> bool {
        // Numbers start over once all volumes were deleted.
        self.lost.contains(&volume.number) && self.catalogue.volumes.contains(volume)
    }
}

/// Returns the heads of todos all of whose blocks are indexed: not of those that a lost volume held.
pub(super) fn known_heads(catalogue: &Catalogue, lost: &FxHashSet<u64>) -> FxHashMap<u32, u64> {
    let mut known = catalogue.heads.clone();
    let lost = catalogue.volumes.iter().filter(|volume| lost.contains(&volume.number));
    for run in lost.flat_map(|volume| &volume.runs) {
        known.remove(&run.todo);
    }
    known
}

fn is_broken(shelf: &Shelf) -> bool {
    shelf.disk().is_some_and(DiskIndex::is_broken)
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}
