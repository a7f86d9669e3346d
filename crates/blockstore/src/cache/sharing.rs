//! Indexes that come from another machine, and go to others.

use super::removal::remove;
use super::{Cache, GROWTH, Slot, State, stamp};
use crate::Error;
use crate::disk::{DiskIndex, Fit, Folder, IndexWriter, Lock};
use crate::index_copy::{Published, Publisher, Receiver};
use foldback_kv::Todo;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// After this time a copy is looked for again: another machine may have removed it, or the database was away.
const LOOKED_AFTER: Duration = Duration::from_secs(600);

impl Cache {
    /// Takes the copy of the todo's index from the store, if a search would otherwise read many more blocks, up to
    /// `last`. A copy that cannot be taken is not an error: the blocks are read instead.
    pub(super) fn take_copy(&self, todo: &Todo, folder: &Folder, state: &mut State, last: u32) {
        let least = self.config.index_after_blocks.max(state.blocks / GROWTH as u32);
        let known = if state.blocks == 0 { 0 } else { state.blocks.saturating_add(least) };
        // An index that is there and is not used is for upkeep, or for the doctor.
        let is_unused = state.disk.is_none() && folder.holds_index();
        if !self.records.shares_indexes() || last <= known || is_unused {
            return;
        }
        // A graph is not part of a copy, and would have to be built again.
        let has_graph = state.disk.as_ref().is_some_and(|disk| disk.graph.is_some());
        if has_graph && last / 2 < state.blocks {
            return;
        }
        let found = Receiver::find(&self.records, todo, Some(state.generation), (known, last));
        let Ok(Some(copy)) = found else { return };
        let Ok(Some(lock)) = Lock::take(folder) else { return };
        // Another process may have written it meanwhile.
        if state.tried != Some(stamp(folder)) {
            return;
        }
        match self.receive(todo, folder, &lock, &copy) {
            Ok(Some(disk)) => {
                state.tried = Some(stamp(folder));
                self.search_disk(state, disk);
            }
            // A folder that was made for a todo that is forgotten by now goes, too.
            _ if self.records.last_block_n(todo).is_ok_and(|last| last == 0) => {
                drop(remove(folder));
            }
            _ => {}
        }
    }

    /// Puts a copy in the place of the index in the folder, and opens it. One that cannot be opened does not stay there,
    /// and one that is not of this truth not in the store either. The caller holds the lock.
    fn receive(
        &self,
        todo: &Todo,
        folder: &Folder,
        lock: &Lock,
        copy: &Receiver<'_>,
    ) -> Result<Option<DiskIndex>, Error> {
        if !copy.receive(lock, folder)? {
            return Ok(None);
        }
        let opened = self.open(folder, todo, None).ok().flatten();
        let fit = opened.as_ref().map(|disk| disk.fit(&self.records, todo));
        if let Some(Ok(Fit::Fits)) = fit {
            return Ok(opened);
        }
        IndexWriter::new(lock, folder, &self.records, todo).clear()?;
        if fit.transpose()?.is_some() {
            copy.remove()?;
        }
        Ok(None)
    }

    /// Returns the index of the copy in the store, written into the folder, which has none. The caller holds the lock.
    pub(super) fn received(
        &self,
        todo: &Todo,
        folder: &Folder,
        lock: &Lock,
        last: u32,
    ) -> Result<Option<DiskIndex>, Error> {
        if !self.records.shares_indexes() {
            return Ok(None);
        }
        let generation = self.records.vector_state(todo)?.generation;
        let Some(copy) = Receiver::find(&self.records, todo, Some(generation), (0, last))? else {
            return Ok(None);
        };
        let received = self.receive(todo, folder, lock, &copy).ok().flatten();
        let is_whole = |disk: &DiskIndex| !self.records.can_read_any(todo, disk.omissions());
        if received.as_ref().is_some_and(is_whole) {
            return Ok(received);
        }
        IndexWriter::new(lock, folder, &self.records, todo).clear()?;
        if received.is_some() {
            // The index that is built now takes its place.
            copy.remove()?;
        }
        Ok(None)
    }

    /// Returns whether a copy of the index may have to be written into the store.
    pub(super) fn may_publish(&self, slot: &Slot, disk: &DiskIndex) -> bool {
        let published = *slot.published.lock();
        let is_known = published
            .is_some_and(|(blocks, at)| blocks == disk.blocks() && at.elapsed() < LOOKED_AFTER);
        self.records.shares_indexes() && !is_known
    }

    /// Brings the copy in the store up to date with the index in the folder, which is `disk`. Returns whether it wrote
    /// anything. If that fails, it is tried again later: nothing depends on it. The caller holds the lock.
    pub(super) fn publish(
        &self,
        todo: &Todo,
        slot: &Slot,
        folder: &Folder,
        (lock, disk): (&Lock, &DiskIndex),
    ) -> Result<bool, Error> {
        if !self.may_publish(slot, disk) {
            return Ok(false);
        }
        let state = self.records.vector_state(todo)?;
        if state.indexes_stale || state.generation != disk.generation() {
            // Another machine replaced the vectors meanwhile.
            return Ok(false);
        }
        let publisher = Publisher::new(lock, &self.records, todo, folder);
        let stop = || self.stopped.load(Ordering::Relaxed);
        let published = publisher.publish(disk, state.generation, &stop);
        if !matches!(published, Ok(Published::Left)) {
            *slot.published.lock() = Some((disk.blocks(), Instant::now()));
        }
        Ok(matches!(published, Ok(Published::Written)))
    }
}
