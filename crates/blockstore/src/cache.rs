//! What is held of the todos that were searched last, and how it meets the truth.

use crate::disk::{DiskIndex, Fit, Folder, IndexWriter, Lock};
use crate::memory_index::MemoryIndex;
use crate::records::Records;
use crate::{Error, IndexConfig, Searcher};
use foldback_kv::Todo;
use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// Recently searched todos, bounded by the memory that they take.
pub(crate) struct Cache {
    records: Records,
    index_dir: Option<PathBuf>,
    config: IndexConfig,
    slots: Mutex<Slots>,
}

/// What [`maintain`](crate::BlockStore::maintain) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Maintained {
    /// How many blocks were added to the index.
    pub indexed: u32,
    /// Why an index that was there was dropped and made again, if it was.
    pub dropped: Option<String>,
    /// Whether the graph was built.
    pub graph_built: bool,
    /// Whether another process or thread was at it already.
    pub busy: bool,
    /// Whether the index holds what the truth does not, so that it was left for
    /// [`doctor`](crate::BlockStore::doctor) to report.
    pub ahead: bool,
}

struct Slots {
    by_todo: LruCache<u32, Arc<Slot>>,
    bytes: usize,
}

/// One todo. Whoever finds it behind the truth lets it catch up, one at a time. A thread that has
/// the state locked may lock the slots, never the other way round.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    /// What the slot counts in the cache.
    bytes: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// The store's change counter when the slot last met the truth.
    changed: Option<u64>,
    /// How many blocks it holds, on disk and in memory.
    blocks: u32,
    disk: Option<Arc<DiskIndex>>,
    /// The blocks behind those of `disk`.
    memory: Arc<RwLock<MemoryIndex>>,
    /// The files of the index when it was last opened, so that one that is no good is not tried
    /// again before it changes.
    tried: Option<Stamp>,
}

/// When the files that are written last were written, and how long they are.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Cache {
    pub(crate) fn new(records: Records, index_dir: Option<PathBuf>, config: IndexConfig) -> Self {
        let slots = Slots { by_todo: LruCache::unbounded(), bytes: 0 };
        Self { records, index_dir, config, slots: Mutex::new(slots) }
    }

    pub(crate) fn searcher(&self, todo: &Todo) -> Result<Searcher, Error> {
        let slot = self.slot(todo);
        let mut state = slot.state.lock();
        // The counter is read first, so what is read behind it is at least as new.
        let changed = self.records.changed()?;
        let broken = state.disk.as_ref().is_some_and(|disk| disk.is_broken());
        if state.changed != Some(changed) || broken {
            self.catch_up(todo, &mut state)?;
            state.changed = Some(changed);
            let disk = state.disk.as_ref().map_or(0, |disk| disk.bytes());
            let bytes = disk + state.memory.read().bytes();
            self.account(todo, &slot, bytes);
        }
        Ok(Searcher::new(
            todo.clone(),
            self.records.clone(),
            state.disk.clone(),
            state.memory.clone(),
            state.blocks,
        ))
    }

    pub(crate) fn maintain(&self, todo: &Todo) -> Result<Maintained, Error> {
        let mut done = Maintained::default();
        let Some(folder) = self.folder(todo) else { return Ok(done) };
        let last = self.records.last_block_n(todo)?;
        if last <= self.config.index_after_blocks {
            return Ok(done);
        }
        let slot = self.slot(todo);
        let known = slot.state.lock().disk.clone().filter(|disk| !disk.is_broken());
        if let Some(disk) = &known
            && last - disk.blocks().min(last) < self.config.batch_blocks
            && !self.graph_is_due(disk)
            && folder.holds_index()
        {
            return Ok(done);
        }
        let Some(lock) = Lock::take(&folder)? else {
            done.busy = true;
            return Ok(done);
        };
        // Another process may have written and indexed since; what counts is what is there now.
        let last = self.records.last_block_n(todo)?;
        let writer = IndexWriter::new(&lock, &folder, &self.records, todo);
        let graph = known.as_ref().and_then(|disk| disk.graph.as_ref());
        let mut disk = match DiskIndex::open(&folder, todo, graph) {
            Ok(disk) => disk,
            Err(damage) => {
                writer.clear()?;
                done.dropped = Some(damage);
                None
            }
        };
        if let Some(disk) = &disk
            && disk.fit(&self.records, todo)? != Fit::Fits
        {
            done.ahead = true;
            return Ok(done);
        }
        let indexed = disk.as_ref().map_or(0, DiskIndex::blocks);
        let behind = last.saturating_sub(indexed);
        if behind >= self.config.batch_blocks || disk.is_none() {
            writer.append(disk.as_ref(), last)?;
            done.indexed = behind;
            disk = self.reopen(&folder, todo, disk.as_ref())?;
        }
        if let Some(index) = &disk
            && writer.refresh_graph(index, self.config.hnsw_after_vectors)?
        {
            done.graph_built = true;
            disk = self.reopen(&folder, todo, Some(index))?;
        }
        if self.records.last_block_n(todo)? == 0 {
            // The todo was forgotten meanwhile, and nothing of it may stay.
            writer.clear()?;
            return Ok(done);
        }
        drop(lock);
        if let Some(disk) = disk {
            let mut state = slot.state.lock();
            state.tried = Some(stamp(&folder));
            state.take(disk);
            let disk = state.disk.as_ref().map_or(0, |disk| disk.bytes());
            let bytes = disk + state.memory.read().bytes();
            self.account(todo, &slot, bytes);
        }
        Ok(done)
    }

    pub(crate) fn index_lag(&self, todo: &Todo) -> Result<u64, Error> {
        let Some(folder) = self.folder(todo) else { return Ok(0) };
        let last = self.records.last_block_n(todo)?;
        if last <= self.config.index_after_blocks {
            return Ok(0);
        }
        let indexed = match DiskIndex::open(&folder, todo, None) {
            Ok(Some(disk)) => disk.blocks(),
            Ok(None) | Err(_) => 0,
        };
        Ok(u64::from(last.saturating_sub(indexed)))
    }

    /// Lets go of the todo and deletes its indexes.
    pub(crate) fn forget(&self, todo: &Todo) -> Result<(), Error> {
        self.drop_slot(todo);
        let Some(folder) = self.folder(todo) else { return Ok(()) };
        match std::fs::remove_dir_all(folder.root()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::Index {
                path: folder.root().to_owned(),
                doing: "deleted",
                detail: error.to_string(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn drop_slot(&self, todo: &Todo) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.by_todo.pop(&todo.no()) {
            slots.bytes = slots.bytes.saturating_sub(slot.bytes.swap(0, Ordering::Relaxed));
        }
    }

    /// Where the todo's indexes are; `None` when none are kept.
    pub(crate) fn folder(&self, todo: &Todo) -> Option<Folder> {
        self.index_dir.as_ref().map(|dir| Folder::new(dir, todo.no()))
    }

    pub(crate) fn config(&self) -> &IndexConfig {
        &self.config
    }

    fn slot(&self, todo: &Todo) -> Arc<Slot> {
        self.slots.lock().by_todo.get_or_insert(todo.no(), Arc::default).clone()
    }

    fn reopen(
        &self,
        folder: &Folder,
        todo: &Todo,
        before: Option<&DiskIndex>,
    ) -> Result<Option<DiskIndex>, Error> {
        let graph = before.and_then(|disk| disk.graph.as_ref());
        DiskIndex::open(folder, todo, graph).map_err(|detail| Error::Index {
            path: folder.root().to_owned(),
            doing: "opened after it was written",
            detail,
        })
    }

    fn graph_is_due(&self, disk: &DiskIndex) -> bool {
        IndexWriter::graph_is_due(disk, self.config.hnsw_after_vectors)
    }

    fn catch_up(&self, todo: &Todo, state: &mut State) -> Result<(), Error> {
        let last = self.records.last_block_n(todo)?;
        let broken = state.disk.as_ref().is_some_and(|disk| disk.is_broken());
        if last < state.blocks || broken || state.blocks == 0 {
            // The truth went back to an older copy of itself, or a search stumbled over the index.
            let tried = if broken { state.tried } else { None };
            *state = State { tried, ..State::default() };
            state.memory = Arc::new(RwLock::new(MemoryIndex::starting_at(1)));
        }
        if last > self.config.index_after_blocks
            && let Some(folder) = self.folder(todo)
        {
            let now = stamp(&folder);
            if state.tried != Some(now) {
                state.tried = Some(now);
                let graph = state.disk.as_ref().and_then(|disk| disk.graph.as_ref());
                if let Ok(Some(disk)) = DiskIndex::open(&folder, todo, graph)
                    && disk.fit(&self.records, todo)? == Fit::Fits
                {
                    state.take(disk);
                }
            }
        }
        if last > state.blocks {
            let mut docs = Vec::new();
            self.records.docs(todo, state.blocks + 1..=last, |doc| docs.push(doc))?;
            let mut memory = state.memory.write();
            docs.into_iter().for_each(|doc| memory.push(doc));
            drop(memory);
            state.blocks = last;
        }
        Ok(())
    }

    /// Notes what a slot takes, and lets go of others when it is too much.
    fn account(&self, todo: &Todo, slot: &Arc<Slot>, bytes: usize) {
        let mut slots = self.slots.lock();
        // It may have been let go of while it was in use; then it counts no more.
        if !slots.by_todo.peek(&todo.no()).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            return;
        }
        let before = slot.bytes.swap(bytes, Ordering::Relaxed);
        slots.bytes = slots.bytes.saturating_sub(before).saturating_add(bytes);
        while slots.bytes > self.config.cache_bytes && slots.by_todo.len() > 1 {
            let Some((_, slot)) = slots.by_todo.pop_lru() else { break };
            let freed = slot.bytes.swap(0, Ordering::Relaxed);
            slots.bytes = slots.bytes.saturating_sub(freed);
        }
    }
}

impl State {
    /// Searches `disk` from now on. What is behind it is read again from the truth.
    fn take(&mut self, disk: DiskIndex) {
        let blocks = disk.blocks();
        self.memory = Arc::new(RwLock::new(MemoryIndex::starting_at(blocks + 1)));
        self.blocks = blocks;
        self.disk = Some(Arc::new(disk));
        self.changed = None;
    }
}

fn stamp(folder: &Folder) -> Stamp {
    folder.last_written().map(|path: PathBuf| written(&path))
}

fn written(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}
