//! What is held of the todos that were searched last, and how it meets the truth.

use crate::disk::{CodeGroup, DiskIndex, Fit, Folder, Graph, IndexWriter, Lock};
use crate::memory_index::MemoryIndex;
use crate::records::Records;
use crate::{Error, IndexConfig, Searcher};
use foldback_kv::{Error as KvError, Registry, Todo};
use lru::LruCache;
use parking_lot::{Mutex, RwLock};
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
    /// Whether graphs are no longer built.
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

/// How many passages there are in the blocks behind one, up to another. Counted once.
#[derive(Default)]
struct Passages {
    behind: u32,
    until: u32,
    count: u64,
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
    /// Of how many replacements of vectors it knows.
    generation: u32,
}

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
            self.account(todo, &slot, state.bytes());
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
        let indexed = known.as_ref().map_or(0, |disk| disk.blocks());
        if !self.is_due(todo, &slot, indexed, last)? {
            done.graph_due = known.is_some_and(|disk| self.due_graph(&disk).is_some());
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
        if disk.is_none() || self.is_due(todo, &slot, indexed, last)? {
            writer.append(disk.as_ref(), last)?;
            done.indexed = last.saturating_sub(indexed);
            disk = self.reopen(&folder, todo, disk.as_ref())?;
        }
        if self.is_forgotten(todo)? {
            // Meanwhile; and nothing of it may stay.
            remove(&folder)?;
            return Ok(done);
        }
        drop(lock);
        if let Some(disk) = disk {
            done.graph_due = self.due_graph(&disk).is_some();
            self.take(todo, &slot, &folder, disk);
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
            None => match DiskIndex::open(&folder, todo, None) {
                Ok(Some(disk)) if disk.fit(&self.records, todo)? == Fit::Fits => Arc::new(disk),
                _ => return Ok(done),
            },
        };
        done.graph_due = self.due_graph(&disk).is_some();
        if !done.graph_due {
            return Ok(done);
        }
        let Some(lock) = Lock::take_graph(&folder)? else {
            done.busy = true;
            return Ok(done);
        };
        // Another may have built it meanwhile; whether it is whole shows when it is loaded.
        let graph = Graph::open(&folder, &disk.codes, disk.graph.as_ref());
        let graph = graph.filter(|graph| graph.load().is_some());
        let after = self.config.hnsw_after_vectors;
        let built = Graph::due(&disk.codes, graph.as_deref(), after).map(|group| {
            let stop = || self.stopped.load(Ordering::Relaxed);
            Graph::build(&folder, &disk.codes, group, &stop)
        });
        if self.is_forgotten(todo)? {
            remove(&folder)?;
            return Ok(Maintained::default());
        }
        done.graph_built = built
            .transpose()
            .map_err(|detail| index_error(&folder, "given a graph", detail))?
            .unwrap_or(false);
        drop(lock);
        if done.graph_built
            && let Some(disk) = self.reopen(&folder, todo, Some(&disk))?
        {
            if let Some(graph) = &disk.graph {
                graph.load();
            }
            done.graph_due = self.due_graph(&disk).is_some();
            self.take(todo, &slot, &folder, disk);
        }
        Ok(done)
    }

    /// Graphs that are being built are given up, and none are built any more.
    pub(crate) fn stop_building(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn index_lag(&self, todo: &Todo) -> Result<u64, Error> {
        let Some(folder) = self.folder(todo) else { return Ok(0) };
        let last = self.records.last_block_n(todo)?;
        let indexed = match DiskIndex::open(&folder, todo, None) {
            Ok(Some(disk)) => disk.blocks(),
            Ok(None) | Err(_) if !self.is_worth_an_index(todo, last)? => return Ok(0),
            Ok(None) | Err(_) => 0,
        };
        Ok(u64::from(last.saturating_sub(indexed)))
    }

    /// Whether a todo of so many blocks is large enough for an index on disk.
    pub(crate) fn is_worth_an_index(&self, todo: &Todo, last: u32) -> Result<bool, Error> {
        self.is_due(todo, &self.slot(todo), 0, last)
    }

    /// Whether the blocks behind the first `indexed` are to be indexed on disk: there are many, or
    /// much text in their payloads.
    fn is_due(&self, todo: &Todo, slot: &Slot, indexed: u32, last: u32) -> Result<bool, Error> {
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
            *passages = Passages { behind: indexed, until: indexed, count: 0 };
        }
        if passages.until < last {
            passages.count += self.records.count_passages(todo, passages.until + 1..=last)?;
            passages.until = last;
        }
        Ok(passages.count > u64::from(self.config.index_after_passages))
    }

    /// Deletes what the todo's index holds, once nobody writes it.
    pub(crate) fn clear_index(&self, todo: &Todo) -> Result<(), Error> {
        let folder = self.folder(todo).filter(Folder::holds_index);
        let Some(folder) = folder else { return Ok(()) };
        let lock = loop {
            match Lock::take(&folder)? {
                Some(lock) => break lock,
                None => std::thread::sleep(TURN),
            }
        };
        IndexWriter::new(&lock, &folder, &self.records, todo).clear()
    }

    /// Lets go of the todo and deletes its indexes.
    pub(crate) fn forget(&self, todo: &Todo) -> Result<(), Error> {
        self.drop_slot(todo);
        self.folder(todo).map_or(Ok(()), |folder| remove(&folder))
    }

    /// Deletes the indexes of todos that are no more.
    pub(crate) fn sweep_forgotten(&self) -> Result<usize, Error> {
        let Some(dir) = &self.index_dir else { return Ok(0) };
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(error) => {
                let (path, detail) = (dir.clone(), error.to_string());
                return Err(Error::Index { path, doing: "listed", detail });
            }
        };
        let mut swept = 0;
        for entry in entries.flatten() {
            let Some(no) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            match self.registry.list(no.saturating_sub(1), 1) {
                Ok(todos) if todos.first().is_some_and(|todo| todo.no() == no) => {}
                Ok(_) => {
                    remove(&Folder::new(dir, no))?;
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
        let graph = before.and_then(|disk| disk.graph.as_ref());
        DiskIndex::open(folder, todo, graph)
            .map_err(|detail| index_error(folder, "opened after it was written", detail))
    }

    fn due_graph<'a>(&self, disk: &'a DiskIndex) -> Option<&'a CodeGroup> {
        Graph::due(&disk.codes, disk.graph.as_deref(), self.config.hnsw_after_vectors)
    }

    fn is_forgotten(&self, todo: &Todo) -> Result<bool, Error> {
        // A todo that has an index has blocks, and forgetting deletes them all.
        Ok(self.records.last_block_n(todo)? == 0)
    }

    /// Searches `disk` from now on.
    fn take(&self, todo: &Todo, slot: &Arc<Slot>, folder: &Folder, disk: DiskIndex) {
        let mut state = slot.state.lock();
        state.tried = Some(stamp(folder));
        state.take(disk);
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
            state.memory = Arc::new(RwLock::new(MemoryIndex::starting_at(1)));
        }
        if let Some(folder) = self.folder(todo) {
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
            let (memory, new) = (state.memory.clone(), state.blocks + 1..=last);
            let text = memory.read().room_for_text();
            let read = self.records.docs(todo, new, text, |doc| memory.write().push(doc));
            if let Err(error) = read {
                // What was read so far is no longer the beginning of anything.
                *state = State::default();
                return Err(error);
            }
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
    /// Searches `disk` from now on. What is behind it is read again from the truth, unless it is
    /// known already.
    fn take(&mut self, disk: DiskIndex) {
        let blocks = disk.blocks();
        if self.disk.as_ref().is_none_or(|known| known.blocks() != blocks) {
            self.memory = Arc::new(RwLock::new(MemoryIndex::starting_at(blocks + 1)));
            self.blocks = blocks;
            self.changed = None;
        }
        self.disk = Some(Arc::new(disk));
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        self.disk.as_ref().map_or(0, |disk| disk.bytes()) + self.memory.read().bytes()
    }
}

/// Deletes a todo's indexes, and its folder.
fn remove(folder: &Folder) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder.root()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(index_error(folder, "deleted", error.to_string()))
        }
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
mod tests {
    use super::*;
    use crate::{Commit, Head, NewMessage};
    use foldback_core::{
        Block, BlockHeader, BlockId, BlockType, CloseReason, Message, Piece, SeqNo, SeqRange,
        StoredMessage, TodoId, Vectors,
    };
    use foldback_kv::Kv;

    /// A todo of 40 blocks, each of one message and one vector.
    fn filled(kv: &Arc<dyn Kv>, records: &Records, id: &str) -> Todo {
        let todo = Registry::new(kv.clone()).create(&TodoId::new(id).unwrap(), b"").unwrap();
        let (messages, blocks): (Vec<_>, Vec<_>) = (1..=40u32)
            .map(|n| {
                let json = Message::user(&format!("words of block {n}, 字{n}")).json().to_owned();
                let (pieces, offloads) = (vec![Piece::Text(json)], vec![]);
                let stored = StoredMessage { pieces, offloads, recall: false, recorded_at: 0 };
                let vectors = Vectors::new(64, vec![0.125; 64]).unwrap();
                let header = BlockHeader {
                    block_id: BlockId::new(todo.id().clone(), n),
                    todo_id: todo.id().clone(),
                    block_type: BlockType::Chat,
                    keywords: vec![],
                    core_semantic: String::new(),
                    create_time: "2025-01-01 10:00:00".to_owned(),
                    data_ids: vec![],
                };
                let seq = SeqNo(u64::from(n) - 1);
                let range = SeqRange::new(seq, seq).unwrap();
                let block = Block { header, range, close_reason: CloseReason::End };
                (NewMessage { stored, vectors }, block)
            })
            .unzip();
        let commit = Commit {
            todo: &todo,
            head: Head::default(),
            messages: &messages,
            blocks: &blocks,
            session: vec![],
            extra: vec![],
            delete: vec![],
        };
        records.commit(commit, "m").unwrap();
        todo
    }

    /// What is counted is what the todos that are held take, whatever was done to them.
    #[test]
    fn c8_the_memory_of_the_cache_is_counted_after_upkeep_too() {
        let dir = tempfile::tempdir().unwrap();
        let kv = foldback_kv::memory();
        let records = Records::new(kv.clone(), None);
        let todos = ["a", "b", "c"].map(|id| filled(&kv, &records, id));
        let [a, b, c] = &todos;
        let open = |cache_bytes| {
            let config = IndexConfig {
                index_after_blocks: 10,
                batch_blocks: 1,
                cache_bytes,
                ..IndexConfig::default()
            };
            let registry = Registry::new(kv.clone());
            Cache::new(records.clone(), registry, Some(dir.path().to_owned()), config)
        };
        let counted = |cache: &Cache| {
            let slots = cache.slots.lock();
            let held = slots.by_todo.iter().map(|(_, slot)| {
                let counted = slot.bytes.load(Ordering::Relaxed);
                assert_eq!(counted, slot.state.lock().bytes());
                counted
            });
            assert_eq!(held.sum::<usize>(), slots.bytes);
            slots.bytes
        };
        let cache = open(usize::MAX);
        assert_eq!(counted(&cache), 0);
        for todo in &todos {
            cache.searcher(todo).unwrap();
        }
        let in_memory = counted(&cache);
        cache.maintain(a).unwrap();
        let after = counted(&cache);
        assert!(after < in_memory, "an index on disk takes less: {after} and {in_memory}");
        cache.maintain(a).unwrap();
        cache.searcher(a).unwrap();
        assert_eq!(counted(&cache), after, "nothing has changed");
        cache.forget(b).unwrap();
        assert!(counted(&cache) < after);
        // One whose room is small holds what is being searched, and no more.
        let small = open(1);
        for todo in [c, a, c] {
            small.maintain(todo).unwrap();
            small.searcher(todo).unwrap();
            assert_eq!(small.slots.lock().by_todo.len(), 1);
            assert!(counted(&small) > 0);
        }
    }
}
