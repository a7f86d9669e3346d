//! The data held for the todos that were searched last, and how it keeps up with the truth.

mod maintenance;
mod open_messages;
mod reading;
mod removal;
mod sharing;

pub use maintenance::Maintained;

use crate::disk::{Damage, DiskIndex, Fit, Folder, Indexed, index_error};
use crate::memory_index::MemoryIndex;
use crate::omission::{NextTried, Omission};
use crate::records::{Anchor, Records};
use crate::{Error, IndexConfig, Searcher};
use foldback_kv::{Registry, Todo};
use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use reading::Reading;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Recently searched todos, bounded by the memory that they use.
pub(crate) struct Cache {
    records: Records,
    registry: Registry,
    index_dir: Option<PathBuf>,
    config: IndexConfig,
    slots: Mutex<Slots>,
    /// Whether graphs are no longer built, and indexes only up to the next batch.
    stopped: AtomicBool,
}

struct Slots {
    by_todo: LruCache<u32, Arc<Slot>>,
    bytes: usize,
}

/// One todo. A search that finds it older than the truth lets it catch up, one at a time. A thread that has locked the
/// state may lock the slots, never the other way round.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    /// How many passages are in the payloads of blocks that are not indexed on disk.
    passages: Mutex<Passages>,
    /// The memory that this takes, for those who do not wait while it is counted.
    passages_bytes: AtomicUsize,
    /// Of the parts that its index in memory lacks, the one that a search tries again next.
    next_tried: NextTried,
    /// How many blocks its index had when the copy in the store was last compared with it, and when that was.
    published: Mutex<Option<(u32, Instant)>>,
    /// The memory that the cache counts for the slot.
    bytes: AtomicUsize,
}

/// The memory of a slot that holds nothing: itself, its index in memory, and its place in the list.
const SLOT_BYTES: usize = size_of::<Slot>() + size_of::<MemoryIndex>() + 128;

/// How many passages there are in the blocks after one, up to another, without those of payloads that earlier blocks
/// carry. Counted once.
#[derive(Default)]
struct Passages {
    behind: u32,
    until: u32,
    count: u64,
    payloads: FxHashSet<u64>,
}

/// An index catches up when it lacks as many passages as this part of those that it holds.
const GROWTH: u64 = 8;

#[derive(Default)]
struct State {
    /// The todo's change counter when the slot was last compared with the truth.
    changed: Option<u64>,
    /// The open messages that were searched last, where reading them asks a server.
    open: Option<open_messages::Known>,
    /// How many blocks it holds, on disk and in memory.
    blocks: u32,
    /// The newest block whose record was seen: its number, and what it is known by.
    anchor: Option<(u32, Anchor)>,
    disk: Option<Arc<DiskIndex>>,
    /// The blocks after those of `disk`.
    memory: Arc<RwLock<MemoryIndex>>,
    /// The files of the index when it was last opened, so that an unusable one is not tried again before it changes.
    tried: Option<Stamp>,
    /// How many replacements of vectors it takes into account.
    generation: u32,
}

/// How long to wait for the lock of an index that another process holds.
const TURN: Duration = Duration::from_millis(10);

/// The time of writing and the length of the files that are written last.
pub(crate) type Stamp = [Option<(SystemTime, u64)>; 2];

impl Cache {
    pub(crate) fn new(
        records: Records,
        registry: Registry,
        index_dir: Option<PathBuf>,
        mut config: IndexConfig,
    ) -> Self {
        if records.sealing(0, Indexed::Catalogue).is_some() {
            // The library that builds graphs writes their files itself.
            config.hnsw_after_vectors = usize::MAX;
        }
        let slots = Mutex::new(Slots { by_todo: LruCache::unbounded(), bytes: 0 });
        Self { records, registry, index_dir, config, slots, stopped: AtomicBool::new(false) }
    }

    pub(crate) fn searcher(&self, todo: &Todo) -> Result<Searcher, Error> {
        self.searcher_of(todo, None)
    }

    /// Returns a search of what was read, unless others have searched the todo since.
    fn searcher_of(&self, todo: &Todo, read: Option<Reading>) -> Result<Searcher, Error> {
        let slot = self.slot(todo);
        // Other threads search meanwhile.
        let lacking = slot.state.lock().memory.clone();
        let omissions = lacking.read().omissions().to_vec();
        let can_read = |omission: &Omission| self.records.can_read(todo, omission.block, omission);
        let can_read_more = slot.next_tried.any(&omissions, can_read);
        let mut state = slot.state.lock();
        let Reading { changed, records, .. } = match read.filter(|read| read.continues(&state)) {
            Some(read) => read,
            None => self.read_new(todo, &state)?,
        };
        let broken = state.disk.as_ref().is_some_and(|disk| disk.is_broken());
        let is_other_index = self.has_other_index(todo, &state);
        let is_mended = can_read_more && Arc::ptr_eq(&lacking, &state.memory);
        if is_mended {
            state.blocks = state.disk.as_ref().map_or(0, |disk| disk.blocks());
            state.memory = self.memory_behind(state.blocks);
        }
        if state.changed != Some(changed) || broken || is_other_index || is_mended {
            self.catch_up(todo, &mut state, &records)?;
            state.changed = Some(changed);
        }
        self.account(todo, &slot, &state);
        Ok(self.snapshot(todo, &state))
    }

    /// Returns whether another process of this machine has written the index on disk since it was last opened. Where the
    /// counter of changes is that of the whole store, it shows as soon as anything is committed.
    fn has_other_index(&self, todo: &Todo, state: &State) -> bool {
        self.records.are_remote()
            && self.folder(todo).is_some_and(|folder| state.tried != Some(stamp(&folder)))
    }

    /// Returns what a state holds, to search it.
    fn snapshot(&self, todo: &Todo, state: &State) -> Searcher {
        Searcher::new(
            todo.clone(),
            self.records.clone(),
            state.disk.clone(),
            state.memory.clone(),
            state.blocks,
        )
    }

    pub(crate) fn drop_slot(&self, todo: &Todo) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.by_todo.pop(&todo.no()) {
            slots.bytes = slots.bytes.saturating_sub(slot.bytes.swap(0, Ordering::Relaxed));
        }
    }

    /// Returns the folder of the todo's indexes; `None` if none are kept.
    pub(crate) fn folder(&self, todo: &Todo) -> Option<Folder> {
        self.index_dir.as_ref().map(|dir| self.folder_of(dir, todo.no()))
    }

    fn folder_of(&self, dir: &Path, no: u32) -> Folder {
        Folder::new(dir, no, self.records.sealing(no, Indexed::Todo(no)))
    }

    fn slot(&self, todo: &Todo) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.by_todo.get(&todo.no()) {
            return slot.clone();
        }
        let slot = Arc::new(Slot { bytes: AtomicUsize::new(SLOT_BYTES), ..Slot::default() });
        slots.by_todo.put(todo.no(), slot.clone());
        slots.bytes += SLOT_BYTES;
        slots.shrink(self.config.cache_bytes);
        slot
    }

    fn reopen(
        &self,
        folder: &Folder,
        todo: &Todo,
        before: Option<&DiskIndex>,
    ) -> Result<Option<DiskIndex>, Error> {
        self.open(folder, todo, before)
            .map_err(|detail| index_error(folder, "opened after it was written", &detail))
    }

    /// Returns the index on disk, with its graph only if there are enough vectors to use one. What is known of it is
    /// reused.
    fn open(
        &self,
        folder: &Folder,
        todo: &Todo,
        known: Option<&DiskIndex>,
    ) -> Result<Option<DiskIndex>, Damage> {
        let graph = known.and_then(|disk| disk.graph.as_ref());
        let mut disk = DiskIndex::open(folder, todo.no(), graph)?;
        if let Some(disk) = &mut disk {
            let after = self.config.hnsw_after_vectors;
            disk.graph.take_if(|graph| !graph.is_wanted(&disk.codes, after));
        }
        Ok(disk)
    }

    /// Searches `disk` from now on.
    fn take(&self, todo: &Todo, slot: &Arc<Slot>, folder: &Folder, disk: DiskIndex) {
        let mut state = slot.state.lock();
        state.tried = Some(stamp(folder));
        self.search_disk(&mut state, disk);
        self.account(todo, slot, &state);
    }

    fn catch_up(&self, todo: &Todo, state: &mut State, records: &Records) -> Result<(), Error> {
        let (last, anchor) = records.last_anchor(todo)?;
        let broken = state.disk.as_ref().is_some_and(|disk| disk.is_broken());
        let generation = records.vector_state(todo)?.generation;
        let replaced = state.generation != generation;
        let is_other = last < state.blocks || is_other_truth(todo, state, records, (last, anchor))?;
        if is_other || broken || replaced || state.blocks == 0 {
            // The truth was replaced by an older copy of itself, perhaps continued since, a search stumbled over the
            // index, or other vectors replaced those that it holds.
            let tried = if broken { state.tried } else { None };
            *state = State { tried, generation, ..State::default() };
            state.memory = self.memory_behind(0);
        }
        if let Some(folder) = self.folder(todo) {
            let now = stamp(&folder);
            if state.tried != Some(now) {
                state.tried = Some(now);
                if let Ok(Some(disk)) = self.open(&folder, todo, state.disk.as_deref())
                    // Another process may have written it after what was read ahead.
                    && disk.fit(&self.records, todo)? == Fit::Fits
                {
                    self.search_disk(state, disk);
                }
            }
            self.take_copy(todo, &folder, state, last);
        }
        if let Err(error) = self.append_to_memory(todo, state, records, last) {
            // The blocks read so far are no longer the first blocks of anything.
            *state = State::default();
            return Err(error);
        }
        state.blocks = state.blocks.max(last);
        state.anchor = anchor.map(|anchor| (last, anchor));
        Ok(())
    }

    /// Reads the blocks up to `last` into memory, and the parts of other blocks' payloads that the index on disk lacks.
    fn append_to_memory(
        &self,
        todo: &Todo,
        state: &mut State,
        records: &Records,
        last: u32,
    ) -> Result<(), Error> {
        if last > state.blocks {
            self.append_blocks(todo, state, records, last)?;
        }
        match &state.disk {
            Some(disk) => MemoryIndex::fill_in(&state.memory, records, todo, disk),
            None => Ok(()),
        }
    }

    fn append_blocks(
        &self,
        todo: &Todo,
        state: &mut State,
        records: &Records,
        last: u32,
    ) -> Result<(), Error> {
        let behind = state.disk.as_ref().map_or(0, |disk| disk.blocks());
        let append = |state: &State, first: u32| {
            let disk = state.disk.as_deref();
            MemoryIndex::append(&state.memory, records, todo, disk, first..=last)
        };
        let has_room = append(state, state.blocks + 1)?;
        if !has_room && state.blocks > behind {
            // Newer payloads take the place of older ones, and half of the room is kept for more.
            let room = self.passage_room();
            let memory = MemoryIndex::starting_at(behind + 1, room / 2);
            state.memory = Arc::new(RwLock::new(memory));
            append(state, behind + 1)?;
            state.memory.write().set_passage_room(room);
        }
        Ok(())
    }

    /// Returns how many bytes of memory the passages of one todo may take.
    fn passage_room(&self) -> usize {
        self.config.cache_bytes / 2
    }

    /// Creates an index in memory for what follows this block.
    fn memory_behind(&self, block: u32) -> Arc<RwLock<MemoryIndex>> {
        Arc::new(RwLock::new(MemoryIndex::starting_at(block + 1, self.passage_room())))
    }

    /// Searches `disk` from now on. What follows it is read again from the truth, unless it is already known.
    fn search_disk(&self, state: &mut State, disk: DiskIndex) {
        let blocks = disk.blocks();
        let is_same = |known: &Arc<DiskIndex>| {
            known.blocks() == blocks && known.omissions() == disk.omissions()
        };
        if !state.disk.as_ref().is_some_and(is_same) {
            state.memory = self.memory_behind(blocks);
            state.blocks = blocks;
            state.changed = None;
        }
        state.disk = Some(Arc::new(disk));
    }

    /// Notes how much memory a slot uses, and drops others if that is too much.
    fn account(&self, todo: &Todo, slot: &Arc<Slot>, state: &State) {
        let bytes = slot.held(state);
        if slot.bytes.load(Ordering::Relaxed) == bytes {
            return;
        }
        let mut slots = self.slots.lock();
        // It may have been dropped while it was in use; then it no longer counts.
        if !slots.by_todo.peek(&todo.no()).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            return;
        }
        let before = slot.bytes.swap(bytes, Ordering::Relaxed);
        slots.bytes = slots.bytes.saturating_sub(before).saturating_add(bytes);
        slots.shrink(self.config.cache_bytes);
    }
}

impl Slots {
    /// Drops the todos that were in use the longest ago, until the others take no more than this, or one is left.
    fn shrink(&mut self, most: usize) {
        while self.bytes > most && self.by_todo.len() > 1 {
            let Some((_, slot)) = self.by_todo.pop_lru() else { break };
            let freed = slot.bytes.swap(0, Ordering::Relaxed);
            self.bytes = self.bytes.saturating_sub(freed);
        }
    }
}

impl Slot {
    /// Returns about how much memory it uses. A graph counts once it is loaded, alongside searches.
    fn held(&self, state: &State) -> usize {
        let disk = state.disk.as_ref().map_or(0, |disk| disk.bytes());
        let passages = self.passages_bytes.load(Ordering::Relaxed);
        let open = state.open.as_ref().map_or(0, |open| open.bytes());
        SLOT_BYTES + disk + state.memory.read().bytes() + passages + open
    }
}

/// Returns whether the newest block that a state holds is another one in the truth, whose last block is given.
fn is_other_truth(
    todo: &Todo,
    state: &State,
    records: &Records,
    (last, anchor): (u32, Option<Anchor>),
) -> Result<bool, Error> {
    let Some((n, known)) = state.anchor.filter(|(n, _)| *n == state.blocks) else {
        return Ok(false);
    };
    let found = if n == last { anchor } else { records.anchor(todo, n)? };
    Ok(found.is_some_and(|found| found.hash != known.hash))
}

pub(crate) fn stamp(folder: &Folder) -> Stamp {
    folder.last_written().map(|path: PathBuf| written(&path))
}

fn written(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

#[cfg(test)]
mod tests;
