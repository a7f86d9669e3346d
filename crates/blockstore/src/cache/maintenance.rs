//! Indexes on disk, built alongside searches.

use super::removal::remove;
use super::{Cache, GROWTH, Passages, Slot};
use crate::Error;
use crate::disk::{CodeGroup, DiskIndex, Fit, Folder, Graph, IndexWriter, Lock, index_error};
use foldback_kv::Todo;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The result of [`maintain`](crate::BlockStore::maintain) and [`build_graph`](crate::BlockStore::build_graph).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Maintained {
    /// How many blocks were added to the index.
    pub indexed: u32,
    /// Why an existing index was dropped and rebuilt, if it was.
    pub dropped: Option<String>,
    /// Whether the index has enough vectors without a graph for [`build_graph`](crate::BlockStore::build_graph) to
    /// build one.
    pub graph_due: bool,
    /// Whether the graph was built.
    pub graph_built: bool,
    /// Whether the copy of the index in a store that several machines use was brought up to date.
    pub published: bool,
    /// Whether another process or thread was already doing this.
    pub busy: bool,
    /// Whether the index holds something that the truth does not, so that it was left for
    /// [`doctor`](crate::BlockStore::doctor) to report.
    pub ahead: bool,
}

impl Cache {
    pub(crate) fn maintain(&self, todo: &Todo) -> Result<Maintained, Error> {
        let mut done = Maintained::default();
        let Some(folder) = self.folder(todo) else { return Ok(done) };
        let vectors = self.records.vector_state(todo)?;
        if vectors.indexes_stale {
            // Its vectors are being replaced; then it is rebuilt.
            return Ok(done);
        }
        let last = self.records.last_block_n(todo)?;
        if last == 0 {
            // There is nothing to index, or it was forgotten: then it has no place in the cache.
            return Ok(done);
        }
        let slot = self.slot(todo);
        let known = slot.state.lock().disk.clone();
        let known = known.filter(|disk| !disk.is_broken() && folder.holds_index());
        let known = known.filter(|disk| disk.generation() == vectors.generation);
        let is_wanting = |disk: &DiskIndex| {
            self.may_publish(&slot, disk) || self.records.can_read_any(todo, disk.omissions())
        };
        if !known.as_deref().is_some_and(is_wanting)
            && !self.is_due(todo, &slot, known.as_deref(), last)?
        {
            done.graph_due = known.is_some_and(|disk| self.due_graph(&disk).is_some());
            return self.unless_forgotten(todo, &folder, Ok(done));
        }
        let done = match Lock::take(&folder) {
            Ok(Some(lock)) => self.index(todo, &slot, &folder, &lock, known.as_deref()),
            Ok(None) => return Ok(Maintained { busy: true, ..done }),
            Err(error) => Err(error),
        };
        self.unless_forgotten(todo, &folder, done)
    }

    /// Lets the index catch up. The caller holds its lock.
    fn index(
        &self,
        todo: &Todo,
        slot: &Arc<Slot>,
        folder: &Folder,
        lock: &Lock,
        known: Option<&DiskIndex>,
    ) -> Result<Maintained, Error> {
        let mut done = Maintained::default();
        // Another process may have written and indexed since; only the current state counts.
        let last = self.records.last_block_n(todo)?;
        let writer = IndexWriter::new(lock, folder, &self.records, todo);
        let mut disk = match self.open(folder, todo, known) {
            Ok(Some(disk)) if self.records.can_read_any(todo, disk.omissions()) => {
                done.dropped = Some("it lacks data that can be read by now".to_owned());
                None
            }
            Ok(Some(disk)) => match disk.fit(&self.records, todo)? {
                Fit::Fits => Some(disk),
                Fit::Outdated => {
                    done.dropped = Some("its vectors were replaced on another machine".to_owned());
                    None
                }
                Fit::Ahead { .. } | Fit::Foreign { .. } => {
                    done.ahead = true;
                    return Ok(done);
                }
            },
            Ok(None) => None,
            Err(damage) => {
                done.dropped = Some(damage);
                None
            }
        };
        if done.dropped.is_some() {
            *slot.published.lock() = None;
        }
        if disk.is_none() {
            // Others have mapped an older one by its name, so it is never overwritten.
            writer.clear()?;
            disk = self.received(todo, folder, lock, last)?;
        }
        if disk.is_none() || self.is_due(todo, slot, disk.as_ref(), last)? {
            let indexed = disk.as_ref().map_or(0, DiskIndex::blocks);
            writer.append(disk.as_ref(), last, &|| self.stopped.load(Ordering::Relaxed))?;
            disk = self.reopen(folder, todo, disk.as_ref())?;
            let now = disk.as_ref().map_or(0, DiskIndex::blocks);
            done.indexed = now.saturating_sub(indexed);
        }
        if let Some(disk) = disk {
            done.graph_due = self.due_graph(&disk).is_some();
            done.published = self.publish(todo, slot, folder, (lock, &disk))?;
            self.take(todo, slot, folder, disk);
        }
        Ok(done)
    }

    pub(crate) fn build_graph(&self, todo: &Todo) -> Result<Maintained, Error> {
        let mut done = Maintained::default();
        let Some(folder) = self.folder(todo) else { return Ok(done) };
        if self.records.last_block_n(todo)? == 0 {
            return Ok(done);
        }
        let slot = self.slot(todo);
        let known = slot.state.lock().disk.clone().filter(|disk| !disk.is_broken());
        let disk = match known {
            Some(disk) => disk,
            None => match self.open(&folder, todo, None) {
                Ok(Some(disk)) if disk.fit(&self.records, todo)? == Fit::Fits => Arc::new(disk),
                _ => return Ok(done),
            },
        };
        done.graph_due = self.due_graph(&disk).is_some();
        if !done.graph_due {
            return Ok(done);
        }
        let done = match Lock::take_graph(&folder) {
            Ok(Some(_lock)) => self.build(todo, &slot, &folder, &disk),
            Ok(None) => return Ok(Maintained { busy: true, ..done }),
            Err(error) => Err(error),
        };
        self.unless_forgotten(todo, &folder, done)
    }

    /// Builds the graph if it is still due. The caller holds its lock.
    fn build(
        &self,
        todo: &Todo,
        slot: &Arc<Slot>,
        folder: &Folder,
        disk: &DiskIndex,
    ) -> Result<Maintained, Error> {
        let mut done = Maintained { graph_due: true, ..Maintained::default() };
        // Another may have built it meanwhile; whether it is intact shows when it is loaded.
        let graph = Graph::open(folder, &disk.codes, disk.graph.as_ref());
        let graph = graph.filter(|graph| graph.load().is_some());
        let after = self.config.hnsw_after_vectors;
        if let Some(group) = Graph::due(&disk.codes, graph.as_deref(), after) {
            let stop = || self.stopped.load(Ordering::Relaxed);
            done.graph_built = Graph::build(folder, &disk.codes, group, &stop)
                .map_err(|detail| index_error(folder, "given a graph", &detail))?;
        }
        if done.graph_built
            && let Some(disk) = self.reopen(folder, todo, Some(disk))?
        {
            if let Some(graph) = &disk.graph {
                graph.load();
            }
            done.graph_due = self.due_graph(&disk).is_some();
            self.take(todo, slot, folder, disk);
        }
        Ok(done)
    }

    /// Returns what was done to the indexes of a todo, or nothing if it was forgotten meanwhile: then none of them may
    /// stay, and a failure only happened because they were gone.
    fn unless_forgotten(
        &self,
        todo: &Todo,
        folder: &Folder,
        done: Result<Maintained, Error>,
    ) -> Result<Maintained, Error> {
        // A todo that has an index has blocks, and forgetting deletes them all.
        if self.records.last_block_n(todo)? > 0 {
            return done;
        }
        self.drop_slot(todo);
        remove(folder)?;
        Ok(Maintained::default())
    }

    /// Graphs that are being built are abandoned, and no more are built; indexes end with the current batch.
    pub(crate) fn stop_building(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn due_graph<'a>(&self, disk: &'a DiskIndex) -> Option<&'a CodeGroup> {
        Graph::due(&disk.codes, disk.graph.as_deref(), self.config.hnsw_after_vectors)
    }

    pub(crate) fn index_lag(&self, todo: &Todo) -> Result<u64, Error> {
        let Some(folder) = self.folder(todo) else { return Ok(0) };
        let last = self.records.last_block_n(todo)?;
        let indexed = match self.open(&folder, todo, None) {
            Ok(Some(disk)) => disk.blocks(),
            Ok(None) | Err(_) if !self.is_worth_an_index(todo, last)? => return Ok(0),
            Ok(None) | Err(_) => 0,
        };
        Ok(u64::from(last.saturating_sub(indexed)))
    }

    /// Returns whether the vectors of the todo's index have a graph over them.
    pub(crate) fn has_graph(&self, todo: &Todo) -> bool {
        let disk = self.folder(todo).and_then(|folder| self.open(&folder, todo, None).ok()?);
        disk.is_some_and(|disk| disk.graph.is_some())
    }

    /// Returns whether a todo of this many blocks is large enough for an index on disk.
    pub(crate) fn is_worth_an_index(&self, todo: &Todo, last: u32) -> Result<bool, Error> {
        Ok(last > 0 && self.is_due(todo, &self.slot(todo), None, last)?)
    }

    /// Returns whether the blocks after those that `disk` holds are to be indexed on disk: there are many, or much text
    /// in their payloads.
    fn is_due(
        &self,
        todo: &Todo,
        slot: &Arc<Slot>,
        disk: Option<&DiskIndex>,
        last: u32,
    ) -> Result<bool, Error> {
        let indexed = disk.map_or(0, DiskIndex::blocks);
        let behind = last.saturating_sub(indexed);
        let many = match indexed {
            0 => behind > self.config.index_after_blocks,
            _ => behind >= self.config.batch_blocks,
        };
        if many || behind == 0 {
            return Ok(many);
        }
        let mut passages = slot.passages.lock();
        if passages.behind != indexed || passages.until > last {
            *passages = Passages { behind: indexed, until: indexed, ..Passages::default() };
        }
        if passages.until < last {
            let new = passages.until + 1..=last;
            let is_known = |n| disk.is_some_and(|disk| disk.carried.holds(n));
            let seen = &mut passages.payloads;
            let is_new = |n| !is_known(n) && seen.insert(n);
            passages.count += self.records.count_passages(todo, new, is_new)?;
            passages.until = last;
        }
        let count = passages.count;
        let bytes = passages.payloads.capacity() * (size_of::<u64>() + 1);
        drop(passages);
        slot.passages_bytes.store(bytes, Ordering::Relaxed);
        self.account(todo, slot, &slot.state.lock());
        // Each update costs as much as a part of the whole, so a large index waits for more.
        let held = disk.map_or(0, |disk| disk.passages().len() as u64);
        Ok(count > u64::from(self.config.index_after_passages).max(held / GROWTH))
    }
}
