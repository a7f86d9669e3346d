//! The store of messages and blocks.

use crate::cache::Cache;
use crate::records::Records;
use crate::vectors::MessageVectors;
use crate::{
    Commit, Error, Finding, Head, Maintained, OpenMessages, PayloadTexts, ReadMessage, Searcher,
    doctor,
};
use foldback_core::{Block, SeqNo, StoredMessage};
use foldback_kv::{Delete, Kv, Registry, Space, Todo};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The truth of all todos, and its search. One value serves any number of threads; every method works on the one todo
/// that it is given.
///
/// Nothing is read without a [`Todo`], and only a [`Registry`] creates one, from its id. No
/// number, no wildcard and no missing argument takes its place:
///
/// ```compile_fail,E0061
/// fn read(store: &foldback_blockstore::BlockStore) {
///     drop(store.messages(0..1));
/// }
/// ```
///
/// ```compile_fail,E0308
/// fn read(store: &foldback_blockstore::BlockStore) {
///     drop(store.searcher("*"));
/// }
/// ```
///
/// ```compile_fail,E0308
/// fn read(store: &foldback_blockstore::BlockStore) {
///     drop(store.blocks(None, 0, 10));
/// }
/// ```
///
/// ```compile_fail,E0308
/// fn read(store: &foldback_blockstore::BlockStore) {
///     drop(store.vectors(1, foldback_core::SeqNo(0)));
/// }
/// ```
///
/// ```compile_fail,E0451
/// fn forge(id: foldback_core::TodoId) -> foldback_kv::Todo {
///     foldback_kv::Todo { no: 1, id }
/// }
/// ```
pub struct BlockStore {
    pub(crate) records: Records,
    pub(crate) cache: Cache,
}

/// When a todo gets indexes on disk, and how much memory searches may use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexConfig {
    /// A todo of more blocks than this gets an index on disk; smaller ones are searched in memory.
    pub index_after_blocks: u32,
    /// A todo whose payloads hold more passages than this, of up to 2 KiB each, gets an index on disk however few its
    /// blocks are; and the index catches up when it lacks this many, or an eighth of what it holds.
    pub index_after_passages: u32,
    /// The index on disk catches up when it is this many blocks behind.
    pub batch_blocks: u32,
    /// A todo of more vectors than this gets a graph (HNSW); fewer are scanned, which is exact. At 250,000 vectors of
    /// 256 numbers a search takes about as long either way, and the graph finds nine of the ten best (`cargo bench -p
    /// foldback-blockstore --bench footprint -- graph`). [`usize::MAX`] means never: an existing graph is not used
    /// either.
    ///
    /// A loaded graph takes some 900 bytes per vector and one byte for each of its numbers: 460 MB at 400,000 vectors
    /// of 256. Without room for it in `cache_bytes`, the todo that has it is dropped whenever another is searched, and
    /// its graph is loaded again, alongside searches.
    pub hnsw_after_vectors: usize,
    /// How many bytes of memory the recently searched todos may use. The todo that is being searched is kept whatever
    /// it uses. A graph counts once a search has begun to load it, with the next search of its todo.
    pub cache_bytes: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            index_after_blocks: 256,
            index_after_passages: 512,
            batch_blocks: 256,
            hnsw_after_vectors: 400_000,
            cache_bytes: 64 << 20,
        }
    }
}

impl IndexConfig {
    /// Returns the same configuration, with an index on disk for todos of more blocks than this.
    #[must_use]
    pub fn with_index_after_blocks(self, index_after_blocks: u32) -> Self {
        Self { index_after_blocks, ..self }
    }

    /// Returns the same configuration, with an index on disk for todos of more passages than this.
    #[must_use]
    pub fn with_index_after_passages(self, index_after_passages: u32) -> Self {
        Self { index_after_passages, ..self }
    }

    /// Returns the same configuration, with an index that catches up when it is this many blocks behind.
    #[must_use]
    pub fn with_batch_blocks(self, batch_blocks: u32) -> Self {
        Self { batch_blocks, ..self }
    }

    /// Returns the same configuration, with a graph for todos of more vectors than this.
    #[must_use]
    pub fn with_hnsw_after_vectors(self, hnsw_after_vectors: usize) -> Self {
        Self { hnsw_after_vectors, ..self }
    }

    /// Returns the same configuration, with this much memory for recently searched todos.
    #[must_use]
    pub fn with_cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }
}

impl BlockStore {
    /// Opens the messages and blocks in `kv`. Derived indexes are kept in `index_dir`, or nowhere; the folder may be
    /// deleted at any time.
    ///
    /// # Errors
    /// When the configuration is invalid. A damaged index is not an error: it is skipped, and rebuilt by
    /// [`maintain`](Self::maintain).
    pub fn open(
        kv: Arc<dyn Kv>,
        index_dir: Option<PathBuf>,
        config: IndexConfig,
    ) -> Result<Self, Error> {
        Self::assemble(kv, None, index_dir, config)
    }

    /// Like [`open`](Self::open), but the texts of the blocks' payloads are searched too: the first 16 MiB of each, and
    /// no binary ones. What no index on disk holds takes at most half of [`cache_bytes`](IndexConfig::cache_bytes), the
    /// newest payloads first; answers name those that found no room.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with_payloads(
        kv: Arc<dyn Kv>,
        texts: Arc<dyn PayloadTexts>,
        index_dir: Option<PathBuf>,
        config: IndexConfig,
    ) -> Result<Self, Error> {
        Self::assemble(kv, Some(texts), index_dir, config)
    }

    fn assemble(
        kv: Arc<dyn Kv>,
        texts: Option<Arc<dyn PayloadTexts>>,
        index_dir: Option<PathBuf>,
        config: IndexConfig,
    ) -> Result<Self, Error> {
        if config.batch_blocks == 0 {
            return Err(Error::Config("batch_blocks is 0, but must be at least 1".to_owned()));
        }
        let registry = Registry::new(kv.clone());
        let records = Records::new(kv, texts);
        Ok(Self { cache: Cache::new(records.clone(), registry, index_dir, config), records })
    }

    /// Writes messages, blocks and the session's state in one transaction, durable when this
    /// returns. Vectors are recorded as made by the model `model_id`.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another process has written to the todo since the head that the
    /// commit was built on; [`Error::Refused`] when messages and blocks would not fit together.
    /// Nothing is written then.
    pub fn commit(&self, commit: Commit<'_>, model_id: &str) -> Result<(), Error> {
        self.records.commit(commit, model_id)
    }

    /// Returns the todo's head: how many messages it holds, and how often it was written.
    ///
    /// # Errors
    /// When the store fails.
    pub fn head(&self, todo: &Todo) -> Result<Head, Error> {
        self.records.head(todo)
    }

    /// Returns the state of the session after the last commit; `None` for a todo without one.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn session(&self, todo: &Todo) -> Result<Option<Vec<u8>>, Error> {
        self.records.session(todo)
    }

    /// Returns the number after the todo's last message, even if its head is damaged.
    ///
    /// # Errors
    /// When the store fails.
    pub fn end(&self, todo: &Todo) -> Result<SeqNo, Error> {
        Ok(SeqNo(self.records.end(todo)?))
    }

    /// Returns the messages of a range, in order. A range that extends past the last message ends there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the first message that is damaged or missing.
    pub fn messages(&self, todo: &Todo, range: Range<u64>) -> Result<Vec<StoredMessage>, Error> {
        self.records.messages(todo, range)
    }

    /// Returns the messages of a range as [`messages`](Self::messages) does, each with its number; a damaged or missing
    /// one as its error.
    ///
    /// # Errors
    /// When the store fails.
    pub fn messages_each(&self, todo: &Todo, range: Range<u64>) -> Result<Vec<ReadMessage>, Error> {
        self.records.messages_each(todo, range)
    }

    /// Returns the messages that no closed block holds; `None` if there are none. If the last closed blocks are damaged,
    /// their messages are among them, since nothing else leads to them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open_messages(&self, todo: &Todo) -> Result<Option<OpenMessages>, Error> {
        self.records.open_messages(todo)
    }

    /// Returns the block with this number; blocks count from 1.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn block(&self, todo: &Todo, n: u32) -> Result<Option<Block>, Error> {
        self.records.block(todo, n)
    }

    /// Returns up to `limit` blocks with numbers above `after`, in order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the first block that is damaged or missing.
    pub fn blocks(&self, todo: &Todo, after: u32, limit: usize) -> Result<Vec<Block>, Error> {
        self.records.blocks(todo, after, limit)
    }

    /// Returns the newest block.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn last_block(&self, todo: &Todo) -> Result<Option<Block>, Error> {
        self.records.last_block(todo)
    }

    /// Returns the vectors of a message; `None` when it has none.
    ///
    /// # Errors
    /// When the store fails or the record is damaged.
    pub fn vectors(&self, todo: &Todo, seq: SeqNo) -> Result<Option<MessageVectors>, Error> {
        self.records.vectors(todo, seq.0)
    }

    /// Returns which messages of a range have no vectors of a model that can be read, ascending. Those that are not
    /// recorded are among them.
    ///
    /// # Errors
    /// When the store fails.
    pub fn without_vectors(
        &self,
        todo: &Todo,
        model_id: &str,
        range: Range<u64>,
    ) -> Result<Vec<SeqNo>, Error> {
        self.records.without_vectors(todo, model_id, range)
    }

    /// Returns a snapshot to search. It holds every block that this or any other process had committed when it was
    /// requested.
    ///
    /// # Errors
    /// When the store fails.
    pub fn searcher(&self, todo: &Todo) -> Result<Searcher, Error> {
        self.cache.searcher(todo)
    }

    /// Returns a snapshot as [`searcher`](Self::searcher) does, [with the open messages](Searcher::with_open) as the block
    /// as which `describe` describes them. Where the store is on a server, they are read only if something was committed
    /// to the todo since it was last searched in this way; `describe` must depend on the records of the todo alone.
    ///
    /// # Errors
    /// When the store or `describe` fails.
    pub fn searcher_with_open<E: From<Error>>(
        &self,
        todo: &Todo,
        describe: impl FnOnce(OpenMessages) -> Result<Block, E>,
    ) -> Result<Searcher, E> {
        self.cache.searcher_with_open(todo, describe)
    }

    /// Lets the derived indexes of the todo catch up, if it is large enough to have any and they are far enough behind.
    /// Intended for a thread of its own, after blocks have closed; nothing depends on when or whether it is called. If
    /// several processes call it, one does the work, and the others report [`busy`](Maintained::busy).
    ///
    /// # Errors
    /// When the index cannot be written. Searches go on without it.
    pub fn maintain(&self, todo: &Todo) -> Result<Maintained, Error> {
        self.cache.maintain(todo)
    }

    /// Builds the graph over the vectors of the todo's index, if there are too many for a scan and
    /// [`maintain`](Self::maintain) reported that a graph is due. It takes about half a millisecond for each vector,
    /// holds up neither searches nor `maintain`, and is abandoned on [`stop_building`](Self::stop_building). If several
    /// processes call it, one does the work.
    ///
    /// # Errors
    /// When the graph cannot be written. Searches go on without it.
    pub fn build_graph(&self, todo: &Todo) -> Result<Maintained, Error> {
        self.cache.build_graph(todo)
    }

    /// Abandons the graphs that are being built, without a trace, and builds no more. For a process that is about to
    /// end.
    pub fn stop_building(&self) {
        self.cache.stop_building();
    }

    /// Deletes the indexes of todos that were forgotten by a process that was killed before it could, and returns how
    /// many there were.
    ///
    /// # Errors
    /// When the store fails or an index cannot be deleted.
    pub fn sweep_forgotten(&self) -> Result<usize, Error> {
        self.cache.sweep_forgotten()
    }

    /// Compares everything with everything: that messages, blocks and vectors are whole and have no gap, that blocks
    /// partition the messages before the open tail, that the indexes hold exactly what the truth holds, and that a
    /// graph matches its checksums. With `repair`, indexes that do not are rebuilt, and such a graph is deleted, for
    /// [`build_graph`](Self::build_graph) to rebuild. Others may continue to write.
    ///
    /// # Errors
    /// When the store cannot be read at all, or a repair cannot be written. Damage is a finding.
    pub fn doctor(&self, todo: &Todo, repair: bool) -> Result<Vec<Finding>, Error> {
        doctor::examine(&self.records, &self.cache, todo, repair)
    }

    /// Returns how many blocks the index on disk is behind the truth; 0 for a todo that needs none. Blocks that are not
    /// indexed are searched from the truth.
    ///
    /// # Errors
    /// When the store fails.
    pub fn index_lag(&self, todo: &Todo) -> Result<u64, Error> {
        self.cache.index_lag(todo)
    }

    /// Returns whether there is a graph over the vectors of the todo's index.
    #[must_use]
    pub fn has_graph(&self, todo: &Todo) -> bool {
        self.cache.has_graph(todo)
    }

    /// Returns the records to delete for the todo to be forgotten, so that they go in one transaction with the records
    /// of other crates. Its indexes stay until [`remove_index`](Self::remove_index), so that a transaction that does
    /// not happen costs nothing.
    #[must_use]
    pub fn forget(&self, todo: &Todo) -> Vec<Delete> {
        let spaces = [Space::Message, Space::Block, Space::Vector, Space::Session, Space::Index];
        spaces.map(|space| Delete::todo(space, todo.no())).to_vec()
    }

    /// Deletes the indexes of a todo for good. To be called **after** the transaction with the deletions of
    /// [`forget`](Self::forget); safe while others index the todo. If a process is killed in between,
    /// [`sweep_forgotten`](Self::sweep_forgotten) deletes what it leaves.
    ///
    /// # Errors
    /// When an index cannot be deleted.
    pub fn remove_index(&self, todo: &Todo) -> Result<(), Error> {
        self.cache.remove_index(todo)
    }
}
