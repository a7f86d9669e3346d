//! What is held of the todos that were searched last, and how it meets the truth.

use crate::disk::{CodeGroup, Damage, DiskIndex, Fit, Folder, Graph, IndexWriter, Lock};
use crate::memory_index::MemoryIndex;
use crate::records::Records;
use crate::{Error, IndexConfig, Searcher};
use foldback_kv::{Error as KvError, Registry, Todo};
use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Recently searched todos, bounded by the memory that they take.
pub(crate) struct Cache {
    records: Records,
    registry: Registry,
    index_dir: Option<PathBuf>,
    config: IndexConfig,
    slots: Mutex<Slots>,
    /// Whether graphs are no longer built, nor indexes beyond the next batch.
    stopped: AtomicBool,
}

/// What [`maintain`](crate::BlockStore::maintain) and
/// [`build_graph`](crate::BlockStore::build_graph) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Maintained {
    /// How many blocks were added to the index.
    pub indexed: u32,
    /// Why an index that was there was dropped and made again, if it was.
    pub dropped: Option<String>,
    /// Whether the index has so many vectors without a graph that
    /// [`build_graph`](crate::BlockStore::build_graph) would build one.
    pub graph_due: bool,
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
    /// How many passages the payloads of blocks have that are not indexed on disk.
    passages: Mutex<Passages>,
    /// What the slot counts in the cache.
    bytes: AtomicUsize,
}

/// How many passages there are in the blocks behind one, up to another, without those of payloads
/// that earlier blocks carry. Counted once.
#[derive(Default)]
struct Passages {
    behind: u32,
    until: u32,
    count: u64,
    payloads: FxHashSet<u64>,
}

/// An index catches up when as many passages are behind as this part of those that it holds.
const GROWTH: u64 = 8;

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
    /// Of how many replacements of vectors it knows.
    generation: u32,
}

/// What the folder of a todo's indexes is called behind its number while it is deleted.
const GONE: &str = "gone";

/// How long to wait for another's turn at an index.
const TURN: Duration = Duration::from_millis(10);

/// When the files that are written last were written, and how long they are.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Cache {
    pub(crate) fn new(
        records: Records,
        registry: Registry,
        index_dir: Option<PathBuf>,
        config: IndexConfig,
    ) -> Self {
        let slots = Mutex::new(Slots { by_todo: LruCache::unbounded(), bytes: 0 });
        Self { records, registry, index_dir, config, slots, stopped: AtomicBool::new(false) }
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
        }
        // It grows too when a graph is loaded beside the searches.
        let bytes = state.bytes();
        if slot.bytes.load(Ordering::Relaxed) != bytes {
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
        if self.records.vector_state(todo)?.indexes_stale {
            // Its vectors are being replaced; then it is made again.
            return Ok(done);
        }
        let last = self.records.last_block_n(todo)?;
        let slot = self.slot(todo);
        let known = slot.state.lock().disk.clone();
        let known = known.filter(|disk| !disk.is_broken() && folder.holds_index());
        if !self.is_due(todo, &slot, known.as_deref(), last)? {
            done.graph_due = known.is_some_and(|disk| self.due_graph(&disk).is_some());
            return Ok(done);
        }
        let done = match Lock::take(&folder) {
            Ok(Some(lock)) => self.index(todo, &slot, &folder, &lock, known.as_deref()),
            Ok(None) => return Ok(Maintained { busy: true, ..done }),
            Err(error) => Err(error),
        };
        self.unless_forgotten(todo, &folder, done)
    }

    /// Lets the index catch up, for whoever holds its lock.
    fn index(
        &self,
        todo: &Todo,
        slot: &Arc<Slot>,
        folder: &Folder,
        lock: &Lock,
        known: Option<&DiskIndex>,
    ) -> Result<Maintained, Error> {
        let mut done = Maintained::default();
        // Another process may have written and indexed since; what counts is what is there now.
        let last = self.records.last_block_n(todo)?;
        let writer = IndexWriter::new(lock, folder, &self.records, todo);
        let mut disk = match self.open(folder, todo, known) {
            Ok(disk) => disk,
            Err(damage) => {
                done.dropped = Some(damage);
                None
            }
        };
        if disk.is_none() {
            // What others have mapped of an older one goes by its name, and is never written over.
            writer.clear()?;
        }
        if let Some(disk) = &disk
            && disk.fit(&self.records, todo)? != Fit::Fits
        {
            done.ahead = true;
            return Ok(done);
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
            self.take(todo, slot, folder, disk);
        }
        Ok(done)
    }

    pub(crate) fn build_graph(&self, todo: &Todo) -> Result<Maintained, Error> {
        let mut done = Maintained::default();
        let Some(folder) = self.folder(todo) else { return Ok(done) };
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

    /// Builds the graph if it is still due, for whoever holds its lock.
    fn build(
        &self,
        todo: &Todo,
        slot: &Arc<Slot>,
        folder: &Folder,
        disk: &DiskIndex,
    ) -> Result<Maintained, Error> {
        let mut done = Maintained { graph_due: true, ..Maintained::default() };
        // Another may have built it meanwhile; whether it is whole shows when it is loaded.
        let graph = Graph::open(folder, &disk.codes, disk.graph.as_ref());
        let graph = graph.filter(|graph| graph.load().is_some());
        let after = self.config.hnsw_after_vectors;
        if let Some(group) = Graph::due(&disk.codes, graph.as_deref(), after) {
            let stop = || self.stopped.load(Ordering::Relaxed);
            done.graph_built = Graph::build(folder, &disk.codes, group, &stop)
                .map_err(|detail| index_error(folder, "given a graph", detail))?;
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

    /// What was done to the indexes of a todo, or where it was forgotten meanwhile, nothing: then
    /// nothing of them may stay, and what failed only failed because they were gone.
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

    /// Graphs that are being built are given up, and none are built any more; indexes end with the
    /// batch that they are at.
    pub(crate) fn stop_building(&self) {
        self.stopped.store(true, Ordering::Relaxed);
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

    /// Whether a todo of so many blocks is large enough for an index on disk.
    pub(crate) fn is_worth_an_index(&self, todo: &Todo, last: u32) -> Result<bool, Error> {
        self.is_due(todo, &self.slot(todo), None, last)
    }

    /// Whether the blocks behind those that `disk` holds are to be indexed on disk: there are many, or
    /// much text in their payloads.
    fn is_due(
        &self,
        todo: &Todo,
        slot: &Slot,
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
        // Each catching up costs as much as a part of the whole, so a large index waits for more.
        let held = disk.map_or(0, |disk| disk.passages().len() as u64);
        Ok(passages.count > u64::from(self.config.index_after_passages).max(held / GROWTH))
    }

    /// Deletes what the todo's index holds, once nobody writes it; `false` when it was told to stop
    /// before.
    pub(crate) fn clear_index(&self, todo: &Todo, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let folder = self.folder(todo).filter(Folder::holds_index);
        let Some(folder) = folder else { return Ok(true) };
        let lock = loop {
            match Lock::take(&folder)? {
                Some(lock) => break lock,
                None if stop() => return Ok(false),
                None => std::thread::sleep(TURN),
            }
        };
        IndexWriter::new(&lock, &folder, &self.records, todo).clear()?;
        Ok(true)
    }

    /// Lets go of the todo and deletes its indexes. Its records are gone, so that whoever is indexing
    /// it finds that out and leaves nothing behind either.
    pub(crate) fn remove_index(&self, todo: &Todo) -> Result<(), Error> {
        self.drop_slot(todo);
        self.folder(todo).map_or(Ok(()), |folder| remove(&folder))
    }

    /// Deletes the indexes of todos that are no more.
    pub(crate) fn sweep_forgotten(&self) -> Result<usize, Error> {
        let Some(dir) = &self.index_dir else { return Ok(0) };
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => {
                let (path, detail) = (dir.clone(), error.to_string());
                return Err(Error::Index { path, doing: "listed", detail });
            }
        };
        let mut swept = 0;
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let gone = name.strip_suffix(GONE).and_then(|name| name.strip_suffix('.'));
            let Ok(no) = gone.unwrap_or(&name).parse::<u32>() else { continue };
            let folder = Folder::new(dir, no);
            if gone.is_some() {
                delete(&gone_root(&folder))
                    .map_err(|error| index_error(&folder, "deleted", error.to_string()))?;
                swept += 1;
                continue;
            }
            match self.registry.list(no.saturating_sub(1), 1) {
                Ok(todos) if todos.first().is_some_and(|todo| todo.no() == no) => {}
                Ok(_) => {
                    remove(&folder)?;
                    swept += 1;
                }
                // Whose it is cannot be read, so it stays.
                Err(KvError::Corrupt { .. }) => {}
                Err(error) => return Err(Error::Kv(error)),
            }
        }
        Ok(swept)
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

    fn slot(&self, todo: &Todo) -> Arc<Slot> {
        self.slots.lock().by_todo.get_or_insert(todo.no(), Arc::default).clone()
    }

    fn reopen(
        &self,
        folder: &Folder,
        todo: &Todo,
        before: Option<&DiskIndex>,
    ) -> Result<Option<DiskIndex>, Error> {
        self.open(folder, todo, before)
            .map_err(|detail| index_error(folder, "opened after it was written", detail))
    }

    /// The index on disk, with its graph only where there are vectors enough to use one. What is
    /// known of it is used again.
    fn open(
        &self,
        folder: &Folder,
        todo: &Todo,
        known: Option<&DiskIndex>,
    ) -> Result<Option<DiskIndex>, Damage> {
        let graph = known.and_then(|disk| disk.graph.as_ref());
        let mut disk = DiskIndex::open(folder, todo, graph)?;
        if let Some(disk) = &mut disk {
            let after = self.config.hnsw_after_vectors;
            disk.graph.take_if(|graph| !graph.is_wanted(&disk.codes, after));
        }
        Ok(disk)
    }

    fn due_graph<'a>(&self, disk: &'a DiskIndex) -> Option<&'a CodeGroup> {
        Graph::due(&disk.codes, disk.graph.as_deref(), self.config.hnsw_after_vectors)
    }

    /// Searches `disk` from now on.
    fn take(&self, todo: &Todo, slot: &Arc<Slot>, folder: &Folder, disk: DiskIndex) {
        let mut state = slot.state.lock();
        state.tried = Some(stamp(folder));
        self.search_disk(&mut state, disk);
        self.account(todo, slot, state.bytes());
    }

    fn catch_up(&self, todo: &Todo, state: &mut State) -> Result<(), Error> {
        let last = self.records.last_block_n(todo)?;
        let broken = state.disk.as_ref().is_some_and(|disk| disk.is_broken());
        let generation = self.records.vector_state(todo)?.generation;
        let replaced = state.generation != generation;
        if last < state.blocks || broken || replaced || state.blocks == 0 {
            // The truth went back to an older copy of itself, a search stumbled over the index, or
            // other vectors took the place of those that it holds.
            let tried = if broken { state.tried } else { None };
            *state = State { tried, generation, ..State::default() };
            state.memory = self.memory_behind(0);
        }
        if let Some(folder) = self.folder(todo) {
            let now = stamp(&folder);
            if state.tried != Some(now) {
                state.tried = Some(now);
                if let Ok(Some(disk)) = self.open(&folder, todo, state.disk.as_deref())
                    && disk.fit(&self.records, todo)? == Fit::Fits
                {
                    self.search_disk(state, disk);
                }
            }
        }
        if last > state.blocks {
            if let Err(error) = self.append_to_memory(todo, state, last) {
                // What was read so far is no longer the beginning of anything.
                *state = State::default();
                return Err(error);
            }
            state.blocks = last;
        }
        Ok(())
    }

    /// Reads the blocks up to `last` into memory.
    fn append_to_memory(&self, todo: &Todo, state: &mut State, last: u32) -> Result<(), Error> {
        let behind = state.disk.as_ref().map_or(0, |disk| disk.blocks());
        let append = |state: &State, first: u32| {
            let (records, disk) = (&self.records, state.disk.as_deref());
            MemoryIndex::append(&state.memory, records, todo, disk, first..=last)
        };
        let has_room = append(state, state.blocks + 1)?;
        if !has_room && state.blocks > behind {
            // Newer payloads take the place of older ones, and half of the room is left for more.
            let room = self.passage_room();
            let memory = MemoryIndex::starting_at(behind + 1, room / 2);
            state.memory = Arc::new(RwLock::new(memory));
            append(state, behind + 1)?;
            state.memory.write().set_passage_room(room);
        }
        Ok(())
    }

    /// What the passages of one todo may take in memory, in bytes.
    fn passage_room(&self) -> usize {
        self.config.cache_bytes / 2
    }

    /// An index in memory for what stands behind this block.
    fn memory_behind(&self, block: u32) -> Arc<RwLock<MemoryIndex>> {
        Arc::new(RwLock::new(MemoryIndex::starting_at(block + 1, self.passage_room())))
    }

    /// Searches `disk` from now on. What is behind it is read again from the truth, unless it is
    /// known already.
    fn search_disk(&self, state: &mut State, disk: DiskIndex) {
        let blocks = disk.blocks();
        if state.disk.as_ref().is_none_or(|known| known.blocks() != blocks) {
            state.memory = self.memory_behind(blocks);
            state.blocks = blocks;
            state.changed = None;
        }
        state.disk = Some(Arc::new(disk));
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
    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        self.disk.as_ref().map_or(0, |disk| disk.bytes()) + self.memory.read().bytes()
    }
}

/// Deletes a todo's indexes, and its folder. That gets another name first, in one step: whoever
/// still writes to it by the old one writes to nothing any more, and what a kill leaves is swept.
fn remove(folder: &Folder) -> Result<(), Error> {
    let gone = gone_root(folder);
    let mut tries = 100;
    loop {
        // Until it has not come back meanwhile.
        let renamed = delete(&gone).and_then(|()| std::fs::rename(folder.root(), &gone));
        match renamed.map_err(|error| (error.kind(), error)) {
            Err((ErrorKind::NotFound | ErrorKind::NotADirectory, _)) => return Ok(()),
            Ok(()) => {}
            // A file that was just being made came to be in it, or another deletes it too.
            Err((ErrorKind::DirectoryNotEmpty, _)) if tries > 0 => std::thread::sleep(TURN),
            Err((_, error)) => return Err(index_error(folder, "deleted", error.to_string())),
        }
        tries -= 1;
    }
}

/// Where a todo's folder goes to be deleted.
fn gone_root(folder: &Folder) -> PathBuf {
    folder.root().with_extension(GONE)
}

fn delete(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn index_error(folder: &Folder, doing: &'static str, detail: String) -> Error {
    Error::Index { path: folder.root().to_owned(), doing, detail }
}

fn stamp(folder: &Folder) -> Stamp {
    folder.last_written().map(|path: PathBuf| written(&path))
}

fn written(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

#[cfg(test)]
mod tests;
