//! Indexes that come from another machine, and go to others.

use super::removal::remove;
use super::{Cache, GROWTH, Slot, State, stamp};
use crate::Error;
use crate::disk::{DiskIndex, Fit, Folder, IndexWriter, Lock};
use crate::index_copy::{Published, Publisher, Receiver};
use foldback_kv::Todo;
use std::sync::atomic::Ordering;

impl Cache {
    /// Takes the copy of the todo's index from the store, if a search would otherwise read many more blocks, up to
    /// `last`. A copy that cannot be taken is no error: the blocks are read.
    pub(super) fn take_copy(&self, todo: &Todo, folder: &Folder, state: &mut State, last: u32) {
        let least = self.config.index_after_blocks.max(state.blocks / GROWTH as u32);
        let known = if state.blocks == 0 { 0 } else { state.blocks.saturating_add(least) };
        // An index that is there and is not used is for upkeep, or for the doctor.
        let is_unused = state.disk.is_none() && folder.holds_index();
        if !self.records.shares_indexes() || last <= known || is_unused {
            return;
        }
        let found = Receiver::find(&self.records, todo, Some(state.generation), (known, last));
        let Ok(Some(copy)) = found else { return };
        let Ok(Some(lock)) = Lock::take(folder) else { return };
        // Another process may have written it meanwhile.
        if state.tried != Some(stamp(folder)) {
            return;
        }
        if let Ok(Some(disk)) = self.receive(todo, folder, &lock, &copy) {
            state.tried = Some(stamp(folder));
            self.search_disk(state, disk);
        }
    }

    /// Puts a copy in the place of the index in the folder, and opens it. The caller holds the lock.
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
        let Ok(Some(disk)) = self.open(folder, todo, None) else {
            copy.remove()?;
            IndexWriter::new(lock, folder, &self.records, todo).clear()?;
            return Ok(None);
        };
        let fits = disk.fit(&self.records, todo)? == Fit::Fits;
        if !fits && self.records.last_block_n(todo)? == 0 {
            // It was forgotten meanwhile.
            remove(folder)?;
        }
        Ok(Some(disk).filter(|_| fits))
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
        let copy = Receiver::find(&self.records, todo, Some(generation), (0, last))?;
        let received = copy.and_then(|copy| self.receive(todo, folder, lock, &copy).ok()?);
        if received.as_ref().is_some_and(|disk| self.records.can_read_any(todo, disk.omissions())) {
            IndexWriter::new(lock, folder, &self.records, todo).clear()?;
            return Ok(None);
        }
        Ok(received)
    }

    /// Returns whether a copy of the index may have to be written into the store.
    pub(super) fn may_publish(&self, slot: &Slot, disk: &DiskIndex) -> bool {
        self.records.shares_indexes() && slot.published.load(Ordering::Relaxed) != disk.blocks()
    }

    /// Brings the copy in the store up to date with the index in the folder, which is `disk`. Returns whether it wrote
    /// anything. The caller holds the lock.
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
        let published = publisher.publish(disk, state.generation, &stop)?;
        if published != Published::Left {
            slot.published.store(disk.blocks(), Ordering::Relaxed);
        }
        Ok(published == Published::Written)
    }
}
